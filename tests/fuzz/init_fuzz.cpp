// dsec-init between those who talk to it: nodes with any calls in any order, peers that speak no
// protocol at all, a PID 1 that an attacker inside has taken over, time, and counters of the kernel
// that say anything. It must stay whole, ask PID 1 for nothing that PID 1 could not do, and keep no
// descriptor.

#include "backends/init/socket_stream.hpp"
#include "schemas/init.capnp.h"
#include "tests/fuzz/init_world.hpp"
#include "tests/fuzz/messages.hpp"

#include <capnp/rpc-twoparty.h>
#include <capnp/rpc.capnp.h>
#include <capnp/serialize.h>
#include <sys/socket.h>

#include <dirent.h>
#include <unistd.h>

using namespace dsec;
using fuzz::input;

namespace {

constexpr int steps_max = 200;
constexpr std::size_t peers_max = 4;
constexpr std::size_t capabilities_max = 24;

/// Sinks whose readers do not answer yet.
using held_answers = std::vector<kj::Own<kj::PromiseFulfiller<void>>>;

/// What a node hands to dsec-init: takes everything at once, later, or breaks.
class any_server final : public capnp::DynamicCapability::Server {
public:
  enum class manner { takes, holds, breaks };

  any_server(capnp::InterfaceSchema schema, manner how, held_answers& held)
    : Server{schema},
      how_{how},
      held_{held} {}

  kj::Promise<void> call(capnp::InterfaceSchema::Method,
                         capnp::CallContext<capnp::DynamicStruct, capnp::DynamicStruct>) override {
    if (how_ == manner::breaks)
      return KJ_EXCEPTION(FAILED, "a reader that broke");
    if (how_ == manner::takes)
      return kj::READY_NOW;
    auto pair = kj::newPromiseAndFulfiller<void>();
    held_.push_back(kj::mv(pair.fulfiller));
    return kj::mv(pair.promise);
  }

private:
  manner how_;
  held_answers& held_;
};

/// A node: a connection of its own, and the capabilities it has been given on it.
struct node {
  node(kj::UnixEventPort& port, kj::AutoCloseFd socket)
    : stream{port, kj::mv(socket)},
      client{stream} {
    capabilities.push_back(client.bootstrap().castAs<wire::InitGate>());
  }

  socket_stream stream;
  capnp::TwoPartyClient client;
  std::vector<capnp::DynamicCapability::Client> capabilities;
};

class conversation {
public:
  explicit conversation(fuzz::init_world& w) : world_{w} {}

  void step(input& in) {
    switch (in.below(16)) {
    case 0:
      if (nodes_.size() < peers_max)
        nodes_.push_back(kj::heap<node>(world_.port, world_.connect()));
      break;
    case 1:
      if (strangers_.size() < peers_max)
        strangers_.push_back(world_.connect());
      break;
    case 2:
      drop(in);
      break;
    case 3:
      speak_nonsense(in);
      break;
    case 4:
      fuzz::init_world::write_counter(in.byte(), in.text());
      break;
    case 5: {
      static constexpr kj::Duration times[] = {1 * kj::MILLISECONDS,   3 * kj::MILLISECONDS,
                                               100 * kj::MILLISECONDS, 1 * kj::SECONDS,
                                               10 * kj::SECONDS,       3600 * kj::SECONDS};
      world_.pass(in.one_of(times));
      break;
    }
    case 6: {
      auto held = kj::mv(held_);
      held_.clear();
      for (auto& answer : held)
        answer->fulfill();
      break;
    }
    case 7:
    case 8:
    case 9:
      world_.play_reaper(in);
      break;
    default:
      call(in);
    }
    // Or the next word comes before this one was heard.
    if (in.below(4) != 0)
      world_.settle();
  }

private:
  void call(input& in) {
    if (nodes_.empty())
      nodes_.push_back(kj::heap<node>(world_.port, world_.connect()));
    auto& from = *nodes_[in.below(nodes_.size())];
    if (from.capabilities.empty())
      return;
    auto& to = from.capabilities[in.below(from.capabilities.size())];
    const auto methods = to.getSchema().getMethods();
    const auto method = methods[static_cast<unsigned>(in.below(methods.size()))];
    auto request = to.newRequest(method);
    fuzz::fill(
      request, in, [this](capnp::InterfaceSchema wanted, input& i) { return server_of(wanted, i); },
      4);
    auto answer = request.send();
    for (auto field : method.getResultType().getFields())
      if (field.getType().isInterface() && from.capabilities.size() < capabilities_max)
        from.capabilities.push_back(answer.get(field).releaseAs<capnp::DynamicCapability>());
    if (in.below(8) == 0)
      return; // Cancelled: the answer is not waited for.
    answer.ignoreResult().detach([](kj::Exception&&) {});
  }

  kj::Maybe<capnp::DynamicCapability::Client> server_of(capnp::InterfaceSchema wanted, input& in) {
    const auto how = in.below(4);
    if (how == 3)
      return nullptr;
    return capnp::DynamicCapability::Client{
      kj::heap<any_server>(wanted, static_cast<any_server::manner>(how), held_)};
  }

  void drop(input& in) {
    if (in.flag() && !nodes_.empty()) {
      auto& of = *nodes_[in.below(nodes_.size())];
      if (in.below(4) == 0)
        nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(in.below(nodes_.size())));
      else if (!of.capabilities.empty())
        of.capabilities.erase(of.capabilities.begin()
                              + static_cast<std::ptrdiff_t>(in.below(of.capabilities.size())));
    } else if (!strangers_.empty()) {
      strangers_.pop_back();
    }
  }

  /// Bytes, or a message of the RPC protocol that no client would send.
  void speak_nonsense(input& in) {
    if (strangers_.empty())
      return;
    const auto& to = strangers_[in.below(strangers_.size())];
    char taken[4096];
    while (::read(to, taken, sizeof taken) > 0)
      ;
    if (in.below(4) == 0) {
      const auto bytes = in.text();
      (void)!::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      return;
    }
    capnp::MallocMessageBuilder message;
    const auto none = [](capnp::InterfaceSchema, input&) {
      return kj::Maybe<capnp::DynamicCapability::Client>{};
    };
    fuzz::fill(message.initRoot<capnp::DynamicStruct>(capnp::Schema::from<capnp::rpc::Message>()),
               in, none, 5);
    auto words = capnp::messageToFlatArray(message);
    auto bytes = words.asBytes();
    for (auto damages = in.below(4); damages > 0; --damages)
      bytes[in.number<std::uint16_t>() % bytes.size()] = in.byte();
    (void)!::send(to, bytes.begin(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  fuzz::init_world& world_;
  held_answers held_;
  std::vector<kj::Own<node>> nodes_;
  std::vector<kj::AutoCloseFd> strangers_;
};

std::size_t open_files() {
  std::size_t count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  fuzz::claim(folder != nullptr, "read /proc/self/fd");
  while (::readdir(folder))
    ++count;
  ::closedir(folder);
  return count;
}

void converse(input in) {
  const bool nodes_go_first = in.flag();
  auto world = std::make_unique<fuzz::init_world>();
  auto talk = std::make_unique<conversation>(*world);
  for (int steps = 0; !in.empty() && steps < steps_max; ++steps)
    talk->step(in);
  world->settle();
  if (nodes_go_first) {
    talk = nullptr;
    world->settle();
  } else {
    world->end();
    talk = nullptr;
  }
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  fuzz::init_world::prepare();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto before = open_files();
  converse({bytes, size});
  fuzz::claim(open_files() == before, "no descriptor is kept");
  return 0;
}
