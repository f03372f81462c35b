#pragma once

#include "actors/job.hpp"

#include <functional>

/// How the source files of the job actor call one another.

namespace dsec::job_parts {

using self_pointer = job_inside::stateful_pointer<job_data>;

/// Makes the record durable, then calls `done`; on failure `failed`.
void persist(self_pointer self, std::function<void()> done,
             std::function<void(caf::error&)> failed);

// -- job_create.cpp

caf::result<create_reply_ptr> create(self_pointer self, const create_batch& x);

} // namespace dsec::job_parts
