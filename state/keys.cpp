#include "state/keys.hpp"

namespace dsec {

namespace {

constexpr char record_kind = 'r';
constexpr char output_kind = 'o';

void append(std::string& out, std::uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8)
    out += static_cast<char>(number >> shift & 0xff);
}

result<std::string> prefixed(std::string start, const sandbox_id& sandbox) {
  auto node = node_of(sandbox);
  if (!node)
    return node.error();
  start += node->str();
  append(start, *sequence_of(sandbox));
  return start;
}

result<std::string> with_step(result<std::string> prefix, std::uint64_t step) {
  if (prefix)
    append(*prefix, step);
  return prefix;
}

} // namespace

std::string_view to_string(family x) {
  switch (x) {
  case family::meta:
    return "meta";
  case family::project:
    return "project";
  case family::job:
    return "job";
  case family::sandbox:
    return "sandbox";
  case family::trajectory:
    return "trajectory";
  case family::environment:
    return "environment";
  case family::idempotency:
    return "idempotency";
  case family::event:
    return "event";
  }
  return "unknown";
}

std::string meta_key() {
  return "meta";
}

std::string job_key(const job_id& job) {
  return job.str();
}

std::string idempotency_key(const job_id& job, std::string_view key) {
  auto out = job.str();
  out += '\0';
  out += key;
  return out;
}

std::string event_prefix(const job_id& job) {
  return job.str() + '\0';
}

std::string event_key(const job_id& job, std::uint64_t cursor) {
  auto out = event_prefix(job);
  append(out, cursor);
  return out;
}

result<std::string> sandbox_key(const sandbox_id& sandbox) {
  return prefixed("", sandbox);
}

result<std::string> step_key(const sandbox_id& sandbox, std::uint64_t step) {
  return with_step(step_prefix(sandbox), step);
}

result<std::string> output_key(const sandbox_id& sandbox, std::uint64_t step) {
  return with_step(output_prefix(sandbox), step);
}

std::string_view step_prefix() {
  return {&record_kind, 1};
}

result<std::string> step_prefix(const sandbox_id& sandbox) {
  return prefixed({record_kind}, sandbox);
}

result<std::string> output_prefix(const sandbox_id& sandbox) {
  return prefixed({output_kind}, sandbox);
}

std::string after_prefix(std::string prefix) {
  while (static_cast<unsigned char>(prefix.back()) == 0xff)
    prefix.pop_back();
  prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

} // namespace dsec
