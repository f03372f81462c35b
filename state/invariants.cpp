#include "state/invariants.hpp"

#include "state/end_outcome.hpp"
#include "state/format.hpp"
#include "state/idempotency.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace dsec {

namespace {

class checker {
public:
  explicit checker(const loaded_state& state) : state_{state} {}

  std::vector<std::string> run() {
    check_meta();
    for (const auto& x : state_.jobs)
      check(x);
    for (const auto& x : state_.sandboxes)
      check(x);
    check_stable_names();
    for (const auto& x : state_.steps)
      check(x);
    return std::move(found_);
  }

private:
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    if (!holds)
      found_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void check_meta() {
    bool empty = state_.jobs.empty() && state_.sandboxes.empty() && state_.steps.empty();
    if (state_.meta.node.empty() && empty)
      return;
    require(bool{validate(state_.meta.node)}, "meta: the node id \"{}\" is malformed",
            state_.meta.node);
  }

  void check(const job_record& x) {
    require(jobs_.emplace(x.id, &x).second, "job {}: recorded twice", x.id);
    require(bool{validate(x.id)}, "job \"{}\": the name is malformed", x.id);
    check_lease(fmt::format("job {}", x.id), x.lease);
  }

  void check(const sandbox_record& x) {
    require(sandboxes_.emplace(x.id, &x).second, "sandbox {}: recorded twice", x.id);
    check_id(x);
    check_lease(fmt::format("sandbox {}", x.id), x.lease);
    if (!x.idempotency_key.empty() && !frees_key(x)) {
      auto [i, fresh] = keys_.emplace(std::pair{x.job, x.idempotency_key}, x.id);
      require(fresh, "sandbox {}: its idempotency key \"{}\" is that of {} in job {}", x.id,
              x.idempotency_key, i->second, x.job);
    }
    check_end(x);
    check_wanted(x);
    check_job(x);
  }

  void check_id(const sandbox_record& x) {
    auto sequence = sequence_of(x.id);
    require(bool{sequence}, "sandbox \"{}\": the id is malformed", x.id);
    if (!sequence)
      return;
    require(*node_of(x.id) == state_.meta.node, "sandbox {}: not born on {}", x.id,
            state_.meta.node);
    require(*sequence < state_.meta.next_sequence,
            "sandbox {}: its sequence is not below the next one, {}", x.id,
            state_.meta.next_sequence);
  }

  void check_end(const sandbox_record& x) {
    bool over = x.is == sandbox_state::terminated;
    bool broken = x.is == sandbox_state::failed || x.is == sandbox_state::stopping
                  || x.is == sandbox_state::lost;
    if (over || x.is == sandbox_state::failed)
      require(x.cause != end_cause::none, "sandbox {}: {} without a cause", x.id, x.is);
    require(!over || x.ended_ms != 0, "sandbox {}: terminated without a time", x.id);
    require(over || broken || x.ended_ms == 0, "sandbox {}: {} but ended at {}", x.id, x.is,
            x.ended_ms);
  }

  void check_wanted(const sandbox_record& x) {
    bool heading = x.wanted == sandbox_state::running || x.wanted == sandbox_state::paused
                   || x.wanted == sandbox_state::reclaimed || x.wanted == sandbox_state::terminated;
    require(heading, "sandbox {}: {} is nothing to head for", x.id, x.wanted);
    if (x.is == sandbox_state::stopping || x.is == sandbox_state::terminated)
      require(x.wanted == sandbox_state::terminated, "sandbox {}: {} but wanted {}", x.id, x.is,
              x.wanted);
  }

  void check_job(const sandbox_record& x) {
    if (x.is == sandbox_state::terminated)
      return;
    auto job = jobs_.find(x.job);
    require(job != jobs_.end(), "sandbox {}: lives in job {}, which does not exist", x.id, x.job);
    if (job == jobs_.end())
      return;
    require(x.index < job->second->next_index, "sandbox {}: its index {} in job {} is not below {}",
            x.id, x.index, x.job, job->second->next_index);
  }

  void check_stable_names() {
    std::map<std::pair<job_id, std::uint64_t>, sandbox_id> names;
    for (const auto& x : state_.sandboxes) {
      auto [i, fresh] = names.emplace(std::pair{x.job, x.index}, x.id);
      require(fresh, "sandbox {}: it is number {} of job {}, as {} is", x.id, x.index, x.job,
              i->second);
    }
  }

  void check(const step_record& x) {
    auto name = fmt::format("step {} of {}", x.step, x.sandbox);
    require(steps_.emplace(x.sandbox, x.step).second, "{}: recorded twice", name);
    require(sandboxes_.contains(x.sandbox), "{}: its sandbox does not exist", name);
    require(x.exec == x.step, "{}: its exec id is {}", name, x.exec);
    bool digest = x.request_digest.size() == 64
                  && std::all_of(x.request_digest.begin(), x.request_digest.end(), [](char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                     });
    require(digest, "{}: its request digest \"{}\" is malformed", name, x.request_digest);
    if (!x.result)
      return;
    require(!x.result->replayed, "{}: its own result says that it was replayed", name);
    auto kind = x.result->outcome.kind;
    require(kind != outcome_kind::node_lost, "{}: recorded as {}", name, kind);
    auto in = sandboxes_.find(x.sandbox);
    if (in != sandboxes_.end() && ended_with_its_sandbox(kind))
      require(in->second->cause != end_cause::none
                && kind == outcome_of_end(*in->second, true).kind,
              "{}: recorded as {}, and its sandbox is {} ({})", name, kind, in->second->is,
              in->second->cause);
  }

  void check_lease(const std::string& owner, const lease_terms& x) {
    require(x.pause_after.count() >= 0 && x.stop_after.count() >= 0,
            "{}: its lease has a negative time", owner);
    bool ordered =
      x.pause_after.count() == 0 || x.stop_after.count() == 0 || x.pause_after < x.stop_after;
    require(ordered, "{}: its lease stops after {} ms, before it pauses at {} ms", owner,
            x.stop_after.count(), x.pause_after.count());
  }

  const loaded_state& state_;
  std::vector<std::string> found_;
  std::unordered_map<job_id, const job_record*> jobs_;
  std::unordered_map<sandbox_id, const sandbox_record*> sandboxes_;
  std::map<std::pair<job_id, std::string>, sandbox_id> keys_;
  std::set<std::pair<sandbox_id, std::uint64_t>> steps_;
};

} // namespace

std::vector<std::string> violations(const loaded_state& state) {
  return checker{state}.run();
}

} // namespace dsec
