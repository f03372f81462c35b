#pragma once

#include "state/error.hpp"
#include "state/exec.hpp"
#include "state/records.hpp"

#include <optional>

/// What the end of a sandbox is to whatever was under way in it, or is asked of it afterwards. The
/// record is the one source: whoever else says how a sandbox ended is overruled by it.

namespace dsec {

/// What the end of the sandbox is to a command in it; `ran`: it had begun.
outcome outcome_of_end(const sandbox_record& record, bool ran);

/// Of a process that the end of its sandbox took along, and nobody has what it had written.
exec_result lost_with(const sandbox_record& record);

/// Whether `x` is the end of the sandbox, not the command's own.
bool ended_with_its_sandbox(outcome_kind x);

/// The end that dsec-init tells with such an outcome if it ended its sandbox by itself; nothing if
/// it is no end of a sandbox.
std::optional<end_cause> end_told_by(outcome_kind x);

/// With which code something is refused because its sandbox has ended of `x`.
errc refusal_code(end_cause x);

} // namespace dsec
