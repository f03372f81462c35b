#pragma once

#include "backends/backend.hpp"
#include "backends/kill_point.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace dsec {

/// The backend as actors call it: a crash test may end the process before and after every effect.
/// The backend outlives it.
class effects {
public:
  effects() = default;

  explicit effects(backend& kernel) : kernel_{&kernel} {}

  void start(const start_spec& spec, completion<void> done) const {
    around([&] { kernel_->start(spec, std::move(done)); });
  }

  void adopt(const sandbox_id& id, completion<found_sandbox> done) const {
    around([&] { kernel_->adopt(id, std::move(done)); });
  }

  void ended_by_itself(const sandbox_id& id, completion<sandbox_end> done) const {
    kernel_->ended_by_itself(id, std::move(done));
  }

  void pause(const sandbox_id& id, completion<void> done) const {
    around([&] { kernel_->pause(id, std::move(done)); });
  }

  void reclaim(const sandbox_id& id, completion<reclaim_report> done) const {
    around([&] { kernel_->reclaim(id, std::move(done)); });
  }

  void resume(const sandbox_id& id, completion<void> done) const {
    around([&] { kernel_->resume(id, std::move(done)); });
  }

  void stop(const sandbox_id& id, completion<void> done) const {
    around([&] { kernel_->stop(id, std::move(done)); });
  }

  void exec(const sandbox_id& id, std::shared_ptr<const exec_call> call,
            completion<exec_result> done) const {
    around([&] { kernel_->exec(id, std::move(call), std::move(done)); });
  }

  void cancel(const sandbox_id& id, exec_id exec) const {
    around([&] { kernel_->cancel(id, exec); });
  }

  void signal(const sandbox_id& id, exec_id exec, int number) const {
    around([&] { kernel_->signal(id, exec, number); });
  }

  void forget(const sandbox_id& id, exec_id exec) const {
    around([&] { kernel_->forget(id, exec); });
  }

  void discard(const sandbox_id& id, const std::vector<exec_id>& execs) const {
    around([&] { kernel_->discard(id, execs); });
  }

  void file(const sandbox_id& id, file_request request, completion<file_reply> done) const {
    around([&] { kernel_->file(id, std::move(request), std::move(done)); });
  }

  void
  process(const sandbox_id& id, process_request request, completion<process_reply> done) const {
    around([&] { kernel_->process(id, std::move(request), std::move(done)); });
  }

  void set_clocks(const sandbox_id& id, const sandbox_clocks& clocks, completion<void> done) const {
    around([&] { kernel_->set_clocks(id, clocks, std::move(done)); });
  }

  void stats(const sandbox_id& id, completion<sandbox_stats> done) const {
    kernel_->stats(id, std::move(done));
  }

  void renew(const std::vector<sandbox_id>& ids, const lease_terms& lease) const {
    around([&] { kernel_->renew(ids, lease); });
  }

  void inventory(completion<std::vector<live_sandbox>> done) const {
    kernel_->inventory(std::move(done));
  }

private:
  template <class Call>
  static void around(Call call) {
    kill_point(crash_role::node);
    call();
    kill_point(crash_role::node);
  }

  backend* kernel_ = nullptr;
};

} // namespace dsec
