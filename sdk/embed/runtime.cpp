#include "sdk/embed/runtime.hpp"

#include "backends/container/container_backend.hpp"
#include "sdk/embed/event_followers.hpp"
#include "sdk/embed/handles.hpp"
#include "sdk/embed/noting_store.hpp"
#include "sdk/embed/state_lock.hpp"
#include "sdk/front/front.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/logger.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <future>
#include <thread>

namespace dsec {

namespace {

/// Ends of sandboxes, kept until the actors can be told.
class end_notices {
public:
  void tell(const sandbox_id& id, const sandbox_end& end) {
    std::scoped_lock lock{mutex_};
    if (target_)
      deliver_ended(*target_, id, end);
    else
      early_.emplace_back(id, end);
  }

  void open(const plane& target) {
    std::scoped_lock lock{mutex_};
    target_ = target;
    for (const auto& [id, end] : early_)
      deliver_ended(target, id, end);
    early_.clear();
  }

  void close() {
    std::scoped_lock lock{mutex_};
    target_.reset();
  }

private:
  std::mutex mutex_;
  std::optional<plane> target_;
  std::vector<std::pair<sandbox_id, sandbox_end>> early_;
};

/// One descriptor per sandbox, so the usual soft limit of 1024 is too low. The hard one stays.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

result<void> validate(const runtime_options& options) {
  auto run = options.run_dir.string();
  if (run.empty() || run.front() != '/' || run.size() > 60)
    return error{errc::invalid_argument,
                 fmt::format("runtime_options::run_dir \"{}\": absolute, at most 60 bytes", run)};
  if (!options.data_dir.is_absolute())
    return error{errc::invalid_argument, fmt::format("runtime_options::data_dir \"{}\": absolute",
                                                     options.data_dir.string())};
  if (options.backend_timeout.count() <= 0)
    return error{errc::invalid_argument, fmt::format("runtime_options::backend_timeout {} ms: more "
                                                     "than 0",
                                                     options.backend_timeout.count())};
  return {};
}

/// Waits until the spawner is there.
result<void> greet(container_backend& kernel, const runtime_options& options) {
  // The answer may come after this has given up.
  auto greeted = std::make_shared<std::promise<result<spawner_report>>>();
  auto answer = greeted->get_future();
  kernel.hello([greeted](result<spawner_report> x) { greeted->set_value(std::move(x)); });
  if (answer.wait_for(options.backend_timeout) != std::future_status::ready)
    return error{errc::unavailable,
                 fmt::format("open the runtime: dsec-spawner in {} did not answer within {} ms",
                             options.run_dir.string(), options.backend_timeout.count())};
  auto hello = answer.get();
  return hello ? result<void>{} : result<void>{hello.error()};
}

/// CAF notes in every thread that spawns actors for which system it did, and a system ends only
/// when no thread has such a note: the thread that opens need not be the one that closes.
struct note_dropped {
  ~note_dropped() {
    caf::logger::set_current_actor_system(nullptr);
  }
};

} // namespace

/// Members in the order in which they are made; `close` undoes it.
struct runtime::state {
  kj::AutoCloseFd lock;
  std::shared_ptr<event_followers> followers = std::make_shared<event_followers>();
  end_notices ends;
  std::unique_ptr<io_loop> loop;
  std::unique_ptr<container_backend> kernel;
  std::unique_ptr<noting_store> durable;
  caf::actor_system_config config;
  std::unique_ptr<caf::actor_system> system;
  std::optional<plane> actors;
  std::shared_ptr<runtime_core> core;
  std::unique_ptr<front> server;

  result<void> open(const std::filesystem::path& state_dir, const runtime_options& options);
  ~state();
};

result<void>
runtime::state::open(const std::filesystem::path& state_dir, const runtime_options& options) {
  if (auto valid = validate(options); !valid)
    return valid;
  auto locked = lock_state(state_dir);
  if (!locked)
    return locked.error();
  lock = kj::mv(*locked);
  auto opened = open_rocks_store(state_dir / "db");
  if (!opened)
    return opened.error();
  raise_descriptor_limit();

  loop = std::make_unique<io_loop>();
  kernel = std::make_unique<container_backend>(
    *loop, spawner_options{options.data_dir, options.run_dir, options.spawner},
    backend_events{[this](const sandbox_id& id, const sandbox_end& end) {
      ends.tell(id, end);
    }});
  if (auto up = greet(*kernel, options); !up)
    return up;

  durable = std::make_unique<noting_store>(
    std::move(*opened),
    [this](const meta_record& meta) { kernel->identify(meta.node, meta.epoch); },
    [this](const noting_store::batch_list& batches) { followers->committed(batches); });
  note_dropped when_left;
  configure(config,
            options.workers ? options.workers : std::max(1u, std::thread::hardware_concurrency()));
  system = std::make_unique<caf::actor_system>(config);
  plane_options wanted;
  wanted.capacity = options.capacity;
  wanted.tombstones = options.tombstones;
  wanted.backend_timeout = options.backend_timeout;
  auto started = start_plane(*system, *durable, *kernel, wanted);
  if (!started)
    return started.error();
  actors = std::move(*started);
  ends.open(*actors);
  core = std::make_shared<runtime_core>(*system, *actors, followers);
  if (options.warm > 0)
    kernel->warm(options.warm, [](result<void>) {});
  return {};
}

runtime::state::~state() {
  server.reset();
  if (core)
    core->close();
  followers->close();
  ends.close();
  // From here no completion reaches an actor.
  if (kernel)
    kernel->close();
  if (actors) {
    stop_plane(*actors);
    actors.reset();
  }
  system.reset();
  kernel.reset();
  loop.reset();
  durable.reset();
}

runtime::runtime() : state_{std::make_unique<state>()} {}

runtime::~runtime() = default;

result<std::unique_ptr<runtime>>
runtime::open(const std::filesystem::path& state_dir, runtime_options options) {
  std::unique_ptr<runtime> x{new runtime};
  if (auto opened = x->state_->open(state_dir, options); !opened)
    return opened.error();
  auto server = front::open(*x->state_->loop, *x, state_dir / "dsec.sock");
  if (!server)
    return server.error();
  x->state_->server = std::move(*server);
  return x;
}

/// Makes handles, which only a runtime may.
struct runtime::access {
  static job make_job(requester* self, const std::shared_ptr<runtime_core>& core, const job_id& id,
                      const job_actor& actor) {
    self->state.jobs.insert_or_assign(id, actor);
    job handle;
    handle.state_ = std::make_shared<job::state>();
    handle.state_->core = core;
    handle.state_->id = id;
    return handle;
  }
};

future<job> runtime::open_job(std::string name, job_options options) {
  auto core = state_->core;
  return core->ask<job>([core, id = job_id{std::move(name)},
                         lease = options.lease](requester* self, const debt<job>& owed) {
    self->request(self->state.cluster, caf::infinite, dsec::open_job{id, lease})
      .then([=](const job_actor& x) { owed.pay(access::make_job(self, core, id, x)); },
            [=](const caf::error& e) { owed.pay(from_caf(e, "the cluster")); });
  });
}

future<job> runtime::find_job(std::string name) {
  auto core = state_->core;
  return core->ask<job>(
    [core, id = job_id{std::move(name)}](requester* self, const debt<job>& owed) {
      self->request(self->state.cluster, caf::infinite, dsec::find_job{id})
        .then([=](const job_actor& x) { owed.pay(access::make_job(self, core, id, x)); },
              [=](const caf::error& e) { owed.pay(from_caf(e, "the cluster")); });
    });
}

future<sandbox> runtime::find(const sandbox_id& id) {
  auto core = state_->core;
  return core->ask<sandbox>([core, id](requester* self, const debt<sandbox>& owed) {
    sandbox handle;
    handle.state_ = std::make_shared<sandbox::state>();
    handle.state_->core = core;
    handle.state_->id = id;
    with_sandbox(
      self, id, [=](const sandbox_actor&) { owed.pay(handle); },
      [=](const error& e, const sandbox_info* tombstone) {
        owed.pay(tombstone ? result<sandbox>{handle} : result<sandbox>{e});
      });
  });
}

future<std::vector<sandbox_info>> runtime::list(bool with_ended) {
  return state_->core->ask<std::vector<sandbox_info>>(
    [with_ended](requester* self, const debt<std::vector<sandbox_info>>& owed) {
      self->request(self->state.cluster, caf::infinite, inventory_query{job_id{}, with_ended})
        .then([=](const inventory_ptr& x) { owed.pay(x->sandboxes); },
              [=](const caf::error& e) { owed.pay(from_caf(e, "the cluster")); });
    });
}

} // namespace dsec
