#include "state/store.hpp"
#include "tests/state/records.hpp"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <unistd.h>

using namespace dsec;

namespace {

/// A child that opens the store and then does `work`; -1 in the pipe if it could not open it.
class store_child {
public:
  template <class Work>
  store_child(const std::filesystem::path& folder, Work work) {
    int ends[2];
    if (::pipe(ends) != 0)
      std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      auto durable = open_rocks_store(folder);
      if (durable)
        work(**durable, ends[1]);
      else
        say(ends[1], -1);
      ::_exit(0);
    }
    ::close(ends[1]);
    from_ = ends[0];
  }

  ~store_child() {
    kill();
    ::close(from_);
  }

  static void say(int to, std::int64_t number) {
    if (::write(to, &number, sizeof number) != sizeof number)
      ::_exit(1);
  }

  /// The next number that it says; nothing once it is dead and all is read.
  std::optional<std::int64_t> hear() const {
    std::int64_t number = 0;
    if (::read(from_, &number, sizeof number) != sizeof number)
      return std::nullopt;
    return number;
  }

  void kill() {
    if (pid_ <= 0)
      return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

  pid_t pid() const {
    return pid_;
  }

private:
  pid_t pid_ = 0;
  int from_ = -1;
};

write_batch one_sandbox(std::uint64_t sequence) {
  write_batch batch;
  batch.sandboxes.emplace_back().id = sandbox_number(sequence);
  auto& step = batch.steps.emplace_back();
  step.sandbox = sandbox_number(sequence);
  step.result.emplace().out = "output of " + std::to_string(sequence);
  return batch;
}

} // namespace

BOOST_AUTO_TEST_SUITE(rocks_store)

BOOST_AUTO_TEST_CASE(records_survive_closing_and_opening) {
  temporary_folder folder;
  record_source source{test_seed()};
  auto step = source.step();
  auto meta = source.meta();
  {
    auto durable = open_rocks_store(folder.path() / "deep" / "state");
    BOOST_TEST_REQUIRE(bool{durable});
    write_batch batch;
    batch.meta = {meta};
    batch.steps = {step};
    BOOST_TEST_REQUIRE(bool{(*durable)->commit({shared(batch)})});
  }
  auto durable = open_rocks_store(folder.path() / "deep" / "state");
  BOOST_TEST_REQUIRE(bool{durable});
  BOOST_TEST(same((*durable)->load()->meta, meta));
  BOOST_TEST(same(*(*durable)->step(step.sandbox, step.step), step));
}

BOOST_AUTO_TEST_CASE(a_killed_process_loses_nothing_that_it_acknowledged) {
  temporary_folder folder;
  std::int64_t acknowledged = 0;
  for (int round = 0; round < 5; ++round) {
    store_child child{folder.path(), [&](store& durable, int to) {
                        for (auto i = acknowledged + 1;; ++i) {
                          auto batch = shared(one_sandbox(static_cast<std::uint64_t>(i)));
                          store_child::say(to, durable.commit({batch}) ? i : -2);
                        }
                      }};
    auto stop_at = acknowledged + 20 + round;
    while (acknowledged < stop_at) {
      auto heard = child.hear();
      BOOST_TEST_REQUIRE(heard.has_value());
      BOOST_TEST_REQUIRE(*heard == acknowledged + 1);
      acknowledged = *heard;
    }
    child.kill();
    while (auto heard = child.hear())
      acknowledged = *heard;

    auto durable = open_rocks_store(folder.path());
    BOOST_TEST_REQUIRE(bool{durable});
    auto state = (*durable)->load();
    BOOST_TEST_REQUIRE(bool{state});
    auto found = static_cast<std::int64_t>(state->sandboxes.size());
    // One more may be durable that it could not tell any more.
    BOOST_TEST((found == acknowledged || found == acknowledged + 1));
    BOOST_TEST(state->steps.size() == state->sandboxes.size());
    for (std::int64_t i = 1; i <= found; ++i) {
      auto sequence = static_cast<std::uint64_t>(i);
      BOOST_TEST((*durable)->step(sandbox_number(sequence), 0)->result->out
                 == "output of " + std::to_string(i));
    }
    acknowledged = found;
  }
}

BOOST_AUTO_TEST_CASE(a_killed_process_loses_no_event_that_was_committed_alone) {
  temporary_folder folder;
  std::int64_t acknowledged = 0;
  for (int round = 0; round < 5; ++round) {
    store_child child{folder.path(), [&](store& durable, int to) {
                        for (auto i = acknowledged + 1;; ++i) {
                          write_batch batch;
                          batch.events.emplace_back().job = job_id{"train"};
                          batch.events.back().exec = static_cast<exec_id>(i);
                          store_child::say(to, durable.commit({shared(batch)}) ? i : -2);
                        }
                      }};
    auto stop_at = acknowledged + 50 + round;
    while (acknowledged < stop_at)
      acknowledged = child.hear().value_or(stop_at);
    child.kill();
    while (auto heard = child.hear())
      acknowledged = *heard;
    auto durable = open_rocks_store(folder.path());
    BOOST_TEST_REQUIRE(bool{durable});
    auto page = (*durable)->events(job_id{"train"}, 1, 1'000'000);
    BOOST_TEST_REQUIRE(bool{page});
    auto found = static_cast<std::int64_t>(page->events.size());
    // One more may be there that it could not tell any more.
    BOOST_TEST((found == acknowledged || found == acknowledged + 1));
    for (std::int64_t i = 0; i < found; ++i)
      BOOST_TEST(page->events[static_cast<std::size_t>(i)].exec == static_cast<exec_id>(i + 1));
    acknowledged = found;
  }
}

BOOST_AUTO_TEST_CASE(a_second_process_is_told_who_has_it_open) {
  temporary_folder folder;
  store_child child{folder.path(), [](store&, int to) {
                      store_child::say(to, 1);
                      ::pause();
                    }};
  BOOST_TEST_REQUIRE(child.hear().value_or(-1) == 1);
  auto second = open_rocks_store(folder.path());
  BOOST_TEST_REQUIRE(!second);
  BOOST_TEST((second.error().code == errc::state_in_use));
  BOOST_TEST(second.error().message.find(std::to_string(child.pid())) != std::string::npos,
             second.error().message);
  child.kill();
  BOOST_TEST(bool{open_rocks_store(folder.path())});
}

BOOST_AUTO_TEST_CASE(opening_it_twice_in_one_process_leaves_the_first_owner_its_lock) {
  temporary_folder folder;
  auto first = open_rocks_store(folder.path());
  BOOST_TEST_REQUIRE(bool{first});
  auto second = open_rocks_store(folder.path());
  BOOST_TEST_REQUIRE(!second);
  BOOST_TEST((second.error().code == errc::state_in_use));
  store_child other{folder.path(), [](store&, int to) {
                      store_child::say(to, 1);
                    }};
  BOOST_TEST(other.hear().value_or(0) == -1);
}

BOOST_AUTO_TEST_CASE(a_place_that_cannot_be_a_folder_is_named) {
  temporary_folder folder;
  std::ofstream{folder.path() / "file"} << "x";
  auto durable = open_rocks_store(folder.path() / "file" / "state");
  BOOST_TEST_REQUIRE(!durable);
  BOOST_TEST(durable.error().message.find("file/state") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
