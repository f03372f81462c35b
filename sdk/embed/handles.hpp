#pragma once

#include "sdk/embed/core.hpp"
#include "sdk/embed/runtime.hpp"

/// What the handles of runtime.hpp point to: names only, never actors, so that a handle may outlive
/// everything.

namespace dsec {

struct sandbox::state {
  std::shared_ptr<runtime_core> core;
  sandbox_id id;
};

struct job::state {
  std::shared_ptr<runtime_core> core;
  job_id id;
};

struct process::state {
  std::shared_ptr<runtime_core> core;
  sandbox_id sandbox;
  exec_id id = 0;
};

struct process_attachment::state {
  std::shared_ptr<runtime_core> core;
  sandbox_id sandbox;
  std::uint64_t ticket = 0;
  future<void> ended;
};

struct running_exec::state {
  std::shared_ptr<runtime_core> core;
  sandbox_id sandbox;
  std::uint64_t ticket = 0;
  future<exec_result> result;
};

} // namespace dsec
