#pragma once

#include "state/forwarding_store.hpp"

#include <functional>

namespace dsec {

/// The store beneath the journal, with one ear: tells each meta record once it is durable, so that
/// the backend knows its node and its epoch before the first sandbox is touched.
class noting_store final : public forwarding_store {
public:
  noting_store(std::unique_ptr<store> inner, std::function<void(const meta_record&)> on_meta)
    : forwarding_store{std::move(inner)},
      on_meta_{std::move(on_meta)} {}

  result<void> commit(const std::vector<std::shared_ptr<const write_batch>>& batches) override {
    auto done = forwarding_store::commit(batches);
    if (done)
      for (const auto& batch : batches)
        for (const auto& meta : batch->meta)
          on_meta_(meta);
    return done;
  }

private:
  std::function<void(const meta_record&)> on_meta_;
};

} // namespace dsec
