#pragma once

#include "state/forwarding_store.hpp"

#include <functional>

namespace dsec {

/// The store beneath the journal, with two ears, both in the thread that commits. It tells each
/// meta record once it is durable, so that the backend knows its node and its epoch before the
/// first sandbox is touched; and batches that have events, so that their followers read on.
class noting_store final : public forwarding_store {
public:
  using batch_list = std::vector<std::shared_ptr<const write_batch>>;

  noting_store(std::unique_ptr<store> inner, std::function<void(const meta_record&)> on_meta,
               std::function<void(const batch_list&)> on_events)
    : forwarding_store{std::move(inner)},
      on_meta_{std::move(on_meta)},
      on_events_{std::move(on_events)} {}

  result<void> commit(const batch_list& batches) override {
    auto done = forwarding_store::commit(batches);
    if (!done)
      return done;
    bool events = false;
    for (const auto& batch : batches) {
      for (const auto& meta : batch->meta)
        on_meta_(meta);
      events |= !batch->events.empty();
    }
    if (events)
      on_events_(batches);
    return done;
  }

private:
  std::function<void(const meta_record&)> on_meta_;
  std::function<void(const batch_list&)> on_events_;
};

} // namespace dsec
