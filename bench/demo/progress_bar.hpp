#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dsec::demo {

/// One bar that redraws itself on stderr when that is a terminal; else a plain line now and then.
/// Not thread-safe.
class progress_bar {
public:
  explicit progress_bar(std::string title);

  /// `note` stands behind the bar. Draws at most ten times a second (plain lines: every three
  /// seconds).
  void update(std::uint64_t done, std::uint64_t total, const std::string& note);

  /// Draws the last state and ends the line.
  void finish();

private:
  void draw();

  std::string title_;
  bool terminal_;
  std::chrono::steady_clock::time_point next_{};
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
  std::string note_;
};

} // namespace dsec::demo
