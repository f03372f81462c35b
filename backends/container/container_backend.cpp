#include "backends/container/container_backend.hpp"

#include "backends/container/init_fate.hpp"
#include "backends/container/init_link.hpp"
#include "backends/container/wire.hpp"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>
#include <vector>

namespace dsec {

/// What lives in the loop. Closures hold it weakly: once it is gone they do nothing.
struct container_backend::inside : std::enable_shared_from_this<inside> {
  io_loop& loop;
  std::filesystem::path run_dir;
  backend_events events;
  std::unique_ptr<spawner_link> spawner;
  std::shared_ptr<init_fates> fates;
  std::unordered_map<sandbox_id, std::shared_ptr<init_link>> links;
  /// Whose commands are being ended, for the sandbox to be destroyed then.
  std::vector<std::shared_ptr<init_link>> stopping;
  std::shared_ptr<acknowledgements> durable;
  std::string prefix;
  std::uint64_t epoch = 0;

  inside(io_loop& x, spawner_options options, backend_events told,
         std::shared_ptr<acknowledgements> known)
    : loop{x},
      run_dir{options.run_dir},
      events{std::move(told)},
      spawner{std::make_unique<spawner_link>(x, std::move(options))},
      fates{std::make_shared<init_fates>(x, *spawner, run_dir)},
      durable{std::move(known)} {}

  ~inside() {
    for (auto& [_, link] : links)
      link->close(init_link::ending::silent);
    for (auto& link : stopping)
      link->close(init_link::ending::silent);
  }

  std::filesystem::path socket_of(const sandbox_id& id) const {
    return run_dir / (id.str() + ".sock");
  }

  init_link* link(const sandbox_id& id) {
    auto i = links.find(id);
    return i == links.end() ? nullptr : i->second.get();
  }

  error unconnected(const sandbox_id& id) const {
    return {errc::unavailable, fmt::format("{}: not connected to its dsec-init", id)};
  }

  /// Dials dsec-init and keeps the link; one that is there is asked what it finds now.
  void connect(const sandbox_id& id, completion<found_sandbox> done) {
    if (fates->lost(id))
      return done(error{errc::unavailable, fmt::format("{}: the link to its dsec-init broke", id)});
    if (auto i = links.find(id); i != links.end())
      return loop.spawn(
        i->second->enter(epoch).then([done, known = i->second](result<void> entered) {
          done(entered ? result<found_sandbox>{known->found()} : entered.error());
        }));
    loop.spawn(init_link::open(loop, id, socket_of(id), epoch, durable)
                 .then([weak = weak_from_this(), id, done](auto opened) {
                   auto self = weak.lock();
                   if (!self)
                     return;
                   if (!opened)
                     return done(opened.error());
                   auto made = *opened;
                   made->on_lost([weak, id, raw = made.get()](std::string why) {
                     if (auto alive = weak.lock())
                       alive->lost(id, raw, std::move(why));
                   });
                   self->links[id] = made;
                   done(made->found());
                 })
                 .catch_([done, id](kj::Exception&& e) {
                   done(wire::broken(fmt::format("connect to {}", id), e));
                 }));
  }

  void lost(const sandbox_id& id, const init_link* which, std::string why) {
    auto i = links.find(id);
    if (i == links.end() || i->second.get() != which)
      return;
    auto gone = std::move(i->second);
    links.erase(i);
    fates->find_out(id, std::move(why), [weak = weak_from_this(), id](result<sandbox_end> end) {
      if (auto self = weak.lock(); self && end)
        self->events.ended(id, *end);
    });
    gone->close(init_link::ending::broken);
    durable->take(id);
  }

  void ended_by_itself(const sandbox_id& id, completion<sandbox_end> done) {
    // Whoever was refused by a link that has just broken may ask before it is told.
    if (auto* known = link(id); known && known->is_broken())
      lost(id, known, "it was disconnected");
    fates->ask(id, std::move(done));
  }

  void start(const start_spec& spec, completion<void> done) {
    spawner->create(spec, [weak = weak_from_this(), id = spec.id, done](result<void> built) {
      auto self = weak.lock();
      if (!self)
        return;
      if (!built)
        return done(built);
      self->connect(id, [done](result<found_sandbox> x) {
        done(x ? result<void>{} : result<void>{x.error()});
      });
    });
  }

  void stop(const sandbox_id& id, completion<void> done) {
    auto i = links.find(id);
    if (i == links.end())
      return destroy(id, std::move(done));
    auto* link = i->second.get();
    // Whatever breaks it from here on is not a loss.
    stopping.push_back(std::move(i->second));
    links.erase(i);
    link->stop_commands([weak = weak_from_this(), id, link, done] {
      auto self = weak.lock();
      if (!self)
        return;
      link->close(init_link::ending::stopped);
      std::erase_if(self->stopping, [&](const auto& x) { return x.get() == link; });
      self->destroy(id, done);
    });
  }

  void destroy(const sandbox_id& id, completion<void> done) {
    durable->take(id);
    fates->forget(id);
    spawner->destroy(id, std::move(done));
  }

  void inventory(completion<std::vector<live_sandbox>> done) {
    spawner->list([prefix = prefix, done](result<std::vector<live_sandbox>> all) {
      if (all)
        std::erase_if(*all, [&](const auto& x) { return !x.id.str().starts_with(prefix); });
      done(std::move(all));
    });
  }
};

container_backend::container_backend(io_loop& loop, spawner_options options, backend_events events)
  : loop_{loop},
    durable_{std::make_shared<acknowledgements>()} {
  loop_.run([&] {
    inside_ = std::make_shared<inside>(loop_, std::move(options), std::move(events), durable_);
  });
}

container_backend::~container_backend() {
  close();
}

void container_backend::close() {
  loop_.run([this] { inside_.reset(); });
}

template <class Work>
void container_backend::in_loop(Work work) {
  loop_.post([weak = std::weak_ptr{inside_}, work = std::move(work)]() mutable {
    if (auto self = weak.lock())
      work(*self);
  });
}

void container_backend::identify(const node_id& node, std::uint64_t epoch) {
  in_loop([prefix = node.str() + "-", epoch](inside& x) {
    x.prefix = prefix;
    x.epoch = epoch;
    x.spawner->identify(epoch);
  });
}

void container_backend::hello(completion<spawner_report> done) {
  in_loop([done = std::move(done)](inside& x) { x.spawner->hello(done); });
}

void container_backend::warm(std::uint32_t sandboxes, completion<void> done) {
  in_loop([sandboxes, done = std::move(done)](inside& x) { x.spawner->warm(sandboxes, done); });
}

void container_backend::start(const start_spec& spec, completion<void> done) {
  in_loop([spec, done = std::move(done)](inside& x) { x.start(spec, done); });
}

void container_backend::adopt(const sandbox_id& id, completion<found_sandbox> done) {
  in_loop([id, done = std::move(done)](inside& x) { x.connect(id, done); });
}

void container_backend::ended_by_itself(const sandbox_id& id, completion<sandbox_end> done) {
  in_loop([id, done = std::move(done)](inside& x) { x.ended_by_itself(id, done); });
}

void container_backend::pause(const sandbox_id& id, completion<void> done) {
  in_loop([id, done = std::move(done)](inside& x) {
    auto* link = x.link(id);
    link ? link->pause(done) : done(x.unconnected(id));
  });
}

void container_backend::reclaim(const sandbox_id& id, completion<reclaim_report> done) {
  in_loop([id, done = std::move(done)](inside& x) {
    auto* link = x.link(id);
    link ? link->reclaim(done) : done(x.unconnected(id));
  });
}

void container_backend::resume(const sandbox_id& id, completion<void> done) {
  in_loop([id, done = std::move(done)](inside& x) {
    auto* link = x.link(id);
    link ? link->resume(done) : done(x.unconnected(id));
  });
}

void container_backend::stop(const sandbox_id& id, completion<void> done) {
  in_loop([id, done = std::move(done)](inside& x) { x.stop(id, done); });
}

void container_backend::exec(const sandbox_id& id, std::shared_ptr<const exec_call> call,
                             completion<exec_result> done) {
  in_loop([id, call = std::move(call), done = std::move(done)](inside& x) {
    auto* link = x.link(id);
    link ? link->exec(call, done) : done(x.unconnected(id));
  });
}

void container_backend::cancel(const sandbox_id& id, exec_id exec) {
  in_loop([id, exec](inside& x) {
    if (auto* link = x.link(id))
      link->cancel(exec);
  });
}

void container_backend::signal(const sandbox_id& id, exec_id exec, int number) {
  in_loop([id, exec, number](inside& x) {
    if (auto* link = x.link(id))
      link->signal(exec, number);
  });
}

void container_backend::forget(const sandbox_id& id, exec_id exec) {
  durable_->add(id, exec);
}

void container_backend::discard(const sandbox_id& id, const std::vector<exec_id>& execs) {
  in_loop([id, execs](inside& x) {
    if (auto* link = x.link(id))
      link->discard(execs);
  });
}

void container_backend::file(const sandbox_id& id, file_request request,
                             completion<file_reply> done) {
  in_loop([id, request = std::move(request), done = std::move(done)](inside& x) mutable {
    auto* link = x.link(id);
    link ? link->file(std::move(request), done) : done(x.unconnected(id));
  });
}

void container_backend::process(const sandbox_id& id, process_request request,
                                completion<process_reply> done) {
  in_loop([id, request = std::move(request), done = std::move(done)](inside& x) mutable {
    auto* link = x.link(id);
    link ? link->process(std::move(request), done) : done(x.unconnected(id));
  });
}

void container_backend::set_clocks(const sandbox_id& id, const sandbox_clocks& clocks,
                                   completion<void> done) {
  in_loop([id, clocks, done = std::move(done)](inside& x) {
    auto* link = x.link(id);
    link ? link->set_clocks(clocks, done) : done(x.unconnected(id));
  });
}

void container_backend::stats(const sandbox_id& id, completion<sandbox_stats> done) {
  in_loop([id, done = std::move(done)](inside& x) {
    auto* link = x.link(id);
    link ? link->stats(done) : done(x.unconnected(id));
  });
}

void container_backend::renew(const std::vector<sandbox_id>& ids, const lease_terms& lease) {
  in_loop([ids, lease](inside& x) {
    for (const auto& id : ids)
      if (auto* link = x.link(id))
        link->renew(lease);
  });
}

void container_backend::inventory(completion<std::vector<live_sandbox>> done) {
  in_loop([done = std::move(done)](inside& x) { x.inventory(done); });
}

} // namespace dsec
