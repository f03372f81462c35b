#pragma once

#include "backends/init/file_errands.hpp"
#include "backends/init/process.hpp"

#include <string>
#include <vector>

namespace dsec::init {

/// The processes of a sandbox, in order of their start: those that live, and of those that are over
/// the newest, `reaper::processes_max` together. They are here alone, so they outlive every node.
class process_table {
public:
  process_table(command_surroundings around, file_errands& files)
    : around_{around},
      files_{files} {}

  /// Starts a process or joins the one that has the id. One that could not be started leaves no
  /// trace. invalid_state if one that lives has its name; exhausted if too many live.
  kj::Promise<result<kj::Own<process>>>
  spawn(std::uint64_t id, wire::Init::SpawnParams::Reader how);

  kj::Maybe<kj::Own<process>> find(std::uint64_t id);

  /// invalid_state while it lives.
  result<void> remove(std::uint64_t id);

  void list(wire::Init::ProcessesResults::Builder to);

  bool empty() const {
    return entries_.empty() && dropped_.empty();
  }

  /// All are over, and nobody waits for the rest of their output.
  bool owes_nobody() const;

  void told(const reaper::event& event);
  void settle_all(wire::Outcome::Kind kind, const std::string& cause);
  void freeze_clocks();
  void thaw_clocks();

private:
  struct entry {
    kj::Own<process> of;
    kj::ForkedPromise<result<void>> starting;
  };

  using entries = std::vector<entry>;

  entries::iterator at(std::uint64_t id);
  result<void> check(const std::string& name);
  /// Drops the oldest that is over, if there are too many.
  void make_room();
  void drop(entries::iterator which);
  kj::Promise<result<kj::Own<process>>> join(entry& known);

  command_surroundings around_;
  file_errands& files_;
  entries entries_;
  std::string settled_;                   ///< By what all were ended; empty: they were not.
  std::vector<kj::Own<process>> dropped_; ///< Whose output somebody still holds open.
};

} // namespace dsec::init
