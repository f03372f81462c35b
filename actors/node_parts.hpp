#pragma once

#include "actors/node.hpp"

#include <functional>

/// How the source files of the node actor call one another.

namespace dsec::node_parts {

using self_pointer = node_inside::stateful_pointer<node_data>;

// -- node_table.cpp: who is there

/// Spawns the actor of a sandbox in the table.
void spawn_sandbox(self_pointer self, const sandbox_id& id, sandbox_origin origin,
                   std::vector<step_record> steps);

/// Takes note of a durable change and tells it.
void on_changed(self_pointer self, sandbox_record_ptr record);

/// An actor is gone: a bug if its sandbox lives, then it is started anew from what is durable.
void on_down(self_pointer self, const caf::down_msg& x);

void add_tombstone(self_pointer self, const sandbox_id& id);

/// Drops the oldest tombstones beyond the bound.
void bound_tombstones(self_pointer self);

/// Drops all tombstones of a job.
caf::result<ack> forget_ended(self_pointer self, const job_id& job);

sandbox_info info_of(const node_entry& x);

inventory_ptr inventory_of(const node_data& data, const inventory_query& x);

keys_reply keys_of(const node_data& data, const job_id& job);

// -- node_create.cpp

caf::result<create_reply_ptr> create(self_pointer self, const create_request& x);

// -- node_jobs.cpp: verbs on all sandboxes of a job

caf::result<preempt_report> preempt(self_pointer self, const preempt_request& x);
caf::result<ack> resume_all(self_pointer self, const job_id& job);
caf::result<ack> stop_all(self_pointer self, const job_id& job);
void renew(self_pointer self, const renew_job& x);

// -- node_recovery.cpp

void recover(self_pointer self, node_seed seed);
/// Asks the backend for everything that lives.
void scan(self_pointer self);

/// Soon, once, however often this is called before.
void scan_later(self_pointer self);
void on_scanned(self_pointer self, const inventory_done& x);
void on_settled(self_pointer self, const sandbox_id& id);
caf::result<ack> recovered(self_pointer self);

} // namespace dsec::node_parts
