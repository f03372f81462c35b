#pragma once

#include "state/event.hpp"
#include "state/records.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dsec {

/// Several writes that become durable together or not at all.
struct write_batch {
  std::vector<job_record> jobs;
  std::vector<sandbox_record> sandboxes;
  /// Steps are written without loading them: begun (no result) and ended (with result) overwrite.
  std::vector<step_record> steps;
  /// Steps that were begun and never ran: nothing is kept of them. After `steps`.
  std::vector<std::pair<sandbox_id, std::uint64_t>> refused_steps;
  std::vector<meta_record> meta; ///< The last one counts.
  /// Tombstones to drop, with their trajectory and idempotency entry.
  std::vector<sandbox_id> forgotten;
  /// Jobs whose events are dropped. The cursors of a job that is opened again go on after them.
  std::vector<job_id> forgotten_jobs;
  /// Their cursors are assigned by the journal. A batch of nothing else is written, but not synced:
  /// a killed process loses none of it, a machine that loses power may.
  std::vector<job_event> events;
};

/// Whose steps recovery wants to know.
enum class steps_of : std::uint8_t {
  all,
  live, ///< Of sandboxes that have ended they are only counted.
};

std::string_view to_string(steps_of x);

/// What recovery reads, once, before anything is served.
struct loaded_state {
  meta_record meta; ///< Default (empty node id) in a new store.
  std::vector<job_record> jobs;
  std::vector<sandbox_record> sandboxes;
  /// Steps without their output: `result`, where present, has empty out and err.
  std::vector<step_record> steps;
  /// How many steps with a result each sandbox has whose steps are left out.
  std::unordered_map<sandbox_id, std::uint64_t> steps_left_out;
};

/// All that is known of one sandbox.
struct sandbox_history {
  sandbox_record record;
  /// In order of their numbers, as `load` gives them: without output.
  std::vector<step_record> steps;
};

/// The durable truth of one process. Blocking; called by the journal alone once it runs.
class store {
public:
  virtual ~store() = default;

  virtual result<loaded_state> load(steps_of wanted = steps_of::all) = 0;

  /// Durable when it returns. All batches in one write and one sync.
  virtual result<void> commit(const std::vector<std::shared_ptr<const write_batch>>& batches) = 0;

  /// not_found if it was never begun.
  virtual result<step_record> step(const sandbox_id& sandbox, std::uint64_t step) = 0;

  /// not_found if it never was or was forgotten.
  virtual result<sandbox_history> history(const sandbox_id& sandbox) = 0;

  /// not_found if there is none of that name.
  virtual result<job_record> job(const job_id& id) = 0;

  /// At most `count` events of a job from `cursor` (or the oldest that is kept, if that is later;
  /// or the end, if that is earlier). Of a job without events: an empty page.
  virtual result<event_page>
  events(const job_id& job, std::uint64_t cursor, std::uint64_t count) = 0;
};

/// RocksDB in `directory` (created). state_in_use if another process has it open.
result<std::unique_ptr<store>> open_rocks_store(const std::filesystem::path& directory);

/// For simulation and tests: memory only, same meaning.
std::unique_ptr<store> make_memory_store();

} // namespace dsec
