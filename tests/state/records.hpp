#pragma once

#include "state/store.hpp"

#include <cstdint>
#include <random>
#include <string>

namespace dsec {

/// Records for tests. Every field is drawn, so that one that a codec forgets shows.
class record_source {
public:
  explicit record_source(std::uint64_t seed) : random_{seed} {}

  std::uint64_t number(std::uint64_t below);
  std::string bytes(std::size_t size_max);
  meta_record meta();
  job_record job();
  sandbox_record sandbox();
  step_record step();
  job_event event();

private:
  dsec::environment environment();
  dsec::outcome outcome();
  lease_terms lease();

  std::mt19937_64 random_;
};

bool same(const meta_record& a, const meta_record& b);
bool same(const job_record& a, const job_record& b);
bool same(const sandbox_record& a, const sandbox_record& b);
bool same(const step_record& a, const step_record& b);
bool same(const job_event& a, const job_event& b);

/// DSEC_SEED from the environment, or a fresh one; printed, so that a failure can be run again.
std::uint64_t test_seed();

/// A sandbox id of the node that tests use.
sandbox_id sandbox_number(std::uint64_t sequence);

/// A batch for one commit.
std::shared_ptr<const write_batch> shared(write_batch batch);

} // namespace dsec
