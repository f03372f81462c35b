#pragma once

#include <string>

/// A place where a fuzz target may do what it likes, and from where it must not get out.

namespace dsec::fuzz {

/// In a mount namespace of this process alone: everything of the machine is read-only but the
/// working directory (libFuzzer writes there), and on a tmpfs of their own stand `root`, the tree
/// that is played with, and beside it `outside`, which holds what must never be read or changed.
/// Nothing is left when the process has ended, however it ends.
class throwaway {
public:
  static constexpr const char* root = "/mnt/root";
  static constexpr const char* outside = "/mnt/outside";
  static constexpr long secret_bytes = 31'337; ///< Size of /mnt/outside/secret.

  /// Builds it, with /proc (read-only) in the root if it is wanted. Ends the process, and says why,
  /// if the kernel does not allow it.
  static void enter(bool with_proc);

  /// An empty root again, but for what is mounted there, its owner and mode as before.
  static void clear();

  /// Claims that `outside` is as it was made and that nothing else has appeared beside the root.
  static void check_outside();

  /// Claims that an open file lies beneath the root.
  static void check_inside(int file);
};

} // namespace dsec::fuzz
