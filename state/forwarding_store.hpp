#pragma once

#include "state/store.hpp"

#include <utility>

namespace dsec {

/// Another store beneath; who derives from it changes what it must.
class forwarding_store : public store {
public:
  explicit forwarding_store(std::unique_ptr<store> inner) : inner_{std::move(inner)} {}

  result<loaded_state> load(steps_of wanted) override {
    return inner_->load(wanted);
  }

  result<void> commit(const std::vector<std::shared_ptr<const write_batch>>& batches) override {
    return inner_->commit(batches);
  }

  result<step_record> step(const sandbox_id& sandbox, std::uint64_t step) override {
    return inner_->step(sandbox, step);
  }

  result<sandbox_history> history(const sandbox_id& sandbox) override {
    return inner_->history(sandbox);
  }

  result<job_record> job(const job_id& id) override {
    return inner_->job(id);
  }

  result<event_page> events(const job_id& job, std::uint64_t cursor, std::uint64_t count) override {
    return inner_->events(job, cursor, count);
  }

private:
  std::unique_ptr<store> inner_;
};

} // namespace dsec
