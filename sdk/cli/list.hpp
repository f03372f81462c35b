#pragma once

#include "state/error.hpp"
#include "state/reports.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace dsec {

/// Columns as wide as their widest cell, which stands as `shown` has it; the first row is the head.
result<void> print_table(const std::vector<std::vector<std::string>>& rows);

/// One line per sandbox, or one JSON array.
result<void> print_sandboxes(const std::vector<sandbox_info>& all, bool json);

/// As every list and `clocks` print them.
nlohmann::json as_json(const sandbox_clocks& x);

/// "3 s", "5 min", "2 h", "4 d".
std::string age(std::int64_t since_ms);

} // namespace dsec
