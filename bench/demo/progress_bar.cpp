#include "bench/demo/progress_bar.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdio>
#include <unistd.h>
#include <utility>

namespace dsec::demo {

namespace {

constexpr std::uint64_t bar_cells = 28;

unsigned columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

} // namespace

progress_bar::progress_bar(std::string title)
  : title_{std::move(title)},
    terminal_{::isatty(STDERR_FILENO) == 1} {}

void progress_bar::update(std::uint64_t done, std::uint64_t total, const std::string& note) {
  done_ = done;
  total_ = total;
  note_ = note;
  auto now = std::chrono::steady_clock::now();
  if (now < next_)
    return;
  next_ = now + (terminal_ ? std::chrono::milliseconds{100} : std::chrono::milliseconds{3000});
  draw();
}

void progress_bar::finish() {
  draw();
  if (terminal_)
    fmt::print(stderr, "\n");
}

void progress_bar::draw() {
  auto total = std::max<std::uint64_t>(total_, 1);
  if (!terminal_) {
    fmt::print(stderr, "{}: {}/{} {}\n", title_, done_, total_, note_);
    return;
  }
  auto full = std::min(done_, total) * bar_cells / total;
  auto line = fmt::format("{} [{:#<{}}{:.<{}}] {}/{} {}", title_, "", full, "", bar_cells - full,
                          done_, total_, note_);
  // Never wraps: a wrapped line cannot be drawn over.
  if (line.size() >= columns())
    line.resize(columns() - 1);
  fmt::print(stderr, "\r{}\x1b[K", line);
  std::fflush(stderr);
}

} // namespace dsec::demo
