#pragma once

#include "actors/job.hpp"

#include <functional>

/// How the source files of the job actor call one another.

namespace dsec::job_parts {

using self_pointer = job_inside::stateful_pointer<job_data>;

/// Makes the record durable, then calls `done`; on failure `failed`.
void persist(self_pointer self, std::function<void()> done, std::function<void(caf::error)> failed);

// -- job_create.cpp

caf::result<create_reply_ptr> create(self_pointer self, const create_batch& x);

// -- job_keys.cpp: which node has which idempotency key

/// Calls `known` once every node has told which keys of this job it has, at once if all have; else
/// `unknown` with what kept one from it.
void learn_keys(self_pointer self, std::function<void()> known, std::function<void(error)> unknown);

/// What became of a creation there is unknown: its keys are to be learnt again.
void doubt(job_data& data, const node_id& node);

} // namespace dsec::job_parts
