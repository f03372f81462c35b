#pragma once

#include "bench/demo/child.hpp"
#include "bench/demo/ledger.hpp"
#include "bench/waits.hpp"

#include <cstdint>
#include <filesystem>
#include <set>

namespace dsec::demo {

/// How far a trainer is, by the ledger that it is writing.
class ledger_watch {
public:
  /// `file` need not exist yet, but its folder must.
  explicit ledger_watch(std::filesystem::path file);

  /// Waits for more. False: there is none, and `trainer` has ended or `until` has passed.
  bool wait(child& trainer, bench::deadline until);

  /// Steps acknowledged.
  std::uint64_t acked() const {
    return acked_.size();
  }

  bool preempted() const {
    return preempted_;
  }

  /// Of `acked`, those since the job was preempted.
  std::uint64_t acked_since_preempted() const {
    return acked_since_preempted_;
  }

private:
  bool read_on();

  std::filesystem::path file_;
  bench::file_watch changes_;
  std::streamoff read_ = 0; ///< Whole lines alone: a killed trainer's last one is cut off.
  std::set<step_key> acked_;
  bool preempted_ = false;
  std::uint64_t acked_since_preempted_ = 0;
};

} // namespace dsec::demo
