#pragma once

#include "backends/container/io_loop.hpp"
#include "backends/container/spawner_link.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace dsec {

/// What became of sandboxes whose link broke without being asked to: dsec-init has ended them and
/// left its tombstone, or it was killed, or it lives and only the link broke, which the spawner and
/// the kernel know. Whoever lost the link has lost the sandbox in any case: it is not dialled
/// again. Loop only, completions too.
class init_fates : public std::enable_shared_from_this<init_fates> {
public:
  /// All outlive it.
  init_fates(io_loop& loop, spawner_link& spawner, std::filesystem::path run_dir);

  /// Finds out, and calls `told` once unless the sandbox is forgotten before. `why`: what the link
  /// says that it broke of.
  void find_out(const sandbox_id& id, std::string why, completion<sandbox_end> told);

  /// Its link broke, and it was not forgotten since.
  bool lost(const sandbox_id& id) const {
    return known_.contains(id);
  }

  /// How it ended, as soon as that is known. not_found if neither a tombstone nor a broken link
  /// tells.
  void ask(const sandbox_id& id, completion<sandbox_end> done);

  void forget(const sandbox_id& id);

private:
  struct fate {
    std::optional<sandbox_end> end;
    std::vector<completion<sandbox_end>> asked;
  };

  void judge(const sandbox_id& id, const std::string& why, int pid);
  void settle(const sandbox_id& id, sandbox_end otherwise);

  io_loop& loop_;
  spawner_link& spawner_;
  std::filesystem::path run_dir_;
  std::unordered_map<sandbox_id, fate> known_;
};

} // namespace dsec
