#include "backends/init/command.hpp"

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

kj::AutoCloseFd copy_of(int fd) {
  return kj::AutoCloseFd{::fcntl(fd, F_DUPFD_CLOEXEC, 3)};
}

pipe_ends as_output(const terminal_ends& of) {
  return {copy_of(of.outer), copy_of(of.inner)};
}

pipe_ends as_input(terminal_ends of) {
  return {kj::mv(of.inner), kj::mv(of.outer)};
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
  if (disk_stay_.number != 0 && !ended_)
    around_.disk.leave();
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
  const bool on_terminal = terminal_.inner.get() >= 0;
  auto out = on_terminal ? result<pipe_ends>{as_output(terminal_)} : make_pipe(true);
  // On a terminal there is but one stream of output: nobody writes to this one.
  auto err = out ? make_pipe(true) : result<pipe_ends>{out.error()};
  auto status = err && watched ? make_pipe(true) : result<pipe_ends>{pipe_ends{}};
  auto in = result<pipe_ends>{pipe_ends{}};
  if (on_terminal)
    in = as_input(kj::mv(terminal_));
  else if (status && request_.has_stdin)
    in = make_pipe(false);
  for (const auto* made : {&out, &err, &status, &in})
    if (!*made)
      return made->error();
  auto group = around_.groups.acquire();
  if (!group)
    return group.error();
  group_ = std::move(*group);
  out_ = kj::heap<output_stream>(around_.port, kj::mv(out->reading), request_.spool_bytes);
  err_ = kj::heap<output_stream>(around_.port, kj::mv(err->reading), request_.spool_bytes);
  if (in->writing.get() >= 0)
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
  // The request has room for so many, whoever counted them.
  ask.group_count =
    static_cast<std::uint32_t>(std::min<std::size_t>(who.groups.size(), reaper::groups_max));
  std::copy_n(who.groups.begin(), ask.group_count, ask.groups);
  ask.argument_count = request_.arguments;
  ask.variable_count = request_.variables;
  oom_before_ = around_.groups.oom_kills(*group_);
  refusals_before_ = around_.groups.forks_refused(*group_);
  disk_stay_ = around_.disk.enter();
  began_ = clock::now();
  auto asked = around_.reaper.spawn(ask, request_.block,
                                    {out->writing, on_terminal ? out->writing : err->writing,
                                     in->reading, status->writing, on_terminal},
                                    *group_);
  request_.block = {};
  // Without PID 1 it has the end that all others have, which `settle` tells.
  return asked || around_.reaper.gone() ? result<void>{} : asked;
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
  case stage::directory: {
    const auto cwd = "start '" + program + "': cwd '" + request_.cwd + "' ";
    if (failure.value == ENOENT)
      return {errc::not_found, cwd + "does not exist"};
    if (failure.value == ENOTDIR)
      return {errc::invalid_argument, cwd + "is not a directory"};
    return {errc::invalid_argument, cwd + "may not be entered: " + std::strerror(failure.value)};
  }
  case stage::identity:
    return {errc::invalid_argument, "start '" + program + "': user '" + request_.user
                                      + "' is not an id of this sandbox (0 to 65535)"};
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
    case ELIBACC:
      return {errc::not_executable,
              "start '" + program
                + "': not executable (it is there, but not the interpreter or dynamic linker that "
                  "it names)"};
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
  // An outcome is decided once, whatever PID 1 says later.
  if (ended_ && (event.what == reaper::verb::not_cloned || event.what == reaper::verb::not_started))
    return;
  switch (event.what) {
  case reaper::verb::not_cloned:
    if (event.value == EAGAIN)
      return no_process();
    return refuse(errno_error(event.value, "start '" + request_.program + "'"));
  case reaper::verb::not_started:
    if (event.where == reaper::stage::execute && event.value == EAGAIN)
      return no_process();
    return refuse(describe(event));
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

void command::read_output() {
  out_->begin();
  err_->begin();
}

void command::drain() {
  if (!out_ || !err_)
    return finish();
  const bool out_ended = out_->pull();
  if (err_->pull() && out_ended)
    return finish();
  read_output();
  auto both = out_->end().then([this] { return err_->end(); });
  output_task_ = both.exclusiveJoin(around_.timer.afterDelay(linger))
                   .then([this] {
                     out_->seal();
                     err_->seal();
                     finish();
                   })
                   .eagerlyEvaluate([](kj::Exception&&) {});
}

} // namespace dsec::init
