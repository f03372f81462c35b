#pragma once

#include "backends/spawner/machine.hpp"
#include "backends/spawner/worker.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>

namespace dsec::spawner {

/// What a dead sandbox has: files in the run directory by its name, and, if it got that far, a
/// slot.
struct remains {
  std::string name;
  std::optional<std::uint32_t> slot;
};

struct swept {
  std::string name;
  std::string why_not; ///< Empty: nothing of the sandbox is left but its tombstone.
};

/// Removes what dead sandboxes leave behind, in a worker: groups, subvolume, socket, lock. Every
/// removal may be repeated, so a worker that dies loses nothing.
class sweeper {
public:
  explicit sweeper(const machine& on) : on_{on} {}

  /// (Re)starts the worker and gives it again what it had not finished.
  result<void> start();

  /// Every process of the sandbox is gone.
  void push(const remains& of);

  /// What has been finished, one at a time. Sets `alive` to false when the worker is gone.
  std::optional<swept> receive(bool& alive);

  int socket() const {
    return worker_.socket.get();
  }

  pid_t pid() const {
    return worker_.pid;
  }

  void stop();

private:
  void feed();

  const machine& on_;
  worker worker_;
  std::set<std::string> given_;
  std::deque<std::string> waiting_;
};

} // namespace dsec::spawner
