#pragma once

#include "state/ids.hpp"

#include <mutex>
#include <unordered_map>
#include <vector>

namespace dsec {

/// Outcomes that are durable at the node and that their dsec-init is not told of yet. It is told
/// with the next command, so acknowledging wakes no thread. Any thread.
class acknowledgements {
public:
  void add(const sandbox_id& id, exec_id exec) {
    std::scoped_lock lock{mutex_};
    waiting_[id].push_back(exec);
  }

  std::vector<exec_id> take(const sandbox_id& id) {
    std::scoped_lock lock{mutex_};
    auto found = waiting_.extract(id);
    return found ? std::move(found.mapped()) : std::vector<exec_id>{};
  }

private:
  std::mutex mutex_;
  std::unordered_map<sandbox_id, std::vector<exec_id>> waiting_;
};

} // namespace dsec
