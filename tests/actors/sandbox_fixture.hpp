#pragma once

#include "tests/support/actor_fixture.hpp"

namespace dsec::test {

/// One running sandbox of one job.
struct sandbox_fixture : machine_fixture {
  sandbox_fixture() {
    job = open("train");
    id = create(job);
    sandbox = find(id);
  }

  sandbox_state state() {
    return now->ask<sandbox_info>(sandbox, info_request{})->state;
  }

  /// After a crash: the same sandbox, through new handles.
  void restart() {
    now.reset();
    job = nullptr;
    sandbox = nullptr;
    start();
    job = open("train");
    sandbox = find(id);
  }

  result<exec_result_ptr>
  run(std::vector<std::string> argv, std::optional<std::uint64_t> step = {}) {
    return now->ask<exec_result_ptr>(sandbox, command(std::move(argv), step));
  }

  std::uint64_t begun(exec_id exec) {
    auto at = machine.truth().begun.find({id, exec});
    return at == machine.truth().begun.end() ? 0 : at->second;
  }

  job_actor job;
  sandbox_id id;
  sandbox_actor sandbox;
};

} // namespace dsec::test
