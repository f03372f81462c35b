#pragma once

#include "state/error.hpp"
#include "state/ids.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// The key space of a state directory. No other code joins or cuts key bytes.
///
///   family       key                                              value (schemas/records.capnp)
///   meta         "meta"                                           MetaRecord
///   job          name                                             JobRecord
///   sandbox      node (9 bytes) | sequence (8)                    SandboxRecord
///   trajectory   'r' | node (9) | sequence (8) | step (8)         StepRecord
///   trajectory   'o' | node (9) | sequence (8) | step (8)         StepOutput
///   idempotency  job name | 0x00 | idempotency key                the sandbox's id, as text
///   event        job name | 0x00 | cursor (8)                     EventRecord
///   event        job name | 0x00                                  EventRecord; see event_log.hpp
///   project, environment                                          nothing yet
///
/// Numbers are big-endian, so that a scan is in order of birth and of steps.

namespace dsec {

enum class family : std::uint8_t {
  meta,
  project,
  job,
  sandbox,
  trajectory,
  environment,
  idempotency,
  event,
};

inline constexpr std::array families{family::meta,        family::project,    family::job,
                                     family::sandbox,     family::trajectory, family::environment,
                                     family::idempotency, family::event};

std::string_view to_string(family x);

std::string meta_key();
std::string job_key(const job_id& job);
std::string idempotency_key(const job_id& job, std::string_view key);

/// What the keys of all events of a job begin with; as a key, the place for where it goes on.
std::string event_prefix(const job_id& job);
std::string event_key(const job_id& job, std::uint64_t cursor);

/// invalid_argument if `sandbox` is no sandbox id. The same holds for all below.
result<std::string> sandbox_key(const sandbox_id& sandbox);
result<std::string> step_key(const sandbox_id& sandbox, std::uint64_t step);
result<std::string> output_key(const sandbox_id& sandbox, std::uint64_t step);

/// What every step key begins with, whatever the sandbox.
std::string_view step_prefix();

/// What all step keys of a sandbox begin with, and all its output keys.
result<std::string> step_prefix(const sandbox_id& sandbox);
result<std::string> output_prefix(const sandbox_id& sandbox);

/// The first key after all that begin with `prefix` (which is not all 0xff).
std::string after_prefix(std::string prefix);

} // namespace dsec
