#include "state/store.hpp"
#include "tests/state/records.hpp"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace dsec;

namespace {

enum class kind { memory, rocks };

std::ostream& operator<<(std::ostream& out, kind x) {
  return out << (x == kind::memory ? "memory" : "rocks");
}

const kind kinds[] = {kind::memory, kind::rocks};

struct opened {
  explicit opened(kind which)
    : durable{which == kind::memory ? make_memory_store() : *open_rocks_store(folder.path())} {}

  temporary_folder folder;
  std::unique_ptr<store> durable;
};

sandbox_record sandbox_of(std::uint64_t sequence, std::string job, std::string key = {}) {
  sandbox_record x;
  x.id = sandbox_number(sequence);
  x.job = job_id{std::move(job)};
  x.idempotency_key = std::move(key);
  return x;
}

step_record begun(std::uint64_t sequence, std::uint64_t step) {
  step_record x;
  x.sandbox = sandbox_number(sequence);
  x.step = step;
  x.exec = step;
  x.request_digest = std::string(64, 'a');
  return x;
}

step_record ended(std::uint64_t sequence, std::uint64_t step, std::string out) {
  auto x = begun(sequence, step);
  x.result.emplace();
  x.result->outcome = {outcome_kind::exited, 0, 0, 0, ""};
  x.result->out = std::move(out);
  return x;
}

} // namespace

BOOST_AUTO_TEST_SUITE(stores)

BOOST_DATA_TEST_CASE(a_new_store_is_empty, kinds, which) {
  opened x{which};
  auto state = x.durable->load();
  BOOST_TEST_REQUIRE(bool{state});
  BOOST_TEST(state->meta.node.empty());
  BOOST_TEST(state->meta.next_sequence == 1u);
  BOOST_TEST(state->jobs.empty());
  BOOST_TEST(state->sandboxes.empty());
  BOOST_TEST(state->steps.empty());
}

BOOST_DATA_TEST_CASE(what_was_committed_is_loaded_in_order_of_birth, kinds, which) {
  opened x{which};
  write_batch first, second;
  for (std::uint64_t i : {300, 2, 256, 1})
    first.sandboxes.push_back(sandbox_of(i, "j"));
  second.meta = {{node_id{"n00000001"}, "b", 1, 5}, {node_id{"n00000001"}, "b", 2, 301}};
  second.jobs = {{job_id{"j"}, job_state::active, {}, {}, 4, 9}};
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(first), shared(second)})});
  auto state = *x.durable->load();
  BOOST_TEST(state.meta.epoch == 2u);
  BOOST_TEST(state.meta.next_sequence == 301u);
  BOOST_TEST(state.jobs.size() == 1u);
  std::vector<std::string> ids;
  for (const auto& y : state.sandboxes)
    ids.push_back(y.id.str());
  const std::vector<std::string> expected{"n00000001-1", "n00000001-2", "n00000001-256",
                                          "n00000001-300"};
  BOOST_TEST(ids == expected, boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(a_later_record_replaces_an_earlier_one_even_in_one_commit, kinds, which) {
  opened x{which};
  auto record = sandbox_of(1, "j");
  write_batch first, second;
  first.sandboxes = {record};
  record.is = sandbox_state::running;
  second.sandboxes = {record};
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(first), shared(second)})});
  auto state = *x.durable->load();
  BOOST_TEST_REQUIRE(state.sandboxes.size() == 1u);
  BOOST_TEST((state.sandboxes[0].is == sandbox_state::running));
}

BOOST_DATA_TEST_CASE(steps_of_sandboxes_that_have_ended_are_counted_if_nobody_wants_them, kinds,
                     which) {
  opened x{which};
  write_batch batch;
  batch.sandboxes = {sandbox_of(1, "j"), sandbox_of(2, "j"), sandbox_of(3, "j")};
  for (auto& over : {&batch.sandboxes[0], &batch.sandboxes[2]})
    over->is = sandbox_state::terminated;
  batch.steps = {ended(1, 0, "out"), ended(1, 1, "out"), begun(1, 2), ended(2, 0, ""), begun(2, 1)};
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(batch)})});
  auto state = *x.durable->load(steps_of::live);
  BOOST_TEST_REQUIRE(state.steps.size() == 2u);
  for (const auto& step : state.steps)
    BOOST_TEST(step.sandbox.str() == "n00000001-2");
  BOOST_TEST_REQUIRE(state.steps_left_out.size() == 2u);
  BOOST_TEST(state.steps_left_out.at(sandbox_id{"n00000001-1"}) == 2u);
  BOOST_TEST(state.steps_left_out.at(sandbox_id{"n00000001-3"}) == 0u);
  BOOST_TEST(x.durable->load(steps_of::all)->steps.size() == 5u);
}

BOOST_DATA_TEST_CASE(steps_are_loaded_without_output_and_read_with_it, kinds, which) {
  opened x{which};
  auto output = std::string(3 << 20, 'o') + std::string{"\0\xff", 2};
  write_batch batch;
  batch.steps = {begun(1, 0), ended(1, 1, output), ended(1, 2, "")};
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(batch)})});
  auto state = *x.durable->load();
  BOOST_TEST_REQUIRE(state.steps.size() == 3u);
  BOOST_TEST(!state.steps[0].result);
  BOOST_TEST_REQUIRE(bool{state.steps[1].result});
  BOOST_TEST(state.steps[1].result->out.empty());
  BOOST_TEST((x.durable->step(sandbox_number(1), 1)->result->out == output));
  BOOST_TEST(x.durable->step(sandbox_number(1), 2)->result->out.empty());
  BOOST_TEST(!x.durable->step(sandbox_number(1), 0)->result);
}

BOOST_DATA_TEST_CASE(all_steps_of_one_sandbox_come_in_order_whatever_the_gaps, kinds, which) {
  opened x{which};
  auto last = (1ull << 63) - 1;
  write_batch batch;
  batch.sandboxes = {sandbox_of(1, "j", ""), sandbox_of(2, "j", "")};
  batch.steps = {ended(1, last, "out"), ended(2, 1, "other"), begun(1, 5000), ended(1, 2, "out")};
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(batch)})});
  auto history = x.durable->history(sandbox_number(1));
  BOOST_TEST_REQUIRE(bool{history});
  BOOST_TEST((history->record.id == sandbox_number(1)));
  const auto& steps = history->steps;
  BOOST_TEST_REQUIRE(steps.size() == 3u);
  BOOST_TEST(steps[0].step == 2u);
  BOOST_TEST(steps[0].result->out.empty());
  BOOST_TEST(steps[1].step == 5000u);
  BOOST_TEST(!steps[1].result);
  BOOST_TEST(steps[2].step == last);
  auto none = x.durable->history(sandbox_number(3));
  BOOST_TEST_REQUIRE(!none);
  BOOST_TEST((none.error().code == errc::not_found));
}

BOOST_DATA_TEST_CASE(a_job_is_read_by_its_name_as_it_was_written_last, kinds, which) {
  opened x{which};
  write_batch batch;
  job_record job;
  job.id = job_id{"train"};
  job.next_index = 1;
  batch.jobs.push_back(job);
  job.next_index = 1024;
  batch.jobs.push_back(job);
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(batch)})});
  BOOST_TEST(x.durable->job(job.id)->next_index == 1024u);
  auto none = x.durable->job(job_id{"trai"});
  BOOST_TEST_REQUIRE(!none);
  BOOST_TEST((none.error().code == errc::not_found));
  BOOST_TEST(none.error().message.find("trai") != std::string::npos);
}

BOOST_DATA_TEST_CASE(a_step_that_was_never_begun_is_not_found, kinds, which) {
  opened x{which};
  auto step = x.durable->step(sandbox_number(1), 5);
  BOOST_TEST_REQUIRE(!step);
  BOOST_TEST((step.error().code == errc::not_found));
  BOOST_TEST(step.error().message.find("n00000001-1 step 5") != std::string::npos);
}

BOOST_DATA_TEST_CASE(a_step_begun_again_loses_its_old_output, kinds, which) {
  opened x{which};
  write_batch first, second, third;
  first.steps = {ended(1, 1, "old")};
  second.steps = {begun(1, 1)};
  third.steps = {ended(1, 1, "")};
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(first)})});
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(second)})});
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(third)})});
  BOOST_TEST(x.durable->step(sandbox_number(1), 1)->result->out.empty());
}

BOOST_DATA_TEST_CASE(nothing_is_kept_of_a_refused_step_and_all_of_its_neighbours, kinds, which) {
  opened x{which};
  write_batch batch, refused;
  batch.sandboxes = {sandbox_of(1, "j")};
  batch.steps = {ended(1, 1, "one"), begun(1, 2), ended(1, 3, "three")};
  refused.refused_steps = {{sandbox_number(1), 2}};
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(batch)})});
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(refused)})});
  BOOST_TEST((x.durable->step(sandbox_number(1), 2).error().code == errc::not_found));
  BOOST_TEST(x.durable->history(sandbox_number(1))->steps.size() == 2u);
  BOOST_TEST(x.durable->load()->steps.size() == 2u);
  BOOST_TEST(x.durable->step(sandbox_number(1), 1)->result->out == "one");
  BOOST_TEST(x.durable->step(sandbox_number(1), 3)->result->out == "three");
}

BOOST_DATA_TEST_CASE(forgetting_takes_the_steps_of_that_sandbox_and_no_other, kinds, which) {
  opened x{which};
  write_batch batch, forget;
  for (std::uint64_t i : {1, 2, 3}) {
    batch.sandboxes.push_back(sandbox_of(i, "j", "key" + std::to_string(i)));
    for (std::uint64_t step : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{(1ull << 63) - 1}})
      batch.steps.push_back(ended(i, step, "out"));
  }
  forget.forgotten = {sandbox_number(2)};
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(batch)})});
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(forget)})});
  auto state = *x.durable->load();
  BOOST_TEST(state.sandboxes.size() == 2u);
  BOOST_TEST(state.steps.size() == 6u);
  BOOST_TEST(!x.durable->step(sandbox_number(2), 7));
  BOOST_TEST(x.durable->step(sandbox_number(1), (1ull << 63) - 1)->result->out == "out");
  BOOST_TEST(x.durable->step(sandbox_number(3), 0)->result->out == "out");
}

BOOST_DATA_TEST_CASE(forgetting_what_is_not_there_is_fine, kinds, which) {
  opened x{which};
  write_batch batch;
  batch.forgotten = {sandbox_number(9)};
  BOOST_TEST(bool{x.durable->commit({shared(batch)})});
  BOOST_TEST(bool{x.durable->commit({})});
  BOOST_TEST(bool{x.durable->commit({shared({})})});
}

BOOST_DATA_TEST_CASE(a_malformed_id_commits_nothing, kinds, which) {
  opened x{which};
  write_batch good, bad;
  good.sandboxes = {sandbox_of(1, "j")};
  bad.sandboxes = {sandbox_of(2, "j")};
  bad.sandboxes[0].id = sandbox_id{"s1"};
  auto done = x.durable->commit({shared(good), shared(bad)});
  BOOST_TEST_REQUIRE(!done);
  BOOST_TEST((done.error().code == errc::invalid_argument));
  BOOST_TEST(x.durable->load()->sandboxes.empty());
}

BOOST_AUTO_TEST_CASE(memory_and_rocks_mean_the_same) {
  record_source source{test_seed()};
  opened memory{kind::memory}, rocks{kind::rocks};
  auto equal = [&] {
    auto a = *memory.durable->load(), b = *rocks.durable->load();
    auto equal_all = [](const auto& x, const auto& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                        [](const auto& p, const auto& q) { return same(p, q); });
    };
    return same(a.meta, b.meta) && equal_all(a.jobs, b.jobs) && equal_all(a.sandboxes, b.sandboxes)
           && equal_all(a.steps, b.steps);
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<std::shared_ptr<const write_batch>> batches;
    for (auto n = 1 + source.number(3); n > 0; --n) {
      write_batch batch;
      for (auto k = source.number(3); k > 0; --k)
        batch.jobs.push_back(source.job());
      for (auto k = source.number(5); k > 0; --k)
        batch.sandboxes.push_back(source.sandbox());
      for (auto k = source.number(8); k > 0; --k)
        batch.steps.push_back(source.step());
      if (source.number(4) == 0)
        batch.meta.push_back(source.meta());
      for (auto k = source.number(3); k > 0; --k)
        batch.forgotten.push_back(sandbox_number(source.number(20)));
      batches.push_back(shared(std::move(batch)));
    }
    BOOST_TEST_REQUIRE(bool{memory.durable->commit(batches)});
    BOOST_TEST_REQUIRE(bool{rocks.durable->commit(batches)});
    BOOST_TEST_REQUIRE(equal());
    auto sandbox = sandbox_number(source.number(20));
    auto step = source.number(10);
    auto a = memory.durable->step(sandbox, step), b = rocks.durable->step(sandbox, step);
    BOOST_TEST_REQUIRE(bool{a} == bool{b});
    if (a)
      BOOST_TEST(same(*a, *b));
    else
      BOOST_TEST((a.error().code == b.error().code));
  }
}

BOOST_AUTO_TEST_SUITE_END()
