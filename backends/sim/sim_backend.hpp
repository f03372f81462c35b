#pragma once

#include "backends/sim/sim_world.hpp"

#include <functional>
#include <memory>

namespace dsec {

/// A node process's connection to a simulated machine. Destroying it is what a crash of the process
/// does: no completion comes any more, and the machine goes on. One at a time for each machine; it
/// may not outlive it.
class sim_backend final : public backend {
public:
  sim_backend(sim_world& machine, backend_events events);

  ~sim_backend() override;

  /// What a crash of the process does: from here nothing reaches the machine and nothing comes
  /// back.
  void disconnect();

  void start(const start_spec& spec, completion<void> done) override;
  void adopt(const sandbox_id& id, completion<found_sandbox> done) override;
  void ended_by_itself(const sandbox_id& id, completion<sandbox_end> done) override;
  void pause(const sandbox_id& id, completion<void> done) override;
  void reclaim(const sandbox_id& id, completion<reclaim_report> done) override;
  void resume(const sandbox_id& id, completion<void> done) override;
  void stop(const sandbox_id& id, completion<void> done) override;
  void exec(const sandbox_id& id, std::shared_ptr<const exec_call> call,
            completion<exec_result> done) override;
  void cancel(const sandbox_id& id, exec_id exec) override;
  void signal(const sandbox_id& id, exec_id exec, int number) override;
  void forget(const sandbox_id& id, exec_id exec) override;
  void discard(const sandbox_id& id, const std::vector<exec_id>& execs) override;
  void file(const sandbox_id& id, file_request request, completion<file_reply> done) override;
  void
  process(const sandbox_id& id, process_request request, completion<process_reply> done) override;
  void
  set_clocks(const sandbox_id& id, const sandbox_clocks& clocks, completion<void> done) override;
  void stats(const sandbox_id& id, completion<sandbox_stats> done) override;
  void renew(const std::vector<sandbox_id>& ids, const lease_terms& lease) override;
  void inventory(completion<std::vector<live_sandbox>> done) override;

private:
  using phase = sim_world::phase;

  /// `done` as it is while this process lives.
  template <class T>
  completion<T> while_connected(completion<T> done) const;

  /// After the time of one call, answers with what `look` sees.
  template <class T, class Look>
  void question(completion<T> done, Look look) const;

  /// After `cost`, does `verb` to the sandbox if it still lives, and answers.
  template <class T, class Verb>
  void call(const sandbox_id& id, sim_time::duration cost, std::uint64_t fails, completion<T> done,
            Verb verb);

  sim_world& machine_;
  std::shared_ptr<int> connected_;
};

} // namespace dsec
