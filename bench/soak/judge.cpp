#include "bench/soak/judge.hpp"

#include "state/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace dsec::bench {

namespace {

/// How often each number stands in the ledger.
std::map<std::uint64_t, unsigned> lines_of(const std::string& ledger) {
  std::map<std::uint64_t, unsigned> lines;
  std::istringstream in{ledger};
  for (std::uint64_t number; in >> number;)
    ++lines[number];
  return lines;
}

std::optional<std::string> ledger_of(const sandbox& box) {
  auto read = box.read(ledger_path).get();
  if (read)
    return *std::move(read);
  if (read.error().code == errc::not_found)
    return std::string{};
  return std::nullopt;
}

} // namespace

exec_spec ledger_step(std::uint64_t number) {
  auto spec = exec_spec::shell(fmt::format("echo {} >> {}", number, ledger_path));
  spec.step = number;
  return spec;
}

std::optional<std::string> wrong_end(const sandbox_info& ended, const soak_notices& known) {
  const auto id = ended.id.str();
  switch (ended.cause) {
  case end_cause::stopped:
    return std::nullopt;
  case end_cause::infrastructure:
    if (known.killed.contains(id) || (known.spawner && ended.steps == 0))
      return std::nullopt;
    break;
  case end_cause::start_failed:
    if (known.spawner)
      return std::nullopt;
    break;
  default:
    break;
  }
  return fmt::format("{} ended as {}: {}", id, ended.cause, ended.detail);
}

std::optional<std::uint64_t> judge(const sandbox& box, const soak_notices& known, told& to) {
  const auto id = box.id().str();
  auto steps = box.trajectory().get();
  if (!steps) {
    to.wrong(fmt::format("{}: trajectory: {}", id, steps.error().message));
    return std::nullopt;
  }
  std::uint64_t next = 1;
  std::map<std::uint64_t, bool> done;
  for (const auto& step : *steps) {
    next = std::max(next, step.step + 1);
    // Begun when a crash came: asked again, it is joined, or told for what it was.
    auto outcome =
      step.result ? result<exec_result>{*step.result} : box.exec(ledger_step(step.step)).get();
    done[step.step] = outcome && outcome->ok();
    if (!done[step.step] && !known.killed.contains(id))
      to.wrong(fmt::format("{} step {}: {}", id, step.step,
                           outcome
                             ? fmt::format("{}: {}", outcome->outcome.kind, outcome->outcome.cause)
                             : outcome.error().message));
  }
  if (auto acked = known.acked.find(id); acked != known.acked.end())
    for (auto step : acked->second)
      if (!done.contains(step))
        to.wrong(fmt::format("{} step {}: acknowledged and lost", id, step));
  auto ledger = ledger_of(box);
  if (!ledger)
    return std::nullopt;
  const auto lines = lines_of(*ledger);
  for (const auto& [step, count] : lines)
    if (count > 1)
      to.wrong(fmt::format("{} step {}: ran {} times", id, step, count));
  for (const auto& [step, ok] : done)
    if (ok && !lines.contains(step))
      to.wrong(fmt::format("{} step {}: recorded, and not in the sandbox", id, step));
  return next;
}

} // namespace dsec::bench
