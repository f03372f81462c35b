#include "bench/soak/told.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unistd.h>

namespace dsec::bench {

namespace {

/// One write: the driver's pipe takes short lines whole, even if this process is killed.
void line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.resize(std::min<std::size_t>(text.size(), 2000));
  text += '\n';
  (void)!::write(STDOUT_FILENO, text.data(), text.size());
}

} // namespace

void told::acked(const std::string& box, std::uint64_t step) {
  line(fmt::format("ack {} {}", box, step));
}

void told::wrong(const std::string& text) {
  line("wrong " + text);
}

void told::tell_verbs() {
  line(fmt::format("did {}", verbs_.exchange(0)));
}

} // namespace dsec::bench
