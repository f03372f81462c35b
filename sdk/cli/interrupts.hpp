#pragma once

#include "sdk/cli/client.hpp"

#include <kj/async.h>

#include <functional>
#include <vector>

namespace dsec {

/// SIGINT and SIGTERM, heard in the event loop instead of ending this program. Made before it has
/// any thread, one at a time; afterwards the signals end it again.
class interrupts {
public:
  explicit interrupts(client& at);
  ~interrupts();
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;

  /// Calls `hear` with each signal and how many have come with it; at once with those that came
  /// before. Replaces whoever was called until now.
  void tell(std::function<void(int number, unsigned count)> hear);

  /// All that have come.
  const std::vector<int>& heard() const {
    return heard_;
  }

private:
  kj::Promise<void> listen(int number);

  client& at_;
  std::vector<int> heard_;
  std::function<void(int, unsigned)> hear_;
  kj::Promise<void> listening_;
};

/// Ends this program as that signal does.
[[noreturn]] void end_by_signal(int number);

} // namespace dsec
