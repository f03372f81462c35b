#pragma once

#include <cstdint>
#include <string_view>

namespace dsec::init {

/// For the judgement whether a command failed for want of disk. The kernel tells nobody whose write
/// it refused. A command that failed while the disk is full is blamed if nobody else ran meanwhile
/// and the disk was not full when it began, or if its output says so in the C library's words,
/// which the runtimes of other languages use too. What that misses is told as the exit code that it
/// was.
class disk_probe {
public:
  /// `folder` is the sandbox's disk; it stays open. -1: it is never full.
  explicit disk_probe(int folder) : folder_{folder} {}

  /// A command's time.
  struct stay {
    std::uint64_t number = 0;
    bool alone = false;
    bool full_before = false;
  };

  stay enter();

  void leave() {
    --inside_;
  }

  /// The disk limit is reached at this moment: a small file cannot be written.
  bool full();

  /// Nobody else ran since it entered, when the disk was not full.
  bool alone(const stay& whose) const {
    return whose.alone && !whose.full_before && whose.number == entered_;
  }

  /// Words of ENOSPC or EDQUOT are in it.
  static bool is_said_in(std::string_view output);

private:
  int folder_;
  bool full_ = false; ///< When it was looked at last.
  std::uint64_t entered_ = 0;
  unsigned inside_ = 0;
};

} // namespace dsec::init
