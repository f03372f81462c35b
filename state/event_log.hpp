#pragma once

#include "state/event.hpp"
#include "state/key_values.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace dsec {

/// The events of all jobs over a store's bytes: where the cursors of each stand, and which events
/// are kept. What it remembers it has read from the bytes, or knows to be in them.
///
/// A job that was forgotten keeps one record, under the key without a cursor: the cursor of its
/// last event, so that none is ever given to two events.
class event_log {
  /// Kept are the events from `oldest` up to `next`, which is not in it.
  struct span {
    std::uint64_t oldest = 1;
    std::uint64_t next = 1;
  };

  using spans = std::unordered_map<job_id, span>;

public:
  /// `bytes` outlives it.
  explicit event_log(key_values& bytes) : bytes_{bytes} {}

  /// As store::events. Reads as many events as it answers.
  result<event_page> read(const job_id& job, std::uint64_t cursor, std::uint64_t count);

  /// What one commit adds. Changes nothing before `done`.
  class addition {
  public:
    explicit addition(event_log& to) : log_{to} {}

    /// Gives it its cursor. Of a job that has more than `events_kept_max` the oldest go.
    result<void> add(job_event x, std::vector<key_write>& writes);

    result<void> forget(const job_id& job, std::vector<key_write>& writes);

    /// The writes are in the bytes.
    void done();

  private:
    result<span*> find(const job_id& job);

    event_log& log_;
    spans changed_;
  };

private:
  result<span> find(const job_id& job);
  result<span> look(const job_id& job);

  key_values& bytes_;
  spans known_;
};

} // namespace dsec
