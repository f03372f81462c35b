#pragma once

#include "backends/backend.hpp"
#include "state/records.hpp"
#include "state/reports.hpp"
#include "state/store.hpp"

#include <caf/typed_actor.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Every message and every typed interface: the page to read first. Large or move-only things
/// travel as shared pointers to const; nothing here crosses a process border.

namespace dsec {

/// The answer of a request that has nothing to say but that it is done. caf::unit_t cannot be it:
/// CAF 0.17 delivers that as an empty message, which no typed handler takes.
struct ack {};

// -- what SDK and front ask of one sandbox

struct exec_message {
  std::shared_ptr<const exec_spec> spec;
  std::shared_ptr<output_sink> sink; ///< Null: collected.
  std::uint64_t ticket = 0; ///< Chosen by the caller, for `cancel_exec`; unique per sandbox.
};

struct cancel_exec {
  std::uint64_t ticket = 0;
};

struct signal_exec {
  std::uint64_t ticket = 0;
  int number = 0;
};

struct file_message {
  std::shared_ptr<const file_request> request;
};

struct process_message {
  std::shared_ptr<const process_request> request; ///< A start's `id` is given by the actor.
};

/// Sets its clocks; answers when that is durable and told.
struct set_clocks {
  sandbox_clocks clocks;
};

/// Heads for a lifecycle state and answers when it is reached.
struct pause_request {
  bool reclaim = false; ///< true: on to `reclaimed`.
  bool held = false;    ///< true: requests do not thaw it.
};

struct resume_request {};

struct stop_request {};

/// Answers at once, never thaws.
struct info_request {};

struct stats_request {};

/// Answers when requests can run in the sandbox (a paused one is resumed by them), or with the
/// error that kept it from starting.
struct await_running {};

// -- job and node

struct create_item {
  std::string
    idempotency_key; ///< Empty: none. Repeating one within a job returns the same sandbox.
  dsec::environment environment;
  sandbox_clocks clocks;
};

struct create_request {
  job_id job;
  lease_terms lease;
  std::vector<create_item> items;
  /// Assigned by the job actor, one per item: (job, index) is the stable name.
  std::vector<std::uint64_t> indices;
};

/// One entry per item, in order. Ids are durable; the sandboxes may still be starting.
struct create_reply {
  std::vector<result<sandbox_id>> sandboxes;
};

struct preempt_request {
  job_id job;
  preempt_mode mode = preempt_mode::until_request;
};

struct resume_job {
  job_id job;
};

/// Stops every sandbox of the job.
struct close_job {
  job_id job;
};

/// Drops the tombstones of a closed job, with their trajectories and idempotency keys.
struct forget_job {
  job_id job;
};

/// Which idempotency keys of a job the node has in its records.
struct keys_request {
  job_id job;
};

struct keys_reply {
  node_id node;
  std::vector<std::string> keys;
};

struct renew_job {
  job_id job;
  lease_terms lease;
};

struct inventory_query {
  job_id job;              ///< Empty: all.
  bool with_ended = false; ///< Tombstones too.
};

struct inventory {
  std::vector<sandbox_info> sandboxes;
};

struct node_load {
  node_id node;
  std::uint64_t live = 0;     ///< Sandboxes that hold resources.
  std::uint64_t capacity = 0; ///< How many this node admits.
  std::uint64_t memory_committed_bytes = 0;
  std::uint64_t memory_capacity_bytes = 0;
};

struct find_sandbox {
  sandbox_id id;
};

struct load_request {};

// -- the gateway

struct open_job {
  job_id job;
  lease_terms lease;
};

struct find_job {
  job_id job;
};

struct create_batch {
  std::vector<create_item> items;
};

struct preempt_job {
  preempt_mode mode = preempt_mode::until_request;
};

struct job_request {};

struct join_node;

struct place_request {
  std::uint64_t sandboxes = 1;
  std::uint64_t memory_bytes = 0; ///< Of each.
};

using exec_result_ptr = std::shared_ptr<const exec_result>;
using file_reply_ptr = std::shared_ptr<const file_reply>;
using write_batch_ptr = std::shared_ptr<const write_batch>;
using process_reply_ptr = std::shared_ptr<const process_reply>;
using event_page_ptr = std::shared_ptr<const event_page>;
using step_record_ptr = std::shared_ptr<const step_record>;
using create_reply_ptr = std::shared_ptr<const create_reply>;
using inventory_ptr = std::shared_ptr<const inventory>;

using sandbox_history_ptr = std::shared_ptr<const sandbox_history>;

struct load_step {
  sandbox_id sandbox;
  std::uint64_t step = 0;
};

struct load_sandbox {
  sandbox_id sandbox;
};

struct load_job {
  job_id job;
};

/// At most `count` from `cursor`, as `store::events`.
struct load_events {
  job_id job;
  std::uint64_t cursor = 1;
  std::uint64_t count = 1000;
};

/// The RocksDB write path. Answers a batch when it is durable; drains its mailbox into one write
/// and one sync.
using journal_actor = caf::typed_actor<
  // Makes the batch durable.
  caf::replies_to<write_batch_ptr>::with<ack>,
  // The recorded step with its output; not_found if never begun.
  caf::replies_to<load_step>::with<step_record_ptr>,
  // The sandbox as it is durable, with its steps, without output; not_found if it is not known.
  caf::replies_to<load_sandbox>::with<sandbox_history_ptr>,
  // The job as it is durable; not_found if there is none.
  caf::replies_to<load_job>::with<job_record>,
  // Events of a job.
  caf::replies_to<load_events>::with<event_page_ptr>>;

/// One sandbox; the only writer of its record.
using sandbox_actor = caf::typed_actor<
  // Resumes first if it must; records if the spec has a step. Answers with the outcome.
  caf::replies_to<exec_message>::with<exec_result_ptr>,
  // The outcome becomes `cancelled`. An unknown ticket is nobody's.
  caf::reacts_to<cancel_exec>,
  // To the main process, if it runs.
  caf::reacts_to<signal_exec>,
  // Resumes first if it must.
  caf::replies_to<file_message>::with<file_reply_ptr>,
  // Start, input, resize, signal and kill resume first if they must; the rest never thaws. A start
  // answers with the process, as the only one of the list.
  caf::replies_to<process_message>::with<process_reply_ptr>,
  // Answers when it is durable.
  caf::replies_to<set_clocks>::with<ack>,
  // Answers once paused or reclaimed.
  caf::replies_to<pause_request>::with<reclaim_report>,
  // Lifts a hold, too. Answers once it runs.
  caf::replies_to<resume_request>::with<ack>,
  // Answers once nothing of it is left.
  caf::replies_to<stop_request>::with<ack>,
  // What is durable.
  caf::replies_to<info_request>::with<sandbox_info>,
  // From the kernel's counters.
  caf::replies_to<stats_request>::with<sandbox_stats>,
  // Once it has started, be it paused since.
  caf::replies_to<await_running>::with<ack>>;

/// `actor` is null and `info` a tombstone if the sandbox has ended.
struct find_reply {
  sandbox_actor actor;
  sandbox_info info;
};

/// One machine: admission, its sandboxes by id and by job.
using node_actor = caf::typed_actor<
  // Admits or refuses each item, makes the admitted ones durable, starts them, answers.
  caf::replies_to<create_request>::with<create_reply_ptr>,
  // Pauses and reclaims all sandboxes of a job; answers when each has arrived or failed.
  caf::replies_to<preempt_request>::with<preempt_report>,
  // Answers when all run that can.
  caf::replies_to<resume_job>::with<ack>,
  // Answers when all have ended.
  caf::replies_to<close_job>::with<ack>,
  // Answers when it is durable.
  caf::replies_to<forget_job>::with<ack>,
  // At once.
  caf::replies_to<keys_request>::with<keys_reply>,
  // Sets both deadlines of all its sandboxes.
  caf::reacts_to<renew_job>,
  // At once.
  caf::replies_to<inventory_query>::with<inventory_ptr>,
  // At once; not_found if it never was or its tombstone was dropped.
  caf::replies_to<find_sandbox>::with<find_reply>,
  // At once.
  caf::replies_to<load_request>::with<node_load>>;

struct join_node {
  node_id id;
  node_actor node;
};

struct placement_reply {
  std::vector<join_node> ranked; ///< Best first; empty: no node takes it.
};

using placement_actor = caf::typed_actor<
  // At once.
  caf::replies_to<place_request>::with<placement_reply>>;

/// One training run: lease, preemption, idempotent creation.
using job_actor = caf::typed_actor<
  // Invalid_state if closed, preempted until it is resumed.
  caf::replies_to<create_batch>::with<create_reply_ptr>,
  // On all nodes.
  caf::replies_to<preempt_job>::with<preempt_report>,
  // Ends a preemption and thaws.
  caf::replies_to<resume_request>::with<ack>,
  // Stops all its sandboxes, then ends it.
  caf::replies_to<stop_request>::with<ack>,
  // Its record as it is now.
  caf::replies_to<job_request>::with<job_record>,
  // Of all nodes.
  caf::replies_to<inventory_query>::with<inventory_ptr>>;

/// The gateway's root: knows the nodes and the jobs.
using cluster_actor = caf::typed_actor<
  // Also one that was there before, under its new handle.
  caf::reacts_to<join_node>,
  // Creates the job (durable first) or hands out the one of that name, with a new lease, which ends
  // a preemption. A closed one starts anew.
  caf::replies_to<open_job>::with<job_actor>,
  // The job of that name as it is, lease and preemption untouched; not_found if there is none.
  caf::replies_to<find_job>::with<job_actor>,
  // Of all nodes.
  caf::replies_to<inventory_query>::with<inventory_ptr>,
  // Routed by the node that the id names.
  caf::replies_to<find_sandbox>::with<find_reply>>;

} // namespace dsec

// Whoever sends a message must see how CAF may treat it.
#include "actors/inspect.hpp" // IWYU pragma: export
