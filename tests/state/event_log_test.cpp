#include "state/record_store.hpp"
#include "state/store.hpp"
#include "tests/state/records.hpp"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <optional>

using namespace dsec;

namespace {

using write_mode = key_values::write_mode;

enum class kind { memory, rocks };

std::ostream& operator<<(std::ostream& out, kind x) {
  return out << (x == kind::memory ? "memory" : "rocks");
}

const kind kinds[] = {kind::memory, kind::rocks};

struct opened {
  explicit opened(kind which)
    : durable{which == kind::memory ? make_memory_store() : *open_rocks_store(folder.path())} {}

  void commit(const write_batch& batch) {
    BOOST_TEST_REQUIRE(bool{durable->commit({shared(batch)})});
  }

  event_page page(const std::string& job, std::uint64_t cursor, std::uint64_t count = 1000) {
    auto found = durable->events(job_id{job}, cursor, count);
    BOOST_TEST_REQUIRE(bool{found}, (found ? "" : found.error().message));
    return *found;
  }

  /// As the next process finds it.
  void reopen() {
    durable.reset();
    durable = *open_rocks_store(folder.path());
  }

  temporary_folder folder;
  std::unique_ptr<store> durable;
};

job_event event(const std::string& job, exec_id exec) {
  job_event x;
  x.job = job_id{job};
  x.sandbox = sandbox_number(1);
  x.kind = event_kind::exec_started;
  x.exec = exec;
  return x;
}

/// Events of one job with exec ids from `first` on.
write_batch events(const std::string& job, exec_id first, std::uint64_t count) {
  write_batch batch;
  for (auto i = first; i < first + count; ++i)
    batch.events.push_back(event(job, i));
  return batch;
}

/// Consecutive from `first`, each the event with that exec id.
void expect_consecutive(const event_page& page, std::uint64_t first, std::uint64_t count) {
  BOOST_TEST_REQUIRE(page.events.size() == count);
  BOOST_TEST(page.next == first + count);
  for (std::uint64_t i = 0; i < count; ++i) {
    BOOST_TEST(page.events[i].cursor == first + i);
    BOOST_TEST(page.events[i].exec == first + i);
  }
}

/// Keeps how it was written.
class watched_values final : public key_values {
public:
  explicit watched_values(std::vector<write_mode>& modes) : modes_{modes} {}

  result<void> write(const std::vector<key_write>&, write_mode mode) override {
    modes_.push_back(mode);
    return {};
  }

  result<std::optional<std::string>> get(family, std::string_view) override {
    return std::optional<std::string>{};
  }

  result<void> scan(family, std::string_view, std::string_view, const visitor&) override {
    return {};
  }

  result<std::optional<std::string>> last_key(family, std::string_view) override {
    return std::optional<std::string>{};
  }

private:
  std::vector<write_mode>& modes_;
};

} // namespace

BOOST_AUTO_TEST_SUITE(event_logs)

BOOST_DATA_TEST_CASE(a_job_without_events_has_an_empty_page, kinds, which) {
  opened x{which};
  auto page = x.page("train", 7);
  BOOST_TEST(page.events.empty());
  BOOST_TEST(page.next == 1u);
  BOOST_TEST(page.oldest == 1u);
}

BOOST_DATA_TEST_CASE(cursors_are_given_in_order_of_commit_for_each_job_alone, kinds, which) {
  opened x{which};
  write_batch mixed, more;
  mixed.events = {event("a", 1), event("ab", 1), event("a", 2)};
  more.events = {event("a", 3), event("ab", 2)};
  BOOST_TEST_REQUIRE(bool{x.durable->commit({shared(mixed), shared(more)})});
  x.commit(events("a", 4, 2));
  expect_consecutive(x.page("a", 1), 1, 5);
  expect_consecutive(x.page("ab", 1), 1, 2);
}

BOOST_DATA_TEST_CASE(pages_follow_on_one_another_without_gap_or_repetition, kinds, which) {
  opened x{which};
  x.commit(events("train", 1, 25));
  std::uint64_t next = 1;
  for (int round = 0; round < 3; ++round) {
    auto page = x.page("train", next, 10);
    expect_consecutive(page, next, round < 2 ? 10 : 5);
    next = page.next;
  }
  BOOST_TEST(x.page("train", next, 10).events.empty());
  x.commit(events("train", 26, 1));
  expect_consecutive(x.page("train", next, 10), 26, 1);
}

BOOST_DATA_TEST_CASE(a_cursor_beyond_the_end_is_taken_as_the_end, kinds, which) {
  opened x{which};
  x.commit(events("train", 1, 3));
  auto page = x.page("train", 1000);
  BOOST_TEST(page.events.empty());
  BOOST_TEST(page.next == 4u);
}

BOOST_DATA_TEST_CASE(of_too_many_events_the_oldest_go_and_the_page_says_so, kinds, which) {
  opened x{which};
  for (exec_id first = 1; first <= events_kept_max; first += 10'000)
    x.commit(events("train", first, 10'000));
  BOOST_TEST(x.page("train", 1, 1).oldest == 1u);
  x.commit(events("other", 1, 1));
  x.commit(events("train", events_kept_max + 1, 1));
  auto page = x.page("train", 1, 5);
  BOOST_TEST(page.oldest > 1u);
  BOOST_TEST(page.oldest <= 1'001u);
  expect_consecutive(page, page.oldest, 5);
  BOOST_TEST(x.page("train", events_kept_max + 1).events.size() == 1u);
  expect_consecutive(x.page("other", 1), 1, 1);
  if (which == kind::rocks) {
    x.reopen();
    BOOST_TEST(x.page("train", 1, 1).oldest == page.oldest);
  }
}

BOOST_DATA_TEST_CASE(more_events_in_one_commit_than_are_kept_are_trimmed_as_well, kinds, which) {
  opened x{which};
  x.commit(events("train", 1, events_kept_max + 2'500));
  auto page = x.page("train", 1, 3);
  BOOST_TEST(page.oldest > 2'500u);
  expect_consecutive(page, page.oldest, 3);
}

BOOST_AUTO_TEST_CASE(cursors_go_on_in_the_next_process) {
  opened x{kind::rocks};
  x.commit(events("train", 1, 3));
  x.reopen();
  x.commit(events("train", 4, 2));
  expect_consecutive(x.page("train", 1), 1, 5);
}

BOOST_DATA_TEST_CASE(a_forgotten_job_has_no_events_and_its_cursors_go_on, kinds, which) {
  opened x{which};
  x.commit(events("train", 1, 3));
  x.commit(events("trains", 1, 2));
  write_batch forget;
  forget.forgotten_jobs = {job_id{"train"}, job_id{"never"}};
  x.commit(forget);
  auto page = x.page("train", 1);
  BOOST_TEST(page.events.empty());
  BOOST_TEST(page.oldest == 4u);
  BOOST_TEST(page.next == 4u);
  expect_consecutive(x.page("trains", 1), 1, 2);
  if (which == kind::rocks)
    x.reopen();
  x.commit(forget);
  x.commit(events("train", 4, 2));
  if (which == kind::rocks)
    x.reopen();
  page = x.page("train", 1);
  BOOST_TEST(page.oldest == 4u);
  expect_consecutive(page, 4, 2);
}

BOOST_DATA_TEST_CASE(events_outlive_the_tombstone_of_their_sandbox, kinds, which) {
  opened x{which};
  write_batch born = events("train", 1, 2), forget;
  born.sandboxes.emplace_back().id = sandbox_number(1);
  born.sandboxes.back().job = job_id{"train"};
  x.commit(born);
  forget.forgotten = {sandbox_number(1)};
  x.commit(forget);
  BOOST_TEST(!x.durable->history(sandbox_number(1)));
  expect_consecutive(x.page("train", 1), 1, 2);
}

BOOST_DATA_TEST_CASE(a_commit_that_fails_gives_no_cursor, kinds, which) {
  opened x{which};
  auto bad = events("train", 1, 2);
  bad.sandboxes.emplace_back().id = sandbox_id{"s1"};
  BOOST_TEST(!x.durable->commit({shared(events("train", 1, 1)), shared(bad)}));
  x.commit(events("train", 1, 1));
  expect_consecutive(x.page("train", 1), 1, 1);
}

BOOST_AUTO_TEST_CASE(events_alone_are_written_without_a_sync_and_with_a_record_with_one) {
  std::vector<write_mode> modes;
  auto durable = make_record_store(std::make_unique<watched_values>(modes));
  auto record = events("train", 1, 1);
  record.sandboxes.emplace_back().id = sandbox_number(1);
  BOOST_TEST_REQUIRE(bool{durable->commit({shared(events("train", 1, 2))})});
  BOOST_TEST_REQUIRE(bool{durable->commit({shared(record)})});
  BOOST_TEST_REQUIRE(bool{durable->commit({shared(record), shared(events("train", 1, 2))})});
  BOOST_TEST_REQUIRE(bool{durable->commit({shared(events("train", 1, 2))})});
  BOOST_TEST((modes
              == std::vector{write_mode::written, write_mode::synced, write_mode::synced,
                             write_mode::written}));
}

BOOST_AUTO_TEST_SUITE_END()
