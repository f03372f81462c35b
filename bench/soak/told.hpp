#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace dsec::bench {

/// Lines to the driver, whole ones, from any thread.
class told {
public:
  void acked(const std::string& box, std::uint64_t step);
  void wrong(const std::string& text);

  void did() {
    ++verbs_;
  }

  /// The verbs since the last call.
  void tell_verbs();

private:
  std::atomic<std::uint64_t> verbs_{0};
};

} // namespace dsec::bench
