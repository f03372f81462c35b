#pragma once

#include "state/forwarding_store.hpp"

#include <functional>

namespace dsec {

/// The store beneath the journal, with two ears, both in the thread that commits. It tells each
/// meta record once it is durable, so that the backend knows its node and its epoch before the
/// first sandbox is touched; and batches that have events or jobs, so that followers read on, or
/// hear of the end.
class noting_store final : public forwarding_store {
public:
  using batch_list = std::vector<std::shared_ptr<const write_batch>>;

  noting_store(std::unique_ptr<store> inner, std::function<void(const meta_record&)> on_meta,
               std::function<void(const batch_list&)> on_news)
    : forwarding_store{std::move(inner)},
      on_meta_{std::move(on_meta)},
      on_news_{std::move(on_news)} {}

  result<void> commit(const batch_list& batches) override {
    auto done = forwarding_store::commit(batches);
    if (!done)
      return done;
    bool news = false;
    for (const auto& batch : batches) {
      for (const auto& meta : batch->meta)
        on_meta_(meta);
      news |= !batch->events.empty() || !batch->jobs.empty();
    }
    if (news)
      on_news_(batches);
    return done;
  }

private:
  std::function<void(const meta_record&)> on_meta_;
  std::function<void(const batch_list&)> on_news_;
};

} // namespace dsec
