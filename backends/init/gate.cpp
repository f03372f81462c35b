#include "backends/init/gate.hpp"

#include "backends/init/init_server.hpp"
#include "backends/init/owner_note.hpp"
#include "backends/init/socket_stream.hpp"
#include "backends/init/wire_error.hpp"

#include <capnp/rpc-twoparty.h>
#include <capnp/rpc.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>

namespace dsec::init {

namespace {

constexpr std::size_t connections_max = 64;
/// Of what comes and of what goes. The largest is a result: two spools of 8 MiB; what comes is far
/// below, a file's write at most 1 MiB and an argument block 2 MiB.
constexpr std::uint64_t message_words_max = (17 << 20) / sizeof(capnp::word);
/// Of calls that are not answered yet, per connection.
constexpr std::size_t pending_words_max = (32 << 20) / sizeof(capnp::word);

capnp::ReaderOptions reading() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = message_words_max;
  options.nestingLimit = 32;
  return options;
}

class gate_server final : public wire::InitGate::Server {
public:
  gate_server(gate& g, sandbox& s, kj::Own<admission> a)
    : gate_{g},
      sandbox_{s},
      admission_{kj::mv(a)} {}

  kj::Promise<void> enter(EnterContext context) override {
    admission_->check();
    auto answer = context.getResults();
    if (sandbox_.ending()) {
      fill(answer.initError(), {errc::unavailable, "enter " + sandbox_.id() + ": it has ended"});
      return kj::READY_NOW;
    }
    if (auto ok = gate_.enter(*admission_, context.getParams().getEpoch()); !ok) {
      fill(answer.initError(), ok.error());
      return kj::READY_NOW;
    }
    answer.setInit(make_init_server(sandbox_, kj::addRef(*admission_)));
    // What is told of the phase must hold from then on, so what an earlier node asked of the
    // freezer comes to its end first.
    return sandbox_.freeze.idle().then([this, context]() mutable { introduce(context); });
  }

private:
  void introduce(EnterContext context) {
    auto hello = context.getResults().initHello();
    hello.setSandboxId(sandbox_.id().c_str());
    hello.setPhase(sandbox_.freeze.phase());
    const auto ids = sandbox_.commands.ids();
    copy_ids(hello.initExecs(static_cast<unsigned>(ids.size())), ids);
    const auto running = sandbox_.commands.running_ids();
    copy_ids(hello.initRunning(static_cast<unsigned>(running.size())), running);
  }

  static void
  copy_ids(capnp::List<std::uint64_t>::Builder to, const std::vector<std::uint64_t>& from) {
    for (unsigned i = 0; i < to.size(); ++i)
      to.set(i, from[i]);
  }

  gate& gate_;
  sandbox& sandbox_;
  kj::Own<admission> admission_;
};

} // namespace

struct gate::connection {
  connection(gate& g, sandbox& s, kj::AutoCloseFd socket)
    : admitted{kj::refcounted<admission>()},
      stream{s.port, kj::mv(socket)},
      network{stream, capnp::rpc::twoparty::Side::SERVER, reading()},
      rpc{capnp::makeRpcServer(network, kj::heap<gate_server>(g, s, kj::addRef(*admitted)))} {
    rpc.setFlowLimit(pending_words_max);
  }

  kj::Own<admission> admitted;
  socket_stream stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;
  kj::Promise<void> gone = nullptr;
};

gate::gate(sandbox& served, kj::AutoCloseFd listener)
  : sandbox_{served},
    listener_{kj::mv(listener)},
    observer_{served.port, listener_.get(), kj::UnixEventPort::FdObserver::OBSERVE_READ} {
  ::fcntl(listener_, F_SETFL, O_NONBLOCK);
  served.all_sent = [this] {
    return std::all_of(connections_.begin(), connections_.end(),
                       [](const auto& c) { return c->network.getCurrentQueueSize() == 0; });
  };
}

gate::~gate() = default;

kj::Promise<void> gate::run() {
  for (;;) {
    kj::AutoCloseFd socket{::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (socket.get() >= 0) {
      serve(kj::mv(socket));
      continue;
    }
    if (errno == EAGAIN)
      return observer_.whenBecomesReadable().then([this] { return run(); });
    if (errno == EINTR || errno == ECONNABORTED)
      continue;
    // Out of descriptors, most likely: some will be free again.
    return sandbox_.timer.afterDelay(100 * kj::MILLISECONDS).then([this] { return run(); });
  }
}

void gate::serve(kj::AutoCloseFd socket) {
  if (connections_.size() >= connections_max)
    return;
  auto made = std::make_shared<connection>(*this, sandbox_, kj::mv(socket));
  connections_.push_back(made);
  auto* raw = made.get();
  made->gone = made->network.onDisconnect()
                 .then([this, raw] {
                   // A task may not destroy itself: the object goes in the next turn.
                   return kj::evalLater([this, raw] {
                     auto it = std::find_if(connections_.begin(), connections_.end(),
                                            [raw](const auto& c) { return c.get() == raw; });
                     if (it == connections_.end())
                       return;
                     auto kept = *it;
                     connections_.erase(it);
                     kj::evalLater([kept] {}).detach([](kj::Exception&&) {});
                   });
                 })
                 .eagerlyEvaluate([](kj::Exception&&) {});
}

result<void> gate::enter(admission& who, std::uint64_t epoch) {
  if (epoch < highest_)
    return error{errc::invalid_state, "enter with epoch " + std::to_string(epoch)
                                        + ": a node of epoch " + std::to_string(highest_)
                                        + " has entered"};
  // The spawner, too, must know who may end this sandbox from now on.
  if (int lock = sandbox_.given_.lock; epoch > highest_ && lock >= 0)
    if (auto noted = note_owner(lock, epoch); !noted)
      return noted;
  // Nor does the lease freeze anything before a new node could have renewed it.
  if (epoch > highest_)
    sandbox_.leases.renew_again();
  highest_ = epoch;
  who.entered = true;
  who.epoch = epoch;
  for (auto it = connections_.begin(); it != connections_.end();) {
    auto& other = **it;
    if (other.admitted->entered && other.admitted->epoch < epoch) {
      // From here on nothing of it is served, whatever the loop has read of it already.
      other.admitted->fenced = true;
      auto kept = *it;
      it = connections_.erase(it);
      kj::evalLater([kept] {}).detach([](kj::Exception&&) {});
    } else {
      ++it;
    }
  }
  return {};
}

} // namespace dsec::init
