#pragma once

#include "bench/pause/memory_group.hpp"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dsec::bench {

/// How fast the kernel gives memory back, measured bare: dsec-bench-hold processes of our own, each
/// in its own memory group, frozen, then paged out by as many threads as there are cores.
class bare_holders {
public:
  /// They have dirtied all their memory when it returns.
  bare_holders(unsigned count, unsigned megabytes, const std::filesystem::path& folder);

  bare_holders(const bare_holders&) = delete;
  bare_holders& operator=(const bare_holders&) = delete;

  ~bare_holders();

  struct measured {
    double freeze_ms = 0;
    double page_out_ms = 0; ///< After all were frozen.
    std::uint64_t before_bytes = 0;
    std::uint64_t after_bytes = 0;
  };

  measured page_out() const;

  /// Thaws them and has every one read all its memory. Throws if contents changed.
  void thaw_and_verify() const;

private:
  struct holder {
    memory_group group;
    pid_t pid = -1;
    std::string socket;
  };

  std::uint64_t resident_bytes() const;

  std::string program_;
  std::string parent_;
  std::vector<holder> holders_;
};

} // namespace dsec::bench
