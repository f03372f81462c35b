#pragma once

#include "state/store.hpp"

#include <functional>

namespace dsec {

/// The store beneath the journal, with one ear: tells each meta record once it is durable, so that
/// the backend knows its node and its epoch before the first sandbox is touched.
class noting_store final : public store {
public:
  noting_store(std::unique_ptr<store> inner, std::function<void(const meta_record&)> on_meta)
    : inner_{std::move(inner)},
      on_meta_{std::move(on_meta)} {}

  result<loaded_state> load() override {
    return inner_->load();
  }

  result<void> commit(const std::vector<std::shared_ptr<const write_batch>>& batches) override {
    auto done = inner_->commit(batches);
    if (done)
      for (const auto& batch : batches)
        for (const auto& meta : batch->meta)
          on_meta_(meta);
    return done;
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

private:
  std::unique_ptr<store> inner_;
  std::function<void(const meta_record&)> on_meta_;
};

} // namespace dsec
