#pragma once

#include "bench/demo/task.hpp"

#include <map>
#include <string>

namespace dsec::demo {

/// Makes every layer that the tasks need, unless it is there: the base from the machine's own
/// Debian mirror, the toolkit, and per task the source package as Debian serves it, with the bug
/// put in. Tells its progress on stderr. Needs root.
result<void> prepare(const std::filesystem::path& data_dir, const task_set& tasks);

/// Task name -> what its sandboxes start from. not_found before `prepare`.
result<std::map<std::string, dsec::environment>>
prepared_environments(const std::filesystem::path& data_dir, const task_set& tasks);

} // namespace dsec::demo
