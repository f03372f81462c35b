#pragma once

#include "bench/kernel_calls.hpp"

#include <filesystem>

namespace dsec::bench {

/// A temporary directory in a mount namespace of this process's own. Whatever was mounted or used
/// for swap below it by then is undone with it, and it is removed.
class place {
public:
  /// Call it before any thread runs: threads keep the mount namespace that they have.
  place();

  place(const place&) = delete;
  place& operator=(const place&) = delete;

  ~place();

  const std::filesystem::path& root() const {
    return root_;
  }

  /// A new directory. Anybody may pass through it, so that mapped ids can.
  std::filesystem::path folder(const std::string& name) const;

  /// A btrfs with simple quotas in a file: the kind of scratch that sandboxes have.
  std::filesystem::path mount_scratch(const std::string& name) const;

private:
  std::filesystem::path root_;
};

/// From now on SIGINT and SIGTERM only make `go_on` throw, and a broken pipe is an error, so that a
/// bench removes what it made.
void catch_interrupts();

/// Benches call it between measurements.
void go_on();

} // namespace dsec::bench
