#include "tests/state/records.hpp"

#include <cstdlib>
#include <iostream>
#include <tuple>

namespace dsec {

std::uint64_t record_source::number(std::uint64_t below) {
  return std::uniform_int_distribution<std::uint64_t>{0, below - 1}(random_);
}

std::string record_source::bytes(std::size_t size_max) {
  std::string out(number(size_max + 1), '\0');
  for (auto& c : out)
    c = static_cast<char>(number(256));
  return out;
}

lease_terms record_source::lease() {
  return {std::chrono::milliseconds{number(1 << 20)}, std::chrono::milliseconds{number(1 << 30)}};
}

environment record_source::environment() {
  dsec::environment x;
  for (auto n = number(4); n > 0; --n)
    x.layers.emplace_back("sha256-" + std::string(64, static_cast<char>('a' + number(6))));
  for (auto n = number(4); n > 0; --n)
    x.env.emplace_back(bytes(10), bytes(40));
  x.user = bytes(12);
  x.cwd = bytes(30);
  x.limits = {random_(), static_cast<std::uint32_t>(random_()),
              static_cast<std::uint32_t>(random_()), random_()};
  x.allow_setuid = number(2) == 1;
  return x;
}

meta_record record_source::meta() {
  return {make_node_id(static_cast<std::uint32_t>(random_())), "boot", random_(), random_()};
}

job_record record_source::job() {
  job_record x;
  x.id = job_id{"job-" + std::to_string(number(5))};
  x.state = static_cast<job_state>(number(3));
  x.preempted_until = static_cast<preempt_mode>(number(2));
  x.lease = lease();
  x.next_index = random_();
  x.created_ms = static_cast<std::int64_t>(number(1ull << 60));
  return x;
}

sandbox_record record_source::sandbox() {
  sandbox_record x;
  x.id = sandbox_number(number(20));
  x.job = job_id{"job-" + std::to_string(number(5))};
  x.index = random_();
  x.idempotency_key = number(2) == 0 ? "" : bytes(20);
  x.environment = environment();
  x.lease = lease();
  x.is = static_cast<sandbox_state>(number(12));
  x.wanted = static_cast<sandbox_state>(number(12));
  x.held = number(2) == 1;
  x.cause = static_cast<end_cause>(number(6));
  x.detail = bytes(50);
  x.created_ms = static_cast<std::int64_t>(number(1ull << 60));
  x.ended_ms = static_cast<std::int64_t>(number(1ull << 60));
  x.told = static_cast<event_kind>(number(11));
  for (auto n = number(4); n > 0; --n)
    x.processes.push_back(random_());
  return x;
}

step_record record_source::step() {
  step_record x;
  x.sandbox = sandbox_number(number(20));
  x.step = number(10);
  x.exec = random_();
  x.request_digest = std::string(64, static_cast<char>('0' + number(10)));
  if (number(3) == 0)
    return x;
  auto& y = x.result.emplace();
  y.outcome = outcome();
  y.out = bytes(300);
  y.err = bytes(5);
  y.out_bytes = random_();
  y.err_bytes = random_();
  y.oom_kills = static_cast<std::uint32_t>(random_());
  y.duration = std::chrono::milliseconds{number(1ull << 40)};
  return x;
}

outcome record_source::outcome() {
  return {static_cast<outcome_kind>(number(11)), static_cast<std::int32_t>(random_()), random_(),
          random_(), bytes(30)};
}

job_event record_source::event() {
  job_event x;
  x.job = job_id{"job-" + std::to_string(number(5))};
  x.cursor = random_();
  x.at_ms = static_cast<std::int64_t>(number(1ull << 60));
  x.sandbox = sandbox_number(number(20));
  x.index = random_();
  x.kind = static_cast<event_kind>(number(11));
  x.exec = random_();
  if (number(2) == 0)
    x.step = random_();
  if (number(2) == 0)
    x.outcome = outcome();
  x.cause = static_cast<end_cause>(number(6));
  x.detail = bytes(50);
  return x;
}

bool same(const meta_record& a, const meta_record& b) {
  auto fields = [](const auto& x) {
    return std::tie(x.node, x.boot_id, x.epoch, x.next_sequence);
  };
  return fields(a) == fields(b);
}

bool same(const job_record& a, const job_record& b) {
  auto fields = [](const auto& x) {
    return std::tie(x.id, x.state, x.preempted_until, x.lease, x.next_index, x.created_ms);
  };
  return fields(a) == fields(b);
}

bool same(const sandbox_record& a, const sandbox_record& b) {
  auto fields = [](const auto& x) {
    return std::tie(x.id, x.job, x.index, x.idempotency_key, x.environment, x.lease, x.is, x.wanted,
                    x.held, x.cause, x.detail, x.created_ms, x.ended_ms, x.told, x.processes);
  };
  return fields(a) == fields(b);
}

bool same(const step_record& a, const step_record& b) {
  auto fields = [](const auto& x) {
    return std::tie(x.sandbox, x.step, x.exec, x.request_digest, x.result);
  };
  return fields(a) == fields(b);
}

bool same(const job_event& a, const job_event& b) {
  auto fields = [](const auto& x) {
    return std::tie(x.job, x.cursor, x.at_ms, x.sandbox, x.index, x.kind, x.exec, x.step, x.outcome,
                    x.cause, x.detail);
  };
  return fields(a) == fields(b);
}

std::uint64_t test_seed() {
  const char* given = std::getenv("DSEC_SEED");
  std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "seed " << seed << " (again with DSEC_SEED=" << seed << ")\n";
  return seed;
}

sandbox_id sandbox_number(std::uint64_t sequence) {
  return make_sandbox_id(node_id{"n00000001"}, sequence);
}

std::shared_ptr<const write_batch> shared(write_batch batch) {
  return std::make_shared<const write_batch>(std::move(batch));
}

} // namespace dsec
