#pragma once

#include "backends/init/exec_groups.hpp"
#include "state/error.hpp"

#include <kj/async-io.h>
#include <kj/async-unix.h>

namespace dsec::init {

/// A signal to every process of a command's group, also to those that are born meanwhile.
result<void> signal_tree(const exec_group& group, int number);

/// Answers when no process of the group is left, or after `patience`.
kj::Promise<void> tree_gone(kj::UnixEventPort& port, kj::Timer& timer, const exec_group& group,
                            kj::Duration patience);

} // namespace dsec::init
