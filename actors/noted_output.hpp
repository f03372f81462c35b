#pragma once

#include "backends/backend.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace dsec {

/// Passes a command's live output on and notes the first of it, so that it is known what the caller
/// has seen when whoever ran the command cannot say any more. Any thread.
class noted_output final : public output_sink {
public:
  noted_output(std::shared_ptr<output_sink> to, std::uint64_t spool_bytes)
    : to_{std::move(to)},
      spool_bytes_{spool_bytes} {}

  /// The command is joined again: what was sent comes once more.
  void begin_again() {
    std::scoped_lock lock{mutex_};
    out_ = {};
    err_ = {};
  }

  /// Fills in both streams as far as they came.
  void tell(exec_result& to) const {
    std::scoped_lock lock{mutex_};
    to.out = out_.kept;
    to.out_bytes = out_.bytes;
    to.err = err_.kept;
    to.err_bytes = err_.bytes;
  }

  void write(stream which, std::string bytes, std::function<void()> ready) override {
    {
      std::scoped_lock lock{mutex_};
      auto& x = which == stream::out ? out_ : err_;
      x.bytes += bytes.size();
      if (x.kept.size() < spool_bytes_)
        x.kept.append(bytes, 0, spool_bytes_ - x.kept.size());
    }
    to_->write(which, std::move(bytes), std::move(ready));
  }

  void skipped(stream which, std::uint64_t bytes) override {
    to_->skipped(which, bytes);
  }

  std::shared_ptr<input_source> input() override {
    return to_->input();
  }

private:
  struct noted {
    std::string kept;
    std::uint64_t bytes = 0;
  };

  std::shared_ptr<output_sink> to_;
  const std::uint64_t spool_bytes_;
  mutable std::mutex mutex_;
  noted out_, err_;
};

} // namespace dsec
