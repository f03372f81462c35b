#include "bench/demo/grade.hpp"
#include "bench/demo/routine.hpp"
#include "bench/demo/training.hpp"

#include <fmt/format.h>

#include <sstream>

namespace dsec::demo {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto steps_file = "/workspace/.steps";
constexpr int attempts_max = 40;

double ms_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

void show_progress(training& t) {
  if (!t.options.quiet)
    t.bar.update(t.acked, t.steps_total,
                 fmt::format("| rollouts done {} | replayed {}", t.finished, t.replayed));
}

/// FNV-1a: the same in every process, which std::hash need not be.
std::uint64_t fingerprint(const std::string& bytes) {
  std::uint64_t h = 14695981039346656037ull;
  for (unsigned char c : bytes)
    h = (h ^ c) * 1099511628211ull;
  return h;
}

std::string in_short(const exec_result& r) {
  return fmt::format("{} {} {:016x}", to_string(r.outcome.kind), r.outcome.code,
                     fingerprint(r.out + r.err));
}

/// Worth asking again: the request is idempotent, and its target may be back soon.
bool passing(const error& e) {
  return e.code == errc::unavailable || e.code == errc::preempted || e.code == errc::exhausted;
}

exec_spec spec_of(const action& x, std::uint64_t step, const std::string& cwd) {
  auto spec = exec_spec::shell(fmt::format("echo {} >> {}\n{}", step, steps_file, x.command));
  spec.cwd = cwd;
  spec.deadline = x.deadline;
  spec.step = step;
  spec.stdin_bytes = x.input;
  return spec;
}

routine<result<exec_result>> perform(training& t, const std::string& name, const sandbox& box,
                                     std::uint64_t step, const action& what,
                                     const std::string& cwd) {
  co_await t.may_step.pass();
  t.notes.append({{"event", "sent"}, {"sandbox", name}, {"step", step}}, false);
  auto spec = spec_of(what, step, cwd);
  result<exec_result> got{error{}};
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    auto start = clock::now();
    t.in_flight[name] = box;
    got = co_await t.loop.answer(box.exec(spec));
    t.in_flight.erase(name);
    if (got && !got->replayed)
      t.exec_ms.push_back(ms_since(start) - static_cast<double>(got->duration.count()));
    if (got || !passing(got.error()))
      break;
    co_await t.loop.sleep(250ms);
  }
  if (!got)
    co_return got;
  t.notes.append(
    {{"event", "acked"}, {"sandbox", name}, {"step", step}, {"answer", in_short(*got)}});
  ++t.acked;
  t.replayed += got->replayed ? 1 : 0;
  if (t.options.preempt && !t.preempted && t.acked * 2 >= t.steps_total)
    preempt_once(t);
  co_return got;
}

/// Asks again under the same key, so that a sandbox that was made after all is found.
routine<result<sandbox>>
obtain(training& t, const rollout_plan& plan, const std::string& key, future<sandbox> asked) {
  auto start = clock::now();
  auto box = co_await t.loop.answer(asked);
  for (int attempt = 1; attempt < attempts_max && !box && passing(box.error()); ++attempt) {
    co_await t.loop.sleep(250ms);
    // Not within the co_await: GCC 12 destroys an aggregate made there twice.
    asked = t.job.create({plan.environment, key});
    box = co_await t.loop.answer(asked);
  }
  if (box)
    t.create_ms.push_back(ms_since(start));
  co_return box;
}

/// The file that the steps wrote themselves; nothing if the sandbox is gone.
routine<bool> note_seen(training& t, const std::string& name, const sandbox& box) {
  auto text = co_await t.loop.answer(box.read(steps_file));
  if (!text)
    co_return false;
  std::vector<std::uint64_t> steps;
  std::istringstream lines{*text};
  for (std::uint64_t step = 0; lines >> step;)
    steps.push_back(step);
  t.notes.append({{"event", "seen"}, {"sandbox", name}, {"steps", steps}});
  co_return true;
}

struct verdict {
  std::string outcome;
  double reward = 0;
  std::optional<score> tests;
  std::string cause;
};

verdict ended_by(const error& e, const std::string& doing) {
  return {"infrastructure", 0, std::nullopt, doing + ": " + e.message};
}

/// Copies the collected files into a fresh sandbox of the pristine environment and tests there.
routine<verdict> grade(training& t, const rollout_plan& plan, const sandbox& box) {
  auto asked = t.job.create({plan.environment, plan.grader_name});
  auto fresh = co_await obtain(t, plan, plan.grader_name, asked);
  if (!fresh)
    co_return ended_by(fresh.error(), "creating the grader");
  auto tree = workspace_of(*plan.task);
  for (const auto& path : plan.task->collect) {
    auto bytes = co_await t.loop.answer(box.read(tree + "/" + path));
    // A file that the agent deleted stays as it was; the tests decide.
    if (!bytes && bytes.error().code == errc::not_found)
      continue;
    if (!bytes)
      co_return ended_by(bytes.error(), "collecting " + path);
    auto written = co_await t.loop.answer(fresh->write(tree + "/" + path, std::move(*bytes)));
    if (!written)
      co_return ended_by(written.error(), "writing " + path);
  }
  action test{0ms, plan.task->grade_command, "", plan.task->grade_deadline};
  auto got = co_await perform(t, plan.grader_name, *fresh, 1, test, tree);
  if (!got)
    co_return ended_by(got.error(), "grading");
  co_await note_seen(t, plan.grader_name, *fresh);
  verdict v;
  v.tests = parse_score(got->out);
  v.reward = reward_of(*plan.task, v.tests);
  v.outcome = v.reward > 0 ? "solved" : "failed";
  if (got->outcome.kind == outcome_kind::infrastructure)
    v = {"infrastructure", 0, std::nullopt, got->outcome.cause};
  co_return v;
}

/// Replays the agent's tool calls; the first that ends otherwise than by exiting ends the rollout.
routine<verdict> act(training& t, const rollout_plan& plan, const sandbox& box) {
  auto tree = workspace_of(*plan.task);
  std::uint64_t step = 0;
  for (const auto& what : plan.trajectory.actions) {
    ++step;
    if (!t.before.acked.contains({plan.name, step}))
      co_await t.loop.sleep(std::chrono::milliseconds{
        static_cast<std::int64_t>(static_cast<double>(what.think.count()) / t.options.speed)});
    auto got = co_await perform(t, plan.name, box, step, what, tree);
    show_progress(t);
    if (!got)
      co_return ended_by(got.error(), fmt::format("step {}", step));
    if (got->outcome.kind != outcome_kind::exited)
      co_return verdict{std::string{to_string(got->outcome.kind)}, 0, std::nullopt,
                        got->outcome.cause};
  }
  co_return co_await grade(t, plan, box);
}

} // namespace

detached_routine roll_out(training& t, const rollout_plan& plan, future<sandbox> created) {
  auto box = co_await obtain(t, plan, plan.name, created);
  verdict v;
  if (box) {
    v = co_await act(t, plan, *box);
    co_await note_seen(t, plan.name, *box);
  } else {
    v = ended_by(box.error(), "creating the sandbox");
  }
  nlohmann::json event = {{"event", "rollout"},
                          {"sandbox", plan.name},
                          {"task", plan.task->name},
                          {"trajectory", plan.trajectory.name},
                          {"expect", plan.trajectory.expect},
                          {"outcome", v.outcome},
                          {"reward", v.reward},
                          {"cause", v.cause}};
  if (v.tests) {
    event["passed"] = v.tests->passed;
    event["failed"] = v.tests->failed;
  }
  t.notes.append(event);
  ++t.finished;
  show_progress(t);
  if (t.finished == t.options.sandboxes)
    t.loop.stop();
}

} // namespace dsec::demo
