#pragma once

#include "actors/protocol.hpp"
#include "state/format.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/meta/type_name.hpp>
#include <fmt/format.h>

#include <memory>
#include <string>

/// How messages print: for errors, logs and the event hash of a simulation. None of them is ever
/// serialised (nothing here crosses a process border), so all are declared local-only. Actor
/// handles and callbacks print as a constant: an address would make two equal runs differ.

namespace dsec {

template <class Inspector, named_enum T>
typename Inspector::result_type inspect(Inspector& f, T& x) {
  auto name = std::string{to_string(x)};
  return f(name);
}

template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, std::shared_ptr<const T>& x) {
  if (x)
    return f(*x);
  std::string nothing = "null";
  return f(nothing);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, error& x) {
  return f(caf::meta::type_name("error"), x.code, x.message);
}

template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, result<T>& x) {
  if (x)
    return f(*x);
  auto copy = x.error();
  return f(copy);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, outcome& x) {
  return f(caf::meta::type_name("outcome"), x.kind, x.code, x.cause);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, exec_result& x) {
  return f(caf::meta::type_name("exec_result"), x.outcome, x.out, x.err, x.out_bytes, x.err_bytes,
           x.duration, x.replayed);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, exec_spec& x) {
  auto step = x.step ? std::to_string(*x.step) : std::string{};
  return f(caf::meta::type_name("exec_spec"), x.argv, x.cwd, x.user, x.deadline, step);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, environment& x) {
  return f(caf::meta::type_name("environment"), x.layers, x.user, x.cwd, x.limits.memory_bytes);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, lease_terms& x) {
  return f(caf::meta::type_name("lease"), x.pause_after, x.stop_after);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, sandbox_record& x) {
  return f(caf::meta::type_name("sandbox_record"), x.id, x.job, x.index, x.idempotency_key, x.is,
           x.wanted, x.held, x.cause, x.detail, x.created_ms, x.ended_ms);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, job_record& x) {
  return f(caf::meta::type_name("job_record"), x.id, x.state, x.preempted_until, x.lease,
           x.next_index, x.created_ms);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, step_record& x) {
  auto result = x.result ? *x.result : exec_result{};
  return f(caf::meta::type_name("step_record"), x.sandbox, x.step, x.exec, x.request_digest,
           result);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, meta_record& x) {
  return f(caf::meta::type_name("meta_record"), x.node, x.epoch, x.next_sequence);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, write_batch& x) {
  return f(caf::meta::type_name("write_batch"), x.jobs, x.sandboxes, x.steps, x.meta, x.forgotten);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, sandbox_info& x) {
  return f(caf::meta::type_name("sandbox_info"), x.id, x.job, x.index, x.state, x.cause, x.detail,
           x.steps);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, sandbox_stats& x) {
  return f(caf::meta::type_name("sandbox_stats"), x.memory_bytes, x.swap_bytes, x.processes);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, reclaim_report& x) {
  return f(caf::meta::type_name("reclaim_report"), x.before_bytes, x.after_bytes);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, preempt_report& x) {
  return f(caf::meta::type_name("preempt_report"), x.sandboxes, x.reclaimed, x.failed,
           x.before_bytes, x.after_bytes);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, sandbox_end& x) {
  return f(caf::meta::type_name("sandbox_end"), x.cause, x.detail);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, file_reply& x) {
  auto bytes = x.bytes.size();
  auto entries = x.entries.size();
  return f(caf::meta::type_name("file_reply"), bytes, entries, x.status.size);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, ack&) {
  return f(caf::meta::type_name("ack"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, exec_message& x) {
  return f(caf::meta::type_name("exec_message"), x.spec, x.ticket);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, cancel_exec& x) {
  return f(caf::meta::type_name("cancel_exec"), x.ticket);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, signal_exec& x) {
  return f(caf::meta::type_name("signal_exec"), x.ticket, x.number);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, file_message& x) {
  auto kind = x.request ? x.request->index() : 0;
  return f(caf::meta::type_name("file_message"), kind);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, pause_request& x) {
  return f(caf::meta::type_name("pause_request"), x.reclaim, x.held);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, resume_request&) {
  return f(caf::meta::type_name("resume_request"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, stop_request&) {
  return f(caf::meta::type_name("stop_request"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, info_request&) {
  return f(caf::meta::type_name("info_request"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, stats_request&) {
  return f(caf::meta::type_name("stats_request"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, await_running&) {
  return f(caf::meta::type_name("await_running"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, create_item& x) {
  return f(caf::meta::type_name("create_item"), x.idempotency_key, x.environment);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, create_request& x) {
  return f(caf::meta::type_name("create_request"), x.job, x.lease, x.items, x.indices);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, create_reply& x) {
  return f(caf::meta::type_name("create_reply"), x.sandboxes);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, preempt_request& x) {
  return f(caf::meta::type_name("preempt_request"), x.job, x.mode);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, resume_job& x) {
  return f(caf::meta::type_name("resume_job"), x.job);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, close_job& x) {
  return f(caf::meta::type_name("close_job"), x.job);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, forget_job& x) {
  return f(caf::meta::type_name("forget_job"), x.job);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, renew_job& x) {
  return f(caf::meta::type_name("renew_job"), x.job, x.lease);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, inventory_query& x) {
  return f(caf::meta::type_name("inventory_query"), x.job, x.with_ended);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, inventory& x) {
  return f(caf::meta::type_name("inventory"), x.sandboxes);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_load& x) {
  return f(caf::meta::type_name("node_load"), x.node, x.live, x.capacity, x.memory_committed_bytes,
           x.memory_capacity_bytes);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, find_sandbox& x) {
  return f(caf::meta::type_name("find_sandbox"), x.id);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, find_reply& x) {
  auto found = x.actor ? "actor" : "none";
  return f(caf::meta::type_name("find_reply"), found, x.info);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, load_request&) {
  return f(caf::meta::type_name("load_request"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, find_job& x) {
  return f(caf::meta::type_name("find_job"), x.job);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, open_job& x) {
  return f(caf::meta::type_name("open_job"), x.job, x.lease);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, create_batch& x) {
  return f(caf::meta::type_name("create_batch"), x.items);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, preempt_job& x) {
  return f(caf::meta::type_name("preempt_job"), x.mode);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, job_request&) {
  return f(caf::meta::type_name("job_request"));
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, join_node& x) {
  return f(caf::meta::type_name("join_node"), x.id);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, place_request& x) {
  return f(caf::meta::type_name("place_request"), x.sandboxes, x.memory_bytes);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, placement_reply& x) {
  return f(caf::meta::type_name("placement_reply"), x.ranked);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, load_step& x) {
  return f(caf::meta::type_name("load_step"), x.sandbox, x.step);
}

} // namespace dsec

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::exec_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::cancel_exec)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::signal_exec)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::file_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::pause_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::resume_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::stop_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::info_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::stats_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::await_running)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::create_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::preempt_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::resume_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::close_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::forget_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::renew_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::inventory_query)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::node_load)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::find_sandbox)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::find_reply)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::load_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::open_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::ack)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::find_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::create_batch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::preempt_job)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::job_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::join_node)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::place_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::placement_reply)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::load_step)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::sandbox_info)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::sandbox_stats)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::reclaim_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::preempt_report)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::job_record)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::exec_result_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::file_reply_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::write_batch_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::step_record_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::create_reply_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::inventory_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::job_actor)
