#include "backends/init/command.hpp"

#include "backends/init/disk_probe.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace dsec::init {

using kind = wire::Outcome::Kind;

namespace {

/// How long a background child may hold the output open after its command has ended.
constexpr auto linger = 100 * kj::MILLISECONDS;

struct pipe_ends {
  kj::AutoCloseFd reading, writing;
};

/// `ours` is made non-blocking. Anybody in the sandbox who holds the other end may open it again by
/// /dev/stdout, which asks for the permission bits.
result<pipe_ends> make_pipe(bool we_read) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0)
    return errno_error(errno, "make a pipe");
  ::fchmod(fds[0], 0666);
  ::fcntl(fds[we_read ? 0 : 1], F_SETFL, O_NONBLOCK);
  return pipe_ends{kj::AutoCloseFd{fds[0]}, kj::AutoCloseFd{fds[1]}};
}

result<kj::AutoCloseFd> memory_of(const std::string& block) {
  kj::AutoCloseFd file{::memfd_create("dsec-exec", MFD_CLOEXEC)};
  if (file.get() < 0)
    return errno_error(errno, "make the argument block");
  if (::write(file, block.data(), block.size()) != static_cast<ssize_t>(block.size()))
    return errno_error(errno, "write the argument block");
  return file;
}

} // namespace

command::command(command_surroundings around, std::uint64_t id, command_request request)
  : around_{around},
    id_{id},
    request_{std::move(request)},
    finished_{nullptr},
    out_task_{nullptr},
    err_task_{nullptr},
    deadline_task_{nullptr},
    late_task_{nullptr} {
  auto pair = kj::newPromiseAndFulfiller<void>();
  tell_ended_ = kj::mv(pair.fulfiller);
  finished_ = pair.promise.then([this] { return drain(); }).fork();
}

command::~command() noexcept(false) {
  if (group_)
    around_.groups.release(std::move(group_));
}

kj::Promise<result<void>> command::start(const identity& who) {
  began_ = clock::now();
  // A process that joins a group is not refused there; only its own forks are.
  if (around_.given.processes != 0 && around_.counts.processes() >= around_.given.processes) {
    oom_before_ = around_.counts.oom_kills();
    start_ = result<void>{};
    end(kind::PIDS_LIMIT, 0);
    return result<void>{};
  }
  auto asked = ask_reaper(who);
  if (!asked)
    return result<void>{asked.error()};
  out_task_ = out_->run().eagerlyEvaluate([](kj::Exception&&) {});
  err_task_ = err_->run().eagerlyEvaluate([](kj::Exception&&) {});
  if (request_.deadline_ms != 0) {
    deadline_left_ = std::chrono::milliseconds{request_.deadline_ms};
    thaw_clock();
  }
  return started();
}

result<void> command::ask_reaper(const identity& who) {
  auto out = make_pipe(true);
  auto err = out ? make_pipe(true) : result<pipe_ends>{out.error()};
  auto status = err ? make_pipe(true) : result<pipe_ends>{err.error()};
  auto in = status && request_.has_stdin ? make_pipe(false) : result<pipe_ends>{pipe_ends{}};
  for (const auto* made : {&out, &err, &status, &in})
    if (!*made)
      return made->error();
  auto block = memory_of(request_.block);
  if (!block)
    return block.error();
  auto group = around_.groups.acquire();
  if (!group)
    return group.error();
  group_ = std::move(*group);
  out_ = kj::heap<output_stream>(around_.port, kj::mv(out->reading), request_.spool_bytes);
  err_ = kj::heap<output_stream>(around_.port, kj::mv(err->reading), request_.spool_bytes);
  if (request_.has_stdin)
    in_ = kj::refcounted<input_pipe>(around_.port, kj::mv(in->writing));
  status_ = kj::mv(status->reading);
  status_observer_ =
    kj::heap<kj::UnixEventPort::FdObserver>(around_.port, status_.get(),
                                            kj::UnixEventPort::FdObserver::OBSERVE_READ);

  reaper::spawn_request ask;
  ask.exec_id = id_;
  ask.uid = who.uid;
  ask.gid = who.gid;
  ask.group_count = static_cast<std::uint32_t>(who.groups.size());
  for (std::size_t i = 0; i < who.groups.size(); ++i)
    ask.groups[i] = who.groups[i];
  ask.argument_count = request_.arguments;
  ask.variable_count = request_.variables;
  ask.block_bytes = static_cast<std::uint32_t>(request_.block.size());
  std::vector<int> descriptors{
    block->get(),          request_.has_stdin ? in->reading.get() : around_.null_device,
    out->writing.get(),    err->writing.get(),
    status->writing.get(), group_->procs()};
  for (int joined : {around_.memory_procs, around_.pids_procs, around_.cpu_procs})
    if (joined >= 0)
      descriptors.push_back(joined);
  ask.join_count = static_cast<std::uint32_t>(descriptors.size()) - reaper::descriptors_fixed;

  oom_before_ = around_.counts.oom_kills();
  refusals_before_ = around_.counts.forks_refused();
  began_ = clock::now();
  return around_.reaper.spawn(ask, descriptors);
}

kj::Promise<result<void>> command::started() {
  KJ_IF_MAYBE (known, start_) {
    return result<void>{*known};
  }
  if (auto read = read_status(); start_ != nullptr)
    return read;
  return status_observer_->whenBecomesReadable().then(
    [this] { return started(); },
    // Told by PID 1 instead, meanwhile.
    [this](kj::Exception&&) -> kj::Promise<result<void>> {
      KJ_IF_MAYBE (known, start_) {
        return result<void>{*known};
      }
      return result<void>{error{errc::unavailable, "start '" + request_.program + "'"}};
    });
}

result<void> command::read_status() {
  reaper::spawn_failure failure;
  const ssize_t n = ::read(status_, &failure, sizeof failure);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return {};
  result<void> known;
  if (n == static_cast<ssize_t>(sizeof failure)) {
    if (failure.where == reaper::stage::execute && failure.number == EAGAIN) {
      end(kind::PIDS_LIMIT, 0);
    } else {
      known = describe(failure);
      end(kind::INFRASTRUCTURE, 0);
    }
  }
  start_ = known;
  status_observer_ = nullptr;
  status_ = nullptr;
  // Killed before it had joined its group: it has now.
  if (known && killed_because_ != nullptr)
    (void)group_->kill();
  return known;
}

error command::describe(const reaper::spawn_failure& failure) const {
  using reaper::stage;
  const auto& program = request_.program;
  switch (failure.where) {
  case stage::directory:
    if (failure.number == ENOENT || failure.number == ENOTDIR)
      return {errc::not_found,
              "start '" + program + "' in directory '" + request_.cwd + "': no such directory"};
    return {errc::invalid_argument, "start '" + program + "' in directory '" + request_.cwd
                                      + "': " + std::strerror(failure.number)};
  case stage::identity:
    return {errc::invalid_argument, "start '" + program + "' as user '" + request_.user
                                      + "': not an id of this sandbox (0 to 65535)"};
  case stage::execute:
    switch (failure.number) {
    case ENOENT:
    case ENOTDIR:
      return {errc::not_found, "start '" + program + "': no such program"};
    case EACCES:
    case EPERM:
    case ENOEXEC:
    case EISDIR:
      return {errc::invalid_argument,
              "start '" + program + "': not executable (" + std::strerror(failure.number) + ")"};
    case E2BIG:
      return {errc::invalid_argument, "start '" + program
                                        + "': argv and env together are larger than the limit "
                                          "(2 MiB, one element 128 KiB)"};
    default:
      break;
    }
    break;
  case stage::read_block:
  case stage::join_group:
  case stage::standard_streams:
    break;
  }
  auto e =
    errno_error(failure.number, "start '" + program + "' (stage "
                                  + std::to_string(static_cast<unsigned>(failure.where)) + ")");
  return {errc::unavailable, e.message};
}

void command::told(const reaper::event& event) {
  // Its status descriptor is closed by now; what it wrote there comes first.
  if (start_ == nullptr && event.what != reaper::verb::not_cloned)
    (void)read_status();
  if (event.what == reaper::verb::not_cloned) {
    start_ = result<void>{};
    status_observer_ = nullptr;
    if (event.value == EAGAIN) {
      end(kind::PIDS_LIMIT, 0);
    } else {
      start_ = result<void>{errno_error(event.value, "start '" + request_.program + "'")};
      end(kind::INFRASTRUCTURE, 0);
    }
    return;
  }
  if (!ended_)
    decide(event);
}

void command::decide(const reaper::event& event) {
  if (event.what == reaper::verb::signalled) {
    KJ_IF_MAYBE (because, killed_because_) {
      return end(*because, event.value);
    }
    if (event.value == SIGKILL && saw_oom_kill()) {
      limit_bytes_ = around_.given.memory_bytes;
      peak_bytes_ = around_.counts.memory_peak_bytes();
      return end(kind::OOM_KILLED, event.value);
    }
    return end(kind::SIGNALLED, event.value);
  }
  if (event.value != 0 && disk_is_full(around_.given.scratch_dir)) {
    limit_bytes_ = peak_bytes_ = around_.given.disk_bytes;
    return end(kind::DISK_FULL, event.value);
  }
  if (event.value != 0 && around_.counts.forks_refused() > refusals_before_)
    return end(kind::PIDS_LIMIT, event.value);
  end(kind::EXITED, event.value);
}

bool command::saw_oom_kill() const {
  return around_.counts.oom_kills() > oom_before_;
}

void command::settle(kind k, std::string cause) {
  if (ended_)
    return;
  if (start_ == nullptr) {
    start_ = result<void>{};
    status_observer_ = nullptr;
  }
  cause_ = std::move(cause);
  if (k == kind::SELF_INFLICTED && saw_oom_kill()) {
    limit_bytes_ = around_.given.memory_bytes;
    peak_bytes_ = around_.counts.memory_peak_bytes();
    k = kind::OOM_KILLED;
  }
  end(k, 0);
}

void command::end(kind k, std::int32_t code) {
  if (ended_)
    return;
  ended_ = true;
  kind_ = k;
  code_ = code;
  const auto kills = around_.counts.oom_kills();
  oom_kills_ = static_cast<std::uint32_t>(kills > oom_before_ ? kills - oom_before_ : 0);
  duration_ = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - began_);
  clock_runs_ = false;
  deadline_task_ = nullptr;
  if (in_)
    in_->close();
  tell_ended_->fulfill();
}

kj::Promise<void> command::drain() {
  if (!out_ || !err_)
    return kj::READY_NOW;
  auto both = out_->end().then([this] { return err_->end(); });
  return both.exclusiveJoin(around_.timer.afterDelay(linger)).then([this] {
    out_->seal();
    err_->seal();
  });
}

} // namespace dsec::init
