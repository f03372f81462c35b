#pragma once

#include "backends/init/file_errands.hpp"
#include "backends/init/task_process.hpp"

#include <kj/async-unix.h>
#include <kj/refcount.h>

namespace dsec::init {

/// A new file that takes the place of another one when it is complete, in one step. Until then it
/// lies beside it under a name of ours, and a process inside the sandbox keeps watch over it: when
/// this object goes, or dsec-init dies, that process removes it.
class replacement : public kj::Refcounted {
public:
  /// What the path meets is in `status().number`.
  static kj::Promise<result<kj::Own<replacement>>> begin(kj::UnixEventPort& port,
                                                         task_graves& graves, file_request request,
                                                         int user_namespace, int mount_namespace);

  replacement(kj::Own<task_process> keeper, file_answer opened)
    : keeper_{kj::mv(keeper)},
      opened_{std::move(opened)} {}

  const file_reading& status() const {
    return opened_.status;
  }

  int file() const {
    return opened_.file;
  }

  /// Puts it in its place. This or `abandon`, once. 0 or an errno value.
  kj::Promise<result<int>> finish();

  /// Until nothing of it is left: what it took of the disk is free then.
  kj::Promise<void> abandon();

private:
  kj::Promise<result<int>> end(char how);

  kj::Own<task_process> keeper_;
  file_answer opened_;
};

} // namespace dsec::init
