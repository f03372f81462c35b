#pragma once

#include "backends/init/file_errands.hpp"

namespace dsec::init {

/// The forked process's whole life: enters the namespaces, does the task, answers on `socket`,
/// ends. Allocates nothing.
[[noreturn]] void serve_file_task(const file_request& request, int user_namespace,
                                  int mount_namespace, int memory_file, int socket);

/// Makes the calling process root of the sandbox, in its mount namespace. Returns 0 or an errno
/// value.
int enter_inside(int user_namespace, int mount_namespace);

/// Sends what `task_process::answer` hears; `fd` may be -1.
void tell(int socket, const file_reading& status, int fd);

} // namespace dsec::init
