#include "backends/init/command.hpp"

#include "backends/init/disk_probe.hpp"

#include <sys/stat.h>

#include <algorithm>
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

/// A collected command that runs longer than this has its output read as it comes, before its pipe
/// is full.
constexpr auto short_run = 2 * kj::MILLISECONDS;

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

} // namespace

command::command(command_surroundings around, std::uint64_t id, command_request request, manner how)
  : around_{around},
    id_{id},
    manner_{how},
    request_{std::move(request)},
    finished_{nullptr},
    deadline_task_{nullptr},
    late_task_{nullptr},
    output_task_{nullptr} {
  auto pair = kj::newPromiseAndFulfiller<void>();
  tell_finished_ = kj::mv(pair.fulfiller);
  finished_ = pair.promise.fork();
}

command::~command() noexcept(false) {
  if (group_)
    around_.groups.release(std::move(group_));
}

result<void> command::start(const identity& who) {
  began_ = clock::now();
  KJ_IF_MAYBE (because, killed_because_) {
    know_start({});
    end(*because, 0);
    return {};
  }
  // A process that joins a group is not refused there; only its own forks are.
  if (around_.given.processes != 0 && around_.counts.processes() >= around_.given.processes) {
    oom_before_ = around_.counts.oom_kills();
    know_start({});
    end(kind::PIDS_LIMIT, 0);
    return {};
  }
  auto asked = ask_reaper(who);
  if (!asked)
    return asked;
  if (manner_ == manner::attended) {
    out_->hold();
    err_->hold();
  }
  if (manner_ != manner::collected)
    read_output();
  else
    output_task_ = around_.timer.afterDelay(short_run)
                     .then([this] { read_output(); })
                     .eagerlyEvaluate([](kj::Exception&&) {});
  if (request_.deadline_ms != 0) {
    deadline_left_ = std::chrono::milliseconds{request_.deadline_ms};
    thaw_clock();
  }
  return {};
}

result<void> command::ask_reaper(const identity& who) {
  const bool watched = manner_ != manner::collected;
  auto out = make_pipe(true);
  auto err = out ? make_pipe(true) : result<pipe_ends>{out.error()};
  auto status = err && watched ? make_pipe(true) : result<pipe_ends>{pipe_ends{}};
  auto in = status && request_.has_stdin ? make_pipe(false) : result<pipe_ends>{pipe_ends{}};
  for (const auto* made : {&out, &err, &status, &in})
    if (!*made)
      return made->error();
  auto group = around_.groups.acquire();
  if (!group)
    return group.error();
  group_ = std::move(*group);
  out_ = kj::heap<output_stream>(around_.port, kj::mv(out->reading), request_.spool_bytes);
  err_ = kj::heap<output_stream>(around_.port, kj::mv(err->reading), request_.spool_bytes);
  if (request_.has_stdin)
    in_ = kj::refcounted<input_pipe>(around_.port, kj::mv(in->writing));
  if (watched) {
    status_ = kj::mv(status->reading);
    status_observer_ =
      kj::heap<kj::UnixEventPort::FdObserver>(around_.port, status_.get(),
                                              kj::UnixEventPort::FdObserver::OBSERVE_READ);
  }

  reaper::spawn_request ask;
  ask.exec_id = id_;
  ask.uid = who.uid;
  ask.gid = who.gid;
  ask.group_count = static_cast<std::uint32_t>(who.groups.size());
  std::copy(who.groups.begin(), who.groups.end(), ask.groups);
  ask.argument_count = request_.arguments;
  ask.variable_count = request_.variables;
  oom_before_ = around_.counts.oom_kills();
  refusals_before_ = around_.counts.forks_refused();
  began_ = clock::now();
  auto asked =
    around_.reaper.spawn(ask, request_.block,
                         {out->writing, err->writing, in->reading, status->writing}, *group_);
  request_.block = {};
  return asked;
}

kj::Promise<result<void>> command::started() {
  KJ_IF_MAYBE (known, start_) {
    return result<void>{*known};
  }
  char byte;
  if (::read(status_, &byte, 1) == 0) {
    // Closed: it runs, unless PID 1's socket says otherwise already.
    (void)around_.reaper.tell_pending();
    if (start_ == nullptr)
      know_start({});
    return started();
  }
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

void command::know_start(result<void> known) {
  start_ = std::move(known);
  status_observer_ = nullptr;
  status_ = nullptr;
}

void command::refuse(error why) {
  cause_ = why.message;
  know_start(std::move(why));
  end(kind::INFRASTRUCTURE, 0);
}

error command::describe(const reaper::event& failure) const {
  using reaper::stage;
  const auto& program = request_.program;
  switch (failure.where) {
  case stage::directory:
    if (failure.value == ENOENT || failure.value == ENOTDIR)
      return {errc::not_found,
              "start '" + program + "' in directory '" + request_.cwd + "': no such directory"};
    return {errc::invalid_argument, "start '" + program + "' in directory '" + request_.cwd
                                      + "': " + std::strerror(failure.value)};
  case stage::identity:
    return {errc::invalid_argument, "start '" + program + "' as user '" + request_.user
                                      + "': not an id of this sandbox (0 to 65535)"};
  case stage::execute:
    switch (failure.value) {
    case ENOENT:
    case ENOTDIR:
      return {errc::no_program, "start '" + program + "': no such program"};
    case EACCES:
    case EPERM:
    case ENOEXEC:
    case EISDIR:
      return {errc::not_executable,
              "start '" + program + "': not executable (" + std::strerror(failure.value) + ")"};
    case E2BIG:
      return {errc::invalid_argument, "start '" + program
                                        + "': argv and env together are larger than the limit "
                                          "(2 MiB, one element 128 KiB)"};
    default:
      break;
    }
    break;
  case stage::none:
  case stage::read_block:
  case stage::join_group:
  case stage::standard_streams:
    break;
  }
  auto e =
    errno_error(failure.value, "start '" + program + "' (stage "
                                 + std::to_string(static_cast<unsigned>(failure.where)) + ")");
  return {errc::unavailable, e.message};
}

void command::told(const reaper::event& event) {
  switch (event.what) {
  case reaper::verb::not_cloned:
    if (event.value != EAGAIN)
      return refuse(errno_error(event.value, "start '" + request_.program + "'"));
    know_start({});
    return end(kind::PIDS_LIMIT, 0);
  case reaper::verb::not_started:
    if (event.where != reaper::stage::execute || event.value != EAGAIN)
      return refuse(describe(event));
    know_start({});
    return end(kind::PIDS_LIMIT, 0);
  case reaper::verb::exited:
  case reaper::verb::signalled:
    if (start_ == nullptr)
      know_start({});
    // A child that was not in its group yet when that was killed may have begun something.
    if (killed_because_ != nullptr && group_)
      (void)group_->kill();
    if (!ended_)
      decide(event);
    return;
  default:
    return;
  }
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
  if (start_ == nullptr)
    know_start({});
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
  output_task_ = nullptr;
  if (in_)
    in_->close();
  drain();
}

void command::read_output() {
  out_->begin();
  err_->begin();
}

void command::drain() {
  if (!out_ || !err_)
    return tell_finished_->fulfill();
  const bool out_ended = out_->pull();
  if (err_->pull() && out_ended)
    return tell_finished_->fulfill();
  read_output();
  auto both = out_->end().then([this] { return err_->end(); });
  output_task_ = both.exclusiveJoin(around_.timer.afterDelay(linger))
                   .then([this] {
                     out_->seal();
                     err_->seal();
                     tell_finished_->fulfill();
                   })
                   .eagerlyEvaluate([](kj::Exception&&) {});
}

} // namespace dsec::init
