#pragma once

#include "state/event.hpp"
#include "state/records.hpp"

#include <string>
#include <string_view>

namespace dsec {

/// Record <-> bytes, through schemas/records.capnp. A value is
///
///   version (1 byte) | CRC-32C of the rest (4 bytes, little endian) | Cap'n Proto message
///
/// so a torn or foreign value is `corrupt`, never nonsense. Decoding takes any bytes.

std::string encode(const meta_record& x);
std::string encode(const job_record& x);
std::string encode(const sandbox_record& x);

std::string encode(const job_event& x);

/// Everything but the output of its result, and `replayed`, which is said of an answer, not of a
/// step.
std::string encode(const step_record& x);

/// The output alone. Empty if there is none.
std::string encode_output(const step_record& x);

result<meta_record> decode_meta(std::string_view bytes);
result<job_record> decode_job(std::string_view bytes);
result<sandbox_record> decode_sandbox(std::string_view bytes);
result<step_record> decode_step(std::string_view bytes);
result<job_event> decode_event(std::string_view bytes);

/// Puts the output where `encode_output` took it from. invalid_argument if `into` has no result.
result<void> decode_output(std::string_view bytes, step_record& into);

} // namespace dsec
