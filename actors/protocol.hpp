#pragma once

#include "backends/backend.hpp"
#include "state/records.hpp"
#include "state/reports.hpp"
#include "state/store.hpp"

#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Every message and every typed interface: the page to read first. Large or move-only things travel
/// as shared pointers to const; nothing here crosses a process border.

namespace dsec {

// -- what SDK and front ask of one sandbox

struct exec_message {
  std::shared_ptr<const exec_spec> spec;
  std::shared_ptr<output_sink> sink; ///< Null: collected.
  std::uint64_t ticket = 0;          ///< Chosen by the caller, for `cancel_exec`; unique per sandbox.
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

/// Heads for a lifecycle state and answers when it is reached.
struct pause_request {
  bool reclaim = false;                               ///< true: on to `reclaimed`.
  bool held = false;                                  ///< true: requests do not thaw it.
};

struct resume_request {};

struct stop_request {};

/// Answers at once, never thaws.
struct info_request {};

struct stats_request {};

/// Answers when the sandbox is running, or with the error that kept it from it.
struct await_running {};

// -- job and node

struct create_item {
  std::string idempotency_key; ///< Empty: none. Repeating one within a job returns the same sandbox.
  dsec::environment environment;
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
  std::uint64_t live = 0;      ///< Sandboxes that hold resources.
  std::uint64_t capacity = 0;  ///< How many this node admits.
  std::uint64_t memory_committed_bytes = 0;
  std::uint64_t memory_capacity_bytes = 0;
};

} // namespace dsec
