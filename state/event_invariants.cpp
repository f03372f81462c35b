#include "state/event_invariants.hpp"

#include "state/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace dsec {

namespace {

using K = event_kind;

/// What the events so far say of one sandbox.
struct told_sandbox {
  std::optional<K> state; ///< The last change of it.
  std::set<K> ever;
  std::set<exec_id> execs;     ///< Started and not ended.
  std::set<exec_id> processes; ///< Likewise.
  std::set<exec_id> ended;     ///< Execs that have ended with an outcome, and processes.
  std::map<std::uint64_t, outcome> steps;
};

class story {
public:
  explicit story(const std::vector<job_event>& events) {
    bool whole = !events.empty() && events.front().cursor == 1;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (i > 0)
        require(events[i].cursor == events[i - 1].cursor + 1, events[i], "follows on number {}",
                events[i - 1].cursor);
      if (whole)
        take(events[i]);
    }
  }

  const std::map<sandbox_id, told_sandbox>& sandboxes() const {
    return sandboxes_;
  }

  std::vector<std::string> found;

private:
  template <class... Args>
  void require(bool holds, const job_event& x, fmt::format_string<Args...> format, Args&&... args) {
    if (!holds)
      found.push_back(fmt::format("event {}, {} of {}: {}", x.cursor, x.kind, x.sandbox,
                                  fmt::format(format, std::forward<Args>(args)...)));
  }

  void take(const job_event& x) {
    auto& of = sandboxes_[x.sandbox];
    require(of.state.has_value() == (x.kind != K::created), x, "it was {} before",
            of.state ? "created" : "not created");
    require(of.state != K::stopped, x, "it has stopped");
    switch (x.kind) {
    case K::exec_started:
      require(!of.ended.contains(x.exec), x, "{} has ended before", x.exec);
      require(of.execs.insert(x.exec).second, x, "{} has started before", x.exec);
      return;
    case K::exec_ended:
      require(of.execs.erase(x.exec) == 1 || ended_by_a_later_life(x), x, "{} does not run",
              x.exec);
      end(of, x);
      return;
    case K::process_started:
      require(!of.ended.contains(x.exec), x, "{} has ended before", x.exec);
      require(of.processes.insert(x.exec).second, x, "{} has started before", x.exec);
      return;
    case K::process_ended:
      require(of.processes.erase(x.exec) == 1, x, "{} does not run", x.exec);
      of.ended.insert(x.exec);
      return;
    default:
      change(of, x);
    }
  }

  /// The start of such a command may have been lost with the process that told it.
  static bool ended_by_a_later_life(const job_event& x) {
    return !x.step && x.outcome && !x.detail.empty();
  }

  void end(told_sandbox& of, const job_event& x) {
    if (!x.outcome) {
      require(!x.detail.empty(), x, "nothing says why it did not run");
      return;
    }
    require(of.ended.insert(x.exec).second, x, "{} has ended before", x.exec);
    if (x.step)
      of.steps[*x.step] = *x.outcome;
  }

  void change(told_sandbox& of, const job_event& x) {
    auto before = of.state.value_or(K::created);
    bool first = of.ever.insert(x.kind).second;
    of.state = x.kind;
    switch (x.kind) {
    case K::created:
      return;
    case K::running:
      require(first && before == K::created, x, "it was {}", before);
      return;
    case K::paused:
      require(before != K::paused && before != K::failed, x, "it was {}", before);
      return;
    case K::reclaimed:
      require(before != K::reclaimed && before != K::failed, x, "it was {}", before);
      return;
    case K::resumed:
      require(before == K::paused || before == K::reclaimed, x, "it was {}", before);
      return;
    case K::failed:
      require(first, x, "it has failed before");
      require(x.cause != end_cause::none, x, "it has no cause");
      return;
    default:
      require(x.cause != end_cause::none, x, "it has no cause");
      require(of.processes.empty(), x, "processes live in it");
    }
  }

  std::map<sandbox_id, told_sandbox> sandboxes_;
};

} // namespace

std::vector<std::string> violations(const std::vector<job_event>& events) {
  return story{events}.found;
}

std::vector<std::string>
disagreements(const loaded_state& state, const job_id& job, const std::vector<job_event>& events) {
  story all{events};
  auto found = std::move(all.found);
  auto require = [&](bool holds, std::string what) {
    if (!holds)
      found.push_back(std::move(what));
  };
  std::set<sandbox_id> own;
  for (const auto& x : state.sandboxes) {
    if (x.job != job)
      continue;
    own.insert(x.id);
    auto at = all.sandboxes().find(x.id);
    require(at != all.sandboxes().end(), fmt::format("sandbox {}: no event tells of it", x.id));
    if (at == all.sandboxes().end())
      continue;
    require(at->second.state == x.told, fmt::format("sandbox {}: told as {}, the record says {}",
                                                    x.id, *at->second.state, x.told));
    std::set live(x.processes.begin(), x.processes.end());
    if (x.is == sandbox_state::terminated)
      live.clear();
    require(at->second.processes == live,
            fmt::format("sandbox {}: not the processes that its record says live", x.id));
  }
  for (const auto& x : state.steps) {
    if (!own.contains(x.sandbox))
      continue;
    const auto& of = all.sandboxes().at(x.sandbox);
    auto name = fmt::format("step {} of {}", x.step, x.sandbox);
    if (!x.result) {
      require(of.execs.contains(x.exec), name + ": begun, and the events do not say so");
      continue;
    }
    auto told = of.steps.find(x.step);
    require(told != of.steps.end() && told->second == x.result->outcome,
            name + ": ended, and the events do not say how");
  }
  return found;
}

} // namespace dsec
