#include "sdk/front/front.hpp"

#include "sdk/front/servers.hpp"

#include <capnp/rpc-twoparty.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <unistd.h>

namespace dsec {

namespace {

constexpr unsigned connections_max = 64;
/// Of what comes and of what goes. The largest is a result: two spools of 8 MiB.
constexpr std::uint64_t message_words_max = (17ull << 20) / sizeof(capnp::word);
constexpr std::uint64_t unanswered_words_max = (16ull << 20) / sizeof(capnp::word);

/// The whole connection of one client.
struct connection {
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc;

  static capnp::ReaderOptions limits() {
    capnp::ReaderOptions x;
    x.traversalLimitInWords = message_words_max;
    x.nestingLimit = 32;
    return x;
  }

  connection(kj::Own<kj::AsyncIoStream> from, capnp::Capability::Client bootstrap)
    : stream{kj::mv(from)},
      network{*stream, capnp::rpc::twoparty::Side::SERVER, limits()},
      rpc{capnp::makeRpcServer(network, kj::mv(bootstrap))} {
    rpc.setFlowLimit(unanswered_words_max);
  }
};

/// A listening socket of mode 0600 from its first moment, in place of one that a dead owner left.
result<int> listen_at(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto text = path.string();
  if (text.size() >= sizeof address.sun_path)
    return error{errc::invalid_argument, fmt::format("socket path {}: longer than {} bytes", text,
                                                     sizeof address.sun_path - 1)};
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  ::unlink(text.c_str());
  int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return errno_error(errno, fmt::format("listen on {}", text));
  // Until chmod nobody can connect: the socket does not listen yet.
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0
      || ::chmod(text.c_str(), 0600) < 0 || ::listen(fd, 64) < 0) {
    int number = errno;
    ::close(fd);
    return errno_error(number, fmt::format("listen on {}", text));
  }
  return fd;
}

} // namespace

struct front::inside : kj::TaskSet::ErrorHandler {
  io_loop& loop;
  runtime& target;
  kj::Own<kj::ConnectionReceiver> listener;
  unsigned connections = 0;
  kj::Own<kj::PromiseFulfiller<void>> place;
  kj::TaskSet tasks;

  inside(io_loop& x, runtime& to, int fd)
    : loop{x},
      target{to},
      listener{
        x.low_level().wrapListenSocketFd(fd, kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP
                                               | kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC
                                               | kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK)},
      tasks{*this} {
    tasks.add(accept());
  }

  void taskFailed(kj::Exception&&) override {}

  kj::Promise<void> accept() {
    if (connections >= connections_max) {
      auto pair = kj::newPromiseAndFulfiller<void>();
      place = kj::mv(pair.fulfiller);
      return pair.promise.then([this] { return accept(); });
    }
    return listener->acceptAuthenticated().then(
      [this](kj::AuthenticatedStream&& peer) {
        ++connections;
        tasks.add(serve(kj::mv(peer)).catch_([](kj::Exception&&) {}).then([this] {
          --connections;
          if (place)
            kj::mv(place)->fulfill();
        }));
        return accept();
      },
      // Out of descriptors: the listener works again once some are closed.
      [this](kj::Exception&&) {
        return loop.timer().afterDelay(100 * kj::MILLISECONDS).then([this] { return accept(); });
      });
  }

  kj::Promise<void> serve(kj::AuthenticatedStream&& peer) {
    auto held = kj::heap<connection>(kj::mv(peer.stream), bootstrap_for(*peer.peerIdentity));
    auto gone = held->network.onDisconnect();
    return gone.attach(kj::mv(held));
  }

  /// The runtime for its own user and for root; for others a capability that says no to every call.
  capnp::Capability::Client bootstrap_for(kj::PeerIdentity& peer) {
    auto* local = dynamic_cast<kj::LocalPeerIdentity*>(&peer);
    KJ_IF_MAYBE (uid, local->getCredentials().uid) {
      if (*uid == 0 || *uid == ::geteuid())
        return serve_runtime(loop, target);
      return KJ_EXCEPTION(FAILED, "refused: this runtime belongs to another user");
    }
    return KJ_EXCEPTION(FAILED, "refused: the kernel does not say who connects");
  }
};

front::front(io_loop& loop, std::filesystem::path socket)
  : loop_{loop},
    socket_{std::move(socket)} {}

result<std::unique_ptr<front>>
front::open(io_loop& loop, runtime& target, const std::filesystem::path& socket) {
  auto fd = listen_at(socket);
  if (!fd)
    return fd.error();
  std::unique_ptr<front> x{new front{loop, socket}};
  loop.run([&] { x->inside_ = std::make_unique<inside>(loop, target, *fd); });
  return x;
}

front::~front() {
  ::unlink(socket_.c_str());
  loop_.run([this] { inside_.reset(); });
}

} // namespace dsec
