#pragma once

#include "actors/protocol.hpp"

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <optional>
#include <vector>

namespace dsec {

struct journal_data {
  static constexpr const char* name = "journal";

  store* durable = nullptr;
  std::vector<write_batch_ptr> batches;
  std::vector<caf::typed_response_promise<ack>> owed; ///< One per batch.
  /// A write failed: what is durable is unknown, so nothing is accepted any more.
  std::optional<error> broken;
};

/// Sent to itself, so that whatever lies before it in the mailbox goes into the same write.
struct flush_journal {};

using journal_inside = journal_actor::extend<caf::reacts_to<flush_journal>>;

/// Blocks in `durable` (which outlives it), so production runs it detached.
journal_inside::behavior_type
journal(journal_inside::stateful_pointer<journal_data> self, store* durable);

} // namespace dsec

DSEC_MESSAGE(flush_journal)
