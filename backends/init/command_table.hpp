#pragma once

#include "backends/init/command.hpp"
#include "backends/init/file_errands.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsec::init {

/// The commands whose outcome is not yet acknowledged, by exec id.
class command_table {
public:
  command_table(command_surroundings around, file_errands& files)
    : around_{around},
      files_{files} {}

  /// Starts a command or joins the one that has the id. A command that could not be started leaves
  /// no trace. exhausted when too many run or wait for their acknowledgement.
  kj::Promise<result<kj::Own<command>>>
  exec(std::uint64_t id, wire::ExecSpec::Reader spec, bool attended);

  /// The same, and answers once it has finished.
  kj::Promise<result<kj::Own<command>>> run(std::uint64_t id, wire::ExecSpec::Reader spec);

  kj::Maybe<kj::Own<command>> find(std::uint64_t id);

  /// Drops a command that has ended; its background children keep somebody who reads their output.
  void forget(std::uint64_t id);

  std::vector<std::uint64_t> ids() const;
  /// Of those that have not ended.
  std::vector<std::uint64_t> running_ids() const;
  bool owes_nobody() const;
  void told(const reaper::event& event);
  /// Also whatever is started from then on.
  void settle_all(wire::Outcome::Kind kind, const std::string& cause);
  void freeze_clocks();
  void thaw_clocks();

private:
  struct entry {
    kj::Own<command> run;
    /// Until it has been asked for and, if it is watched, runs. Null: that was at once.
    kj::Maybe<kj::ForkedPromise<result<void>>> starting;
  };

  result<void> begin(std::uint64_t id, wire::ExecSpec::Reader spec, command::manner how);
  kj::Promise<result<kj::Own<command>>> join(std::uint64_t id);
  result<void> start(command& run, const identity& who);
  /// Of a command that could not be started.
  void erase(std::uint64_t id, const command& run);

  command_surroundings around_;
  file_errands& files_;
  std::map<std::uint64_t, entry> entries_;
  std::vector<kj::Own<command>> forgotten_;
  std::optional<std::pair<wire::Outcome::Kind, std::string>> settled_; ///< The sandbox has ended.
};

} // namespace dsec::init
