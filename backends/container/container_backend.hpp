#pragma once

#include "backends/backend.hpp"
#include "backends/container/acknowledgements.hpp"
#include "backends/container/io_loop.hpp"
#include "backends/container/spawner_link.hpp"

#include <cstdint>
#include <memory>

namespace dsec {

/// Sandboxes as Linux containers: dsec-spawner builds and removes them, one dsec-init each runs
/// commands in them. All of it happens in the thread of `loop`, completions and events included.
class container_backend final : public backend {
public:
  /// `loop` outlives it.
  container_backend(io_loop& loop, spawner_options options, backend_events events);

  /// Ends every connection; sandboxes live on. Not from the loop's thread.
  ~container_backend() override;

  /// Whose sandboxes these are, and the epoch that fences older processes of the same node. Before
  /// the first sandbox verb.
  void identify(const node_id& node, std::uint64_t epoch);

  /// Connects to the spawner, or starts it; unavailable if neither is possible.
  void hello(completion<spawner_report> done);

  /// Asks the spawner to keep that many sandboxes prepared.
  void warm(std::uint32_t sandboxes, completion<void> done);

  /// As the destructor, but early: no completion and no event afterwards; later calls do nothing.
  void close();

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
  struct inside;
  template <class Work>
  void in_loop(Work work);

  io_loop& loop_;
  std::shared_ptr<acknowledgements> durable_;
  std::shared_ptr<inside> inside_;
};

} // namespace dsec
