#pragma once

#include "bench/soak/notices.hpp"
#include "bench/soak/told.hpp"
#include "sdk/embed/runtime.hpp"

#include <optional>
#include <string>

namespace dsec::bench {

/// The file in every sandbox that each recorded step appends its number to.
inline constexpr const char* ledger_path = "/ledger";

/// The command of step `number`: the same in every life, as a recorded step must be.
exec_spec ledger_step(std::uint64_t number);

/// Whether a sandbox may have ended as it did, for all that the driver knows. What is wrong with
/// it, or nothing.
std::optional<std::string> wrong_end(const sandbox_info& ended, const soak_notices& known);

/// What a live sandbox must be after a crash of anything of ours: every acknowledged step is
/// recorded, and the ledger inside has each recorded step once and no step twice. Tells what is
/// wrong. Returns the number of the next step, or nothing if the sandbox ended meanwhile.
std::optional<std::uint64_t> judge(const sandbox& box, const soak_notices& known, told& to);

} // namespace dsec::bench
