#pragma once

#include "backends/spawner/names.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace dsec::spawner {

/// Which id ranges are taken. A freed slot is the last to be given out again.
class slots {
public:
  slots() : taken_(slots_max, false) {}

  std::optional<std::uint32_t> take() {
    for (std::uint32_t i = 0; i < slots_max; ++i) {
      auto slot = next_++ % slots_max;
      if (!taken_[slot]) {
        mark(slot);
        return slot;
      }
    }
    return std::nullopt;
  }

  void mark(std::uint32_t slot) {
    if (slot < slots_max && !taken_[slot]) {
      taken_[slot] = true;
      ++used_;
    }
  }

  void release(std::uint32_t slot) {
    if (slot < slots_max && taken_[slot]) {
      taken_[slot] = false;
      --used_;
    }
  }

  std::uint32_t used() const {
    return used_;
  }

private:
  std::vector<bool> taken_;
  std::uint32_t next_ = 0;
  std::uint32_t used_ = 0;
};

} // namespace dsec::spawner
