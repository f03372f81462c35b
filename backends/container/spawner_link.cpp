#include "backends/container/spawner_link.hpp"

#include "backends/container/build_id.hpp"
#include "backends/container/wire.hpp"

#include <capnp/message.h>
#include <fmt/format.h>
#include <kj/io.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <unistd.h>

namespace dsec {

namespace {

constexpr int starts_max = 3;
constexpr int barren_max = 10;
constexpr std::size_t datagram_bytes_max = 1 << 20;

wire::Request::Builder request(capnp::MallocMessageBuilder& message) {
  return message.initRoot<wire::Request>();
}

/// A reply without content, as a result.
result<void> plain(const result<wire::Reply::Reader>& x);

} // namespace

struct spawner_link::pending {
  kj::Array<capnp::word> packet;
  answer done;
  bool sent = false;
};

struct spawner_link::socket {
  kj::AutoCloseFd fd;
  kj::UnixEventPort::FdObserver observer;
  bool agreed = false; ///< Its hello was good.

  socket(io_loop& loop, int number)
    : fd{number},
      observer{loop.port(), number, kj::UnixEventPort::FdObserver::OBSERVE_READ_WRITE} {}
};

spawner_link::spawner_link(io_loop& loop, spawner_options options)
  : loop_{loop},
    options_{std::move(options)},
    version_{build_id(spawner_program(options_))},
    buffer_{kj::heapArray<capnp::word>(datagram_bytes_max / sizeof(capnp::word))} {}

spawner_link::~spawner_link() = default;

void spawner_link::create(const start_spec& spec, completion<void> done) {
  capnp::MallocMessageBuilder message;
  auto create = request(message).initCreate();
  create.setSandboxId(spec.id.str());
  const auto& env = spec.environment;
  auto layers = create.initLayers(env.layers.size());
  for (unsigned i = 0; i < layers.size(); ++i)
    layers.set(i, env.layers[i].str());
  create.setMemoryBytes(env.limits.memory_bytes);
  create.setProcesses(env.limits.processes);
  create.setCpuMilli(env.limits.cpu_milli);
  create.setDiskBytes(env.limits.disk_bytes);
  create.setAllowSetuid(env.allow_setuid);
  create.setHostname(spec.id.str());
  create.setPauseAfterMs(spec.lease.pause_after.count());
  create.setStopAfterMs(spec.lease.stop_after.count());
  create.setTimeToLiveMs(spec.clocks.time_to_live.count());
  create.setRolloutBudgetMs(spec.clocks.rollout_budget.count());
  create.setAgeMs(spec.age.count());
  ask(message, [done = std::move(done)](auto reply) { done(plain(reply)); });
}

void spawner_link::destroy(const sandbox_id& id, completion<void> done) {
  capnp::MallocMessageBuilder message;
  request(message).setDestroy(id.str());
  ask(message, [done = std::move(done)](auto reply) { done(plain(reply)); });
}

void spawner_link::list(completion<std::vector<live_sandbox>> done) {
  capnp::MallocMessageBuilder message;
  request(message).setList();
  ask(message, [done = std::move(done)](auto reply) {
    if (auto ok = plain(reply); !ok)
      return done(ok.error());
    std::vector<live_sandbox> found;
    for (auto live : reply->getList())
      found.push_back({sandbox_id{wire::text(live.getSandboxId())}, live.getEnding()});
    done(std::move(found));
  });
}

void spawner_link::init_of(const sandbox_id& id, completion<int> done) {
  capnp::MallocMessageBuilder message;
  request(message).setList();
  ask(message, [id, done = std::move(done)](auto reply) {
    if (auto ok = plain(reply); !ok)
      return done(ok.error());
    int pid = 0;
    for (auto live : reply->getList())
      if (!live.getEnding() && wire::text(live.getSandboxId()) == id.str())
        pid = live.getInitPid();
    done(pid);
  });
}

void spawner_link::warm(std::uint32_t sandboxes, completion<void> done) {
  capnp::MallocMessageBuilder message;
  request(message).setWarm(sandboxes);
  ask(message, [done = std::move(done)](auto reply) { done(plain(reply)); });
}

void spawner_link::hello(completion<spawner_report> done) {
  capnp::MallocMessageBuilder message;
  request(message).setHello();
  ask(message, [done = std::move(done)](auto reply) {
    if (auto ok = plain(reply); !ok)
      return done(ok.error());
    auto hello = reply->getHello();
    done(spawner_report{wire::text(hello.getVersion()), hello.getPid(), hello.getSlots(),
                        hello.getSlotsUsed(), hello.getSwapBytes(), wire::text(hello.getCgroup()),
                        wire::text(hello.getCgroupRoot())});
  });
}

void spawner_link::shutdown(completion<void> done) {
  capnp::MallocMessageBuilder message;
  request(message).setShutdown();
  ask(message, [done = std::move(done)](auto reply) { done(plain(reply)); });
}

void spawner_link::ask(capnp::MallocMessageBuilder& message, answer done) {
  auto sequence = ++sequence_;
  message.getRoot<wire::Request>().setSequence(sequence);
  message.getRoot<wire::Request>().setEpoch(epoch_);
  pending_.emplace(sequence, pending{capnp::messageToFlatArray(message), std::move(done)});
  if (socket_)
    flush();
  else
    connect();
}

void spawner_link::connect() {
  if (working_)
    return;
  working_ = true;
  work_ = session().eagerlyEvaluate(nullptr);
}

kj::Promise<void> spawner_link::session() {
  answered_ = false;
  gone_ = false;
  return dial(0)
    .catch_([this](kj::Exception&& e) { fail_all(wire::broken("talk to dsec-spawner", e)); })
    .then([this]() -> kj::Promise<void> {
      writable_ = nullptr;
      awaits_writable_ = false;
      socket_ = nullptr;
      barren_ = answered_ ? 0 : barren_ + 1;
      if (barren_ > barren_max) {
        barren_ = 0;
        fail_all(
          {errc::unavailable, fmt::format("dsec-spawner in {} went away {} times without an answer",
                                          options_.run_dir.string(), barren_max)});
      }
      if (pending_.empty()) {
        working_ = false;
        return kj::READY_NOW;
      }
      for (auto& [_, p] : pending_)
        p.sent = false;
      auto pause = answered_ ? 0 * kj::MILLISECONDS : 20 * kj::MILLISECONDS;
      return loop_.timer().afterDelay(pause).then([this] { return session(); });
    });
}

kj::Promise<void> spawner_link::dial(int attempt) {
  auto path = (options_.run_dir / "spawner.sock").string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    fail_all({errc::invalid_argument, fmt::format("run_dir {}: longer than 60 bytes", path)});
    return kj::READY_NOW;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    socket_ = std::make_unique<socket>(loop_, fd);
    capnp::MallocMessageBuilder message;
    request(message).setHello();
    hello_sequence_ = ++sequence_;
    message.getRoot<wire::Request>().setSequence(hello_sequence_);
    auto packet = capnp::messageToFlatArray(message);
    ::send(fd, packet.begin(), packet.size() * sizeof(capnp::word), MSG_NOSIGNAL);
    return receive();
  }
  int number = errno;
  if (fd >= 0)
    ::close(fd);
  if (number == EAGAIN) // Its accept queue is full.
    return loop_.timer().afterDelay(5 * kj::MILLISECONDS).then([this, attempt] {
      return dial(attempt);
    });
  if (number != ENOENT && number != ECONNREFUSED) {
    fail_all(errno_error(number, fmt::format("connect to dsec-spawner at {}", path)));
    return kj::READY_NOW;
  }
  return start(attempt);
}

kj::Promise<void> spawner_link::start(int attempt) {
  auto where = (options_.run_dir / "spawner.sock").string();
  if (::geteuid() != 0 || attempt >= starts_max) {
    auto why =
      attempt >= starts_max
        ? fmt::format("dsec-spawner does not listen on {} although it was started {} times", where,
                      starts_max)
        : fmt::format("no dsec-spawner listens on {}, and only root can start one", where);
    fail_all({errc::unavailable, why});
    return kj::READY_NOW;
  }
  return start_spawner(loop_, options_).then([this, attempt](result<void> up) -> kj::Promise<void> {
    if (up)
      return dial(attempt + 1);
    // Two processes may start one at the same time; the second finds the first one's socket.
    if (attempt + 1 < starts_max)
      return loop_.timer().afterDelay(50 * kj::MILLISECONDS).then([this, attempt, up] {
        if (::access((options_.run_dir / "spawner.sock").c_str(), F_OK) == 0)
          return dial(attempt + 1);
        fail_all(up.error());
        return kj::Promise<void>{kj::READY_NOW};
      });
    fail_all(up.error());
    return kj::READY_NOW;
  });
}

kj::Promise<void> spawner_link::receive() {
  for (;;) {
    auto n = ::recv(socket_->fd, buffer_.begin(), buffer_.size() * sizeof(capnp::word),
                    MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      return socket_->observer.whenBecomesReadable().then([this] { return receive(); });
    if (n <= 0 || static_cast<std::size_t>(n) > buffer_.size() * sizeof(capnp::word)) {
      return kj::READY_NOW;
    }
    capnp::FlatArrayMessageReader message{buffer_.slice(0, n / sizeof(capnp::word))};
    take(message.getRoot<wire::Reply>());
    if (gone_)
      return kj::READY_NOW;
  }
}

void spawner_link::take(wire::Reply::Reader reply) {
  if (reply.getSequence() == hello_sequence_)
    return judge(reply);
  answered_ = true;
  auto i = pending_.find(reply.getSequence());
  if (i == pending_.end())
    return;
  auto done = std::move(i->second.done);
  pending_.erase(i);
  done(reply);
}

void spawner_link::judge(wire::Reply::Reader reply) {
  hello_sequence_ = 0;
  if (error refused; wire::failed(reply.getError(), refused)) {
    fail_all(refused);
    gone_ = true;
    return;
  }
  auto hello = reply.getHello();
  auto version = wire::text(hello.getVersion());
  bool ours = version_.empty() || version == version_;
  bool understood = hello.getProtocol() == wire::SPAWNER_PROTOCOL;
  bool replaceable = hello.getSandboxes() == 0 && ::geteuid() == 0;
  // One of another build that has sandboxes keeps them, and serves, if it speaks as we do.
  if (understood && (ours || !replaceable)) {
    socket_->agreed = true;
    return flush();
  }
  if (!replaceable) {
    auto advice =
      hello.getSandboxes() > 0
        ? fmt::format("stop its {} sandboxes with the dsec of its own version (dsec ps, "
                      "dsec stop) or wait until their leases have ended, then try again",
                      hello.getSandboxes())
        : std::string{"run this program once as root, which replaces it"};
    fail_all({errc::unavailable,
              fmt::format("the dsec-spawner in {} (pid {}, version {}) speaks protocol {}, this "
                          "program (version {}) speaks {}: {}",
                          options_.run_dir.string(), hello.getPid(), version, hello.getProtocol(),
                          version_, wire::SPAWNER_PROTOCOL, advice)});
    gone_ = true;
    return;
  }
  // Nothing runs under the other one: it leaves, and ours is started when its end is seen.
  capnp::MallocMessageBuilder farewell;
  auto shutdown = request(farewell);
  shutdown.setSequence(++sequence_);
  shutdown.setShutdown();
  auto packet = capnp::messageToFlatArray(farewell);
  ::send(socket_->fd, packet.begin(), packet.size() * sizeof(capnp::word), MSG_NOSIGNAL);
}

void spawner_link::flush() {
  if (!socket_->agreed || awaits_writable_)
    return;
  for (auto& [_, p] : pending_) {
    if (p.sent)
      continue;
    auto n = ::send(socket_->fd, p.packet.begin(), p.packet.size() * sizeof(capnp::word),
                    MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == ENOBUFS)) {
      awaits_writable_ = true;
      writable_ = socket_->observer.whenBecomesWritable()
                    .then([this] {
                      awaits_writable_ = false;
                      flush();
                    })
                    .eagerlyEvaluate(nullptr);
      return;
    }
    if (n < 0) // The end of the connection is seen by `receive`, which sends everything again.
      return;
    p.sent = true;
  }
}

void spawner_link::fail_all(const error& why) {
  auto all = std::move(pending_);
  pending_.clear();
  for (auto& [_, p] : all)
    p.done(why);
}

namespace {

result<void> plain(const result<wire::Reply::Reader>& x) {
  if (!x)
    return x.error();
  if (error e; wire::failed(x->getError(), e))
    return e;
  return {};
}

} // namespace

} // namespace dsec
