#pragma once

#include "actors/message.hpp"
#include "actors/protocol.hpp"
#include "state/format.hpp"

#include <caf/meta/type_name.hpp>

#include <memory>
#include <optional>
#include <string>

/// How everything that protocol.hpp speaks of prints.

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

template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, result<T>& x) {
  if (x)
    return f(*x);
  auto copy = x.error();
  return f(copy);
}

template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, std::optional<T>& x) {
  if (x)
    return f(*x);
  std::string nothing = "none";
  return f(nothing);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, exec_spec& x) {
  auto step = x.step ? std::to_string(*x.step) : std::string{};
  return f(caf::meta::type_name("exec_spec"), x.argv, x.cwd, x.user, x.deadline, step);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, file_reply& x) {
  auto bytes = x.bytes.size();
  auto entries = x.entries.size();
  return f(caf::meta::type_name("file_reply"), bytes, entries, x.status.size);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, file_message& x) {
  auto kind = x.request ? x.request->index() : 0;
  return f(caf::meta::type_name("file_message"), kind);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, process_message& x) {
  auto kind = x.request ? x.request->index() : 0;
  return f(caf::meta::type_name("process_message"), kind);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, process_reply& x) {
  auto processes = x.processes.size();
  return f(caf::meta::type_name("process_reply"), processes, x.outcome);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, find_reply& x) {
  auto found = x.actor ? "actor" : "none";
  return f(caf::meta::type_name("find_reply"), found, x.info);
}

} // namespace dsec

DSEC_PRINTS(error, x.code, x.message)
DSEC_PRINTS(outcome, x.kind, x.code, x.cause)
DSEC_PRINTS(exec_result, x.outcome, x.out, x.err, x.out_bytes, x.err_bytes, x.duration, x.replayed)
DSEC_PRINTS(environment, x.layers, x.user, x.cwd, x.limits.memory_bytes)
DSEC_PRINTS(lease_terms, x.pause_after, x.stop_after)
DSEC_PRINTS(sandbox_clocks, x.time_to_live, x.rollout_budget, x.idle_timeout, x.on_idle)
DSEC_PRINTS(sandbox_record, x.id, x.job, x.index, x.idempotency_key, x.is, x.wanted, x.held,
            x.cause, x.detail, x.created_ms, x.ended_ms)
DSEC_MESSAGE(job_record, x.id, x.state, x.preempted_until, x.lease, x.next_index, x.created_ms)
DSEC_PRINTS(step_record, x.sandbox, x.step, x.exec, x.request_digest, x.result)
DSEC_PRINTS(sandbox_history, x.record, x.steps)
DSEC_PRINTS(meta_record, x.node, x.epoch, x.next_sequence)
DSEC_PRINTS(job_event, x.job, x.cursor, x.sandbox, x.kind, x.exec, x.cause)
DSEC_PRINTS(event_page, x.events, x.next, x.oldest)
DSEC_PRINTS(write_batch, x.jobs, x.sandboxes, x.steps, x.meta, x.forgotten, x.events)
DSEC_MESSAGE(sandbox_info, x.id, x.job, x.index, x.state, x.cause, x.detail, x.steps)
DSEC_MESSAGE(sandbox_stats, x.memory_bytes, x.swap_bytes, x.processes)
DSEC_MESSAGE(reclaim_report, x.before_bytes, x.after_bytes)
DSEC_MESSAGE(preempt_report, x.sandboxes, x.reclaimed, x.failed, x.before_bytes, x.after_bytes)
DSEC_PRINTS(sandbox_end, x.cause, x.detail)
DSEC_MESSAGE(ack)
DSEC_MESSAGE(exec_message, x.spec, x.ticket)
DSEC_MESSAGE(cancel_exec, x.ticket)
DSEC_MESSAGE(signal_exec, x.ticket, x.number)
DSEC_MESSAGE(pause_request, x.reclaim, x.held)
DSEC_MESSAGE(resume_request)
DSEC_MESSAGE(stop_request)
DSEC_MESSAGE(info_request)
DSEC_MESSAGE(stats_request)
DSEC_MESSAGE(await_running)
DSEC_PRINTS(create_item, x.idempotency_key, x.environment)
DSEC_MESSAGE(create_request, x.job, x.lease, x.items, x.indices)
DSEC_PRINTS(create_reply, x.sandboxes)
DSEC_MESSAGE(preempt_request, x.job, x.mode)
DSEC_MESSAGE(resume_job, x.job)
DSEC_MESSAGE(close_job, x.job)
DSEC_MESSAGE(forget_job, x.job)
DSEC_MESSAGE(renew_job, x.job, x.lease)
DSEC_MESSAGE(inventory_query, x.job, x.with_ended)
DSEC_PRINTS(inventory, x.sandboxes)
DSEC_MESSAGE(node_load, x.node, x.live, x.capacity, x.memory_committed_bytes,
             x.memory_capacity_bytes)
DSEC_MESSAGE(find_sandbox, x.id)
DSEC_MESSAGE(load_request)
DSEC_MESSAGE(find_job, x.job)
DSEC_MESSAGE(open_job, x.job, x.lease)
DSEC_MESSAGE(create_batch, x.items)
DSEC_MESSAGE(preempt_job, x.mode)
DSEC_MESSAGE(job_request)
DSEC_MESSAGE(join_node, x.id)
DSEC_MESSAGE(place_request, x.sandboxes, x.memory_bytes)
DSEC_MESSAGE(placement_reply, x.ranked)
DSEC_MESSAGE(load_step, x.sandbox, x.step)
DSEC_MESSAGE(load_sandbox, x.sandbox)
DSEC_MESSAGE(load_job, x.job)
DSEC_MESSAGE(load_events, x.job, x.cursor, x.count)
DSEC_MESSAGE(set_clocks, x.clocks)
DSEC_MESSAGE(keys_request, x.job)
DSEC_MESSAGE(keys_reply, x.node, x.keys)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::file_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::process_message)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::process_reply_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::event_page_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::find_reply)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::exec_result_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::file_reply_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::write_batch_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::step_record_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::sandbox_history_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::create_reply_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::inventory_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(dsec::job_actor)
