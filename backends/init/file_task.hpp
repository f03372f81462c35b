#pragma once

#include "backends/init/file_errands.hpp"

namespace dsec::init {

/// The forked process's whole life: enters the namespaces, does the task, answers on `socket`,
/// ends. Allocates nothing.
[[noreturn]] void serve_file_task(const file_request& request, int user_namespace,
                                  int mount_namespace, int memory_file, int socket);

} // namespace dsec::init
