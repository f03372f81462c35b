#pragma once

#include "state/error.hpp"

#include <string>

namespace dsec::init {

/// Writes run/<sandbox id>.end, atomically: "word\ndetail\n". The spawner and the node read there
/// why a sandbox ended that nobody stopped. Words: "lease_expired", "time_to_live",
/// "rollout_budget", "self_inflicted".
result<void> write_tombstone(int run_dir, const std::string& sandbox_id, const char* word,
                             const std::string& detail);

} // namespace dsec::init
