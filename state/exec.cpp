#include "state/exec.hpp"

#include "state/digest.hpp"
#include "state/printable.hpp"
#include "state/variables.hpp"

#include <fmt/format.h>

namespace dsec {

namespace {

constexpr std::size_t total_bytes_max = 2ull << 20;
constexpr std::uint64_t spool_bytes_max = 8ull << 20;

error invalid(std::string message) {
  return {errc::invalid_argument, "exec: " + std::move(message)};
}

result<void> validate_argv(const std::vector<std::string>& argv, std::size_t& total) {
  if (argv.empty())
    return invalid("argv has 0 elements; at least 1");
  if (argv[0].empty())
    return invalid("argv[0] is \"\"; the name of a program");
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (has_nul(argv[i]))
      return invalid(fmt::format("argv[{}] is {}; without NUL", i, printable(argv[i])));
    if (argv[i].size() > argument_bytes_max)
      return invalid(
        fmt::format("argv[{}] has {} bytes; at most {}", i, argv[i].size(), argument_bytes_max));
    total += argv[i].size() + 1;
  }
  return {};
}

/// Length before bytes, so that no two requests encode alike.
class encoder {
public:
  void number(std::uint64_t x) {
    char bytes[8];
    for (int i = 7; i >= 0; --i, x >>= 8)
      bytes[i] = static_cast<char>(x & 0xff);
    digest_.add({bytes, sizeof bytes});
  }

  void text(std::string_view x) {
    number(x.size());
    digest_.add(x);
  }

  std::string hex() && {
    return std::move(digest_).hex();
  }

private:
  sha256 digest_;
};

} // namespace

std::string_view to_string(outcome_kind x) {
  switch (x) {
  case outcome_kind::exited:
    return "exited";
  case outcome_kind::signalled:
    return "signalled";
  case outcome_kind::timed_out:
    return "timed_out";
  case outcome_kind::cancelled:
    return "cancelled";
  case outcome_kind::oom_killed:
    return "oom_killed";
  case outcome_kind::pids_limit:
    return "pids_limit";
  case outcome_kind::disk_full:
    return "disk_full";
  case outcome_kind::self_inflicted:
    return "self_inflicted";
  case outcome_kind::sandbox_stopped:
    return "sandbox_stopped";
  case outcome_kind::node_lost:
    return "node_lost";
  case outcome_kind::infrastructure:
    return "infrastructure";
  case outcome_kind::budget_spent:
    return "budget_spent";
  case outcome_kind::expired:
    return "expired";
  }
  return "unknown";
}

exec_spec exec_spec::shell(std::string script) {
  exec_spec spec;
  spec.argv = {"/bin/sh", "-c", std::move(script)};
  return spec;
}

std::string request_digest(const exec_spec& spec) {
  encoder out;
  out.number(spec.argv.size());
  for (const auto& x : spec.argv)
    out.text(x);
  out.number(spec.env.size());
  for (const auto& [name, value] : spec.env) {
    out.text(name);
    out.text(value);
  }
  out.text(spec.cwd);
  out.text(spec.user);
  out.number(spec.stdin_bytes ? 1 : 0);
  if (spec.stdin_bytes)
    out.text(*spec.stdin_bytes);
  out.number(static_cast<std::uint64_t>(spec.deadline.count()));
  out.number(spec.spool_bytes);
  return std::move(out).hex();
}

result<void> validate(const exec_spec& spec) {
  std::size_t total = 0;
  if (auto ok = validate_argv(spec.argv, total); !ok)
    return ok;
  auto variables = check_variables("exec", spec.env);
  if (!variables)
    return variables.error();
  total += *variables;
  if (total > total_bytes_max)
    return invalid(fmt::format("argv and env have {} bytes; at most {}", total, total_bytes_max));
  if (has_nul(spec.cwd) || (!spec.cwd.empty() && spec.cwd[0] != '/'))
    return invalid(fmt::format("cwd is {}; empty or absolute, without NUL", printable(spec.cwd)));
  if (spec.cwd.size() > 4095)
    return invalid(fmt::format("cwd has {} bytes; at most 4095", spec.cwd.size()));
  if (has_nul(spec.user) || spec.user.size() > 256)
    return invalid(fmt::format("user is {}; at most 256 bytes, without NUL", printable(spec.user)));
  if (spec.deadline.count() < 0)
    return invalid(fmt::format("deadline is {} ms; at least 0", spec.deadline.count()));
  if (spec.spool_bytes > spool_bytes_max)
    return invalid(fmt::format("spool_bytes is {}; at most {}", spec.spool_bytes, spool_bytes_max));
  if (spec.step && *spec.step >= 1ull << 63)
    return invalid(fmt::format("step is {}; below 2^63", *spec.step));
  return {};
}

} // namespace dsec
