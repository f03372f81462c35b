#pragma once

#include "sdk/cli/client.hpp"
#include "state/exec.hpp"
#include "state/process.hpp"

#include <optional>

namespace dsec {

struct session_options {
  bool input = false;    ///< Standard input goes to it.
  bool terminal = false; ///< It has a terminal; ours, if there is one, is raw meanwhile.
  attach_from from = attach_from::start;
};

/// Shows the output of a process on this program's own standard streams until it ends, and returns
/// how it did. Nothing: the user typed ctrl-p ctrl-q, after which it goes on. SIGINT, SIGTERM,
/// SIGHUP and SIGQUIT end this program, and the process goes on as well. Says on standard error
/// what was skipped. Called before this program has any thread.
result<std::optional<exec_result>>
run_session(client& at, wire::ProcessHandle::Client of, const session_options& options);

} // namespace dsec
