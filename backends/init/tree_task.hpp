#pragma once

#include "backends/init/tree_errand.hpp"
#include "state/error.hpp"
#include "state/file.hpp"

#include <string>
#include <string_view>

namespace dsec::init {

/// The forked process's whole life: enters the namespaces, gives up what it does not need, unpacks
/// from or packs into `pipe`, leaves what came of it in the memory file, says on `socket` that it
/// has, ends. It dies with dsec-init. Its memory is limited.
[[noreturn]] void
serve_tree_task(const tree_request& request, int pipe, int memory_file, int socket);

/// What such a process has left.
result<tree_report> read_tree_outcome(std::string_view text);

} // namespace dsec::init
