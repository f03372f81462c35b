#include "backends/init/init_server.hpp"

#include "backends/init/tree_server.hpp"
#include "backends/init/usage.hpp"
#include "backends/init/wire_error.hpp"
#include "backends/tree/pack_file.hpp"

#include <sys/stat.h>

namespace dsec::init {

namespace {

wire::FileStatus::Type type_of(mode_t mode) {
  if (S_ISREG(mode))
    return wire::FileStatus::Type::REGULAR;
  if (S_ISDIR(mode))
    return wire::FileStatus::Type::DIRECTORY;
  if (S_ISLNK(mode))
    return wire::FileStatus::Type::SYMLINK;
  return wire::FileStatus::Type::OTHER;
}

class init_server final : public wire::Init::Server {
public:
  init_server(sandbox& s, kj::Own<admission> a) : sandbox_{s}, admission_{kj::mv(a)} {}

  kj::Promise<void> exec(ExecContext context) override {
    admission_->check();
    return sandbox_.freeze.idle().then([this, context]() mutable -> kj::Promise<void> {
      admission_->check();
      const auto params = context.getParams();
      if (auto ok = may_start(params.getId()); !ok) {
        fill(context.getResults().initError(), ok.error());
        return kj::READY_NOW;
      }
      return sandbox_.commands.exec(params.getId(), params.getSpec(), params.getAttended())
        .then([this, context](result<kj::Own<command>>&& run) mutable {
          auto answer = context.getResults(capnp::MessageSize{64, 1});
          if (run)
            answer.setExec(make_exec_server(kj::mv(*run), kj::addRef(*admission_)));
          else
            fill(answer.initError(), run.error());
        });
    });
  }

  kj::Promise<void> run(RunContext context) override {
    admission_->check();
    for (auto id : context.getParams().getForget())
      sandbox_.commands.forget(id);
    // Whoever asked may ask again after it is gone; the command runs on.
    context.allowCancellation();
    if (!sandbox_.freeze.busy())
      return run_now(context);
    return sandbox_.freeze.idle().then([this, context]() mutable {
      admission_->check();
      return run_now(context);
    });
  }

  kj::Promise<void> cancel(CancelContext context) override {
    admission_->check();
    const auto id = context.getParams().getId();
    KJ_IF_MAYBE (run, sandbox_.commands.find(id)) {
      (*run)->cancel();
      return kj::READY_NOW;
    }
    // Its start may wait for a freeze or thaw.
    return sandbox_.freeze.idle().then([this, id] {
      KJ_IF_MAYBE (run, sandbox_.commands.find(id)) {
        (*run)->cancel();
      }
    });
  }

  kj::Promise<void> signal(SignalContext context) override {
    admission_->check();
    const auto params = context.getParams();
    auto done = result<void>{error{errc::not_found, "signal exec " + std::to_string(params.getId())
                                                      + ": there is none of this id"}};
    KJ_IF_MAYBE (run, sandbox_.commands.find(params.getId())) {
      done = (*run)->signal(params.getNumber());
    }
    if (!done)
      fill(context.getResults().initError(), done.error());
    return kj::READY_NOW;
  }

  kj::Promise<void> forget(ForgetContext context) override {
    admission_->check();
    for (auto id : context.getParams().getIds())
      sandbox_.commands.forget(id);
    return kj::READY_NOW;
  }

  kj::Promise<void> pause(PauseContext context) override {
    admission_->check();
    return sandbox_.freeze.pause().then([context](result<std::uint64_t>&& done) mutable {
      if (done)
        context.getResults().setFrozenUs(*done);
      else
        fill(context.getResults().initError(), done.error());
    });
  }

  kj::Promise<void> reclaim(ReclaimContext context) override {
    admission_->check();
    return sandbox_.freeze.reclaim().then([context](result<counters::reclaimed>&& done) mutable {
      auto answer = context.getResults();
      if (!done)
        return fill(answer.initError(), done.error());
      answer.setBeforeBytes(done->before_bytes);
      answer.setAfterBytes(done->after_bytes);
    });
  }

  kj::Promise<void> resume(ResumeContext context) override {
    admission_->check();
    return sandbox_.freeze.resume().then([context](result<void>&& done) mutable {
      if (!done)
        fill(context.getResults().initError(), done.error());
    });
  }

  kj::Promise<void> renew(RenewContext context) override {
    admission_->check();
    const auto params = context.getParams();
    sandbox_.leases.renew(params.getPauseInMs(), params.getStopInMs());
    return kj::READY_NOW;
  }

  kj::Promise<void> clocks(ClocksContext context) override {
    admission_->check();
    const auto params = context.getParams();
    sandbox_.clocks.set(params.getTimeToLiveMs(), params.getRolloutBudgetMs());
    return kj::READY_NOW;
  }

  kj::Promise<void> stats(StatsContext context) override {
    admission_->check();
    auto stats = context.getResults().initStats();
    const auto& counts = sandbox_.counts;
    stats.setTimeToLiveLeftMs(sandbox_.clocks.time_to_live_left_ms());
    stats.setRolloutBudgetLeftMs(sandbox_.clocks.rollout_budget_left_ms());
    stats.setMemoryBytes(counts.memory_bytes());
    stats.setMemoryPeakBytes(counts.memory_peak_bytes());
    stats.setSwapBytes(counts.swap_bytes());
    stats.setProcesses(counts.processes());
    stats.setCpuUs(counts.cpu_us());
    stats.setOomKills(sandbox_.groups.oom_kills());
    const auto& given = sandbox_.given_;
    stats.setMemoryLimitBytes(given.memory_bytes);
    stats.setProcessesLimit(given.processes);
    stats.setCpuLimitMilli(given.cpu_milli);
    stats.setDiskBytes(disk_bytes(sandbox_.privileged_.disk_account));
    stats.setDiskLimitBytes(given.disk_bytes);
    const auto traffic = block_traffic_of(given.payload_v2);
    stats.setReadBytes(traffic.read_bytes);
    stats.setWrittenBytes(traffic.written_bytes);
    return kj::READY_NOW;
  }

  kj::Promise<void> spawn(SpawnContext context) override {
    admission_->check();
    return spawn_process(sandbox_, kj::addRef(*admission_), context);
  }

  kj::Promise<void> processes(ProcessesContext context) override {
    admission_->check();
    sandbox_.processes.list(context.getResults());
    return kj::READY_NOW;
  }

  kj::Promise<void> process(ProcessContext context) override {
    admission_->check();
    find_process(sandbox_, kj::addRef(*admission_), context);
    return kj::READY_NOW;
  }

  kj::Promise<void> open(OpenContext context) override {
    admission_->check();
    const auto params = context.getParams();
    file_request request;
    request.path = string_of(params.getPath());
    request.permissions = params.getPermissions();
    if (auto ok = check_path(request.path); !ok) {
      fill(context.getResults().initError(), ok.error());
      return kj::READY_NOW;
    }
    const auto mode = params.getMode();
    switch (mode) {
    case wire::Init::OpenMode::READ:
      request.task = file_task::open_read;
      break;
    case wire::Init::OpenMode::WRITE:
      request.task = file_task::open_write;
      break;
    case wire::Init::OpenMode::APPEND:
      request.task = file_task::open_append;
      break;
    case wire::Init::OpenMode::LIST:
      request.task = file_task::open_directory;
      break;
    }
    const bool writes =
      request.task == file_task::open_write || request.task == file_task::open_append;
    request.make_parents = writes && params.getMakeParents();
    auto path = request.path;
    return sandbox_.files.run(std::move(request))
      .then([this, context, path, mode](result<file_answer>&& done) mutable {
        auto answer = context.getResults();
        if (!done)
          return fill(answer.initError(), done.error());
        if (done->status.number != 0)
          return fill(answer.initError(), file_error(done->status.number, "open", path));
        answer.setFile(
          make_file_server(sandbox_.files, kj::mv(done->file), mode == wire::Init::OpenMode::LIST,
                           mode == wire::Init::OpenMode::APPEND, kj::addRef(*admission_)));
      });
  }

  kj::Promise<void> status(StatusContext context) override {
    admission_->check();
    file_request request;
    request.task = file_task::status;
    request.path = string_of(context.getParams().getPath());
    if (auto ok = check_path(request.path); !ok) {
      fill(context.getResults().initError(), ok.error());
      return kj::READY_NOW;
    }
    auto path = request.path;
    return sandbox_.files.run(std::move(request))
      .then([context, path](result<file_answer>&& done) mutable {
        auto answer = context.getResults();
        if (!done)
          return fill(answer.initError(), done.error());
        if (done->status.number != 0)
          return fill(answer.initError(), file_error(done->status.number, "status of", path));
        fill_status(answer.initStatus(), done->status);
      });
  }

  kj::Promise<void> unpack(UnpackContext context) override {
    admission_->check();
    auto path = string_of(context.getParams().getPath());
    if (auto ok = check_path(path); !ok)
      fill(context.getResults().initError(), ok.error());
    else
      unpack_tree(sandbox_, kj::addRef(*admission_), std::move(path), context);
    return kj::READY_NOW;
  }

  kj::Promise<void> pack(PackContext context) override {
    admission_->check();
    auto path = string_of(context.getParams().getPath());
    if (auto ok = check_path(path))
      return pack_tree(sandbox_, std::move(path), context);
    else
      fill(context.getResults().initError(), ok.error());
    return kj::READY_NOW;
  }

  kj::Promise<void> replace(ReplaceContext context) override {
    admission_->check();
    const auto params = context.getParams();
    file_request request;
    request.path = string_of(params.getPath());
    request.permissions = params.getPermissions();
    request.make_parents = params.getMakeParents();
    if (auto ok = check_path(request.path); !ok) {
      fill(context.getResults().initError(), ok.error());
      return kj::READY_NOW;
    }
    return replace_file(sandbox_, kj::addRef(*admission_), std::move(request), context);
  }

private:
  /// Whether an exec may begin now, or is known already.
  result<void> may_start(std::uint64_t id) {
    if (sandbox_.freeze.phase() == freezer::phase_type::RUNNING
        || sandbox_.commands.find(id) != nullptr)
      return {};
    return error{errc::invalid_state,
                 "start exec " + std::to_string(id) + ": the sandbox is paused, resume it first"};
  }

  kj::Promise<void> run_now(RunContext context) {
    const auto params = context.getParams();
    if (auto ok = may_start(params.getId()); !ok) {
      fill(context.getResults().initError(), ok.error());
      return kj::READY_NOW;
    }
    auto ended = sandbox_.commands.run(params.getId(), params.getSpec());
    context.releaseParams();
    return ended.then([context](result<kj::Own<command>>&& run) mutable {
      if (!run)
        return fill(context.getResults().initError(), run.error());
      auto answer = context.getResults((*run)->answer_size());
      (*run)->fill(answer.initResult());
    });
  }

  static result<void> check_path(const std::string& path) {
    if (path.empty() || path[0] != '/' || path.size() > 4095 || path.find('\0') != path.npos)
      return error{errc::invalid_argument,
                   "path '" + path + "': must be absolute, at most 4095 bytes, without NUL"};
    return {};
  }

  sandbox& sandbox_;
  kj::Own<admission> admission_;
};

} // namespace

error file_error(int number, const char* what, const std::string& path) {
  const auto named = std::string(what) + " '" + path + "'";
  switch (number) {
  case ENXIO:
  case EISDIR:
    return {errc::invalid_argument, named + ": neither a regular file nor opened as a directory"};
  case EFBIG:
    return {errc::exhausted, named + ": it says that it has 0 bytes and has more than "
                               + std::to_string(unsized_bytes_max)
                               + ", which is the limit for such a file"};
  case EACCES:
  case EPERM:
  case ELOOP:
  case EROFS:
  case ENOTDIR:
  case EBUSY:
  case EXDEV:
    return {errc::invalid_argument, errno_error(number, named).message};
  default:
    return errno_error(number, named);
  }
}

void fill_status(wire::FileStatus::Builder to, const file_reading& from) {
  to.setType(type_of(from.mode));
  to.setMode(from.mode & 07777);
  to.setUid(from.uid);
  to.setGid(from.gid);
  to.setSize(from.size);
  to.setModifiedNs(from.modified_ns);
}

wire::Init::Client make_init_server(sandbox& served, kj::Own<admission> admitted) {
  return kj::heap<init_server>(served, kj::mv(admitted));
}

} // namespace dsec::init
