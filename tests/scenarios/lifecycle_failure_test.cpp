// A create that fails, wherever it fails, leaves nothing, and its name can be used again.
#include "backends/rootfs/layer_store.hpp"
#include "tests/scenarios/own_spawner.hpp"
#include "tests/scenarios/residue.hpp"
#include "tests/scenarios/sizes.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

job open_faults(runtime& at) {
  return value(
    at.open_job("faults", {{std::chrono::milliseconds{0}, std::chrono::milliseconds{0}}}));
}

create_options named(const std::string& key) {
  create_options x;
  x.environment = machine().environment();
  x.environment.limits.memory_bytes = 32 << 20;
  x.environment.limits.disk_bytes = 16 << 20;
  x.idempotency_key = key;
  return x;
}

/// What a caller is told of a failure that was not its own.
void judge(const error& why) {
  BOOST_TEST(!why.message.empty());
  bool ours = why.code == errc::unavailable || why.code == errc::exhausted;
  BOOST_TEST(ours, to_string(why.code) << ": " << why.message);
}

/// Fails one kernel call of each create, the first of one, the second of the next, and so on to the
/// end, `again` times over; then makes under the same name what had failed.
void fail_everywhere(const std::string& blanks, std::size_t again) {
  own_spawner own{"faults"};
  auto& faults = own.start_watched(blanks);
  const auto spawner = own.pid();
  auto options = own.options();
  options.capacity = 2;
  options.backend_timeout = std::chrono::milliseconds{5000};
  auto rt = own.open(options);
  auto job = open_faults(*rt);
  done(value(job.create(named("warm"))).stop()); // The layer is mounted from here on.
  const auto before = demo::settled_census(own.where(), std::chrono::seconds{10},
                                           [](const auto& x) { return x.leaks() == 0; });
  const int numbers[] = {ENOMEM, EIO, ENOSPC, EAGAIN, EPERM, EMFILE};
  std::map<std::string, std::size_t> failed;
  std::size_t survived = 0;
  bool more = true;
  for (std::uint64_t n = 1; more; ++n) {
    BOOST_TEST_REQUIRE(n < 2000);
    for (std::size_t turn = 0; turn < again && more; ++turn) {
      auto key = fmt::format("{}/{}", n, turn);
      auto number = numbers[(n + turn) % std::size(numbers)];
      faults.arm(n, number);
      auto made = job.create(named(key)).get();
      auto seen = faults.disarm();
      more = !seen.failed.empty();
      BOOST_TEST_CONTEXT("call " << n << ", " << seen.failed << ", fails with "
                                 << std::strerror(number)) {
        if (made) {
          survived += more;
        } else {
          ++failed[seen.failed];
          judge(made.error());
          made = job.create(named(key)).get();
        }
        BOOST_TEST_REQUIRE(bool(made), (made ? "" : made.error().message));
        BOOST_TEST(value(made->exec(exec_spec{{"true"}})).ok());
        done(made->stop());
        BOOST_TEST_REQUIRE(own.pid() == spawner);
        BOOST_TEST(residue(own.where()) == "");
      }
    }
  }
  BOOST_TEST_MESSAGE(survived << " failures did no harm, " << failed.size() << " kinds ended one");
  // One that was built ahead has most of it behind it.
  BOOST_TEST(failed.size() > (blanks == "0" ? 15u : 0u));
  BOOST_TEST(value(rt->list()).empty());
  // The quota is what it was: two, and not a third.
  auto made = job.create_batch({named("a"), named("b"), named("c")});
  value(made[0]);
  value(made[1]);
  BOOST_TEST(!made[2].get());
  done(job.close());
  const auto after =
    demo::settled_census(own.where(), std::chrono::seconds{10},
                         [&](const auto& x) { return demo::leaked(before, x).empty(); });
  for (const auto& line : demo::leaked(before, after))
    BOOST_ERROR(line);
}

} // namespace

BOOST_AUTO_TEST_SUITE(lifecycle_failure, *utf::precondition(needs_root))

BOOST_AUTO_TEST_CASE(a_kernel_call_that_fails_at_any_step_of_a_create_leaves_nothing) {
  fail_everywhere("0", at_size(1, 100));
}

BOOST_AUTO_TEST_CASE(the_same_holds_while_sandboxes_are_built_ahead) {
  fail_everywhere("2", at_size(1, 20));
}

BOOST_AUTO_TEST_CASE(creates_from_layers_that_are_missing_or_broken_leave_nothing) {
  auto& at = machine();
  auto options = at.options();
  options.capacity = 1;
  auto rt = runtime::open(at.new_state(), options);
  BOOST_TEST_REQUIRE(bool(rt));
  auto job = open_faults(**rt);
  auto missing = layer_digest{"sha256-" + std::string(64, '0')};
  auto broken = layer_digest{"sha256-" + std::string(64, 'b')};
  fs::create_directories(at.data_dir / "store" / broken.str());
  std::ofstream{at.data_dir / "store" / broken.str() / "layer.erofs"} << "no image";
  for (std::size_t i = 0; i < at_size(20, 100); ++i) {
    auto wanted = named("n");
    wanted.environment.layers.push_back(i % 2 ? missing : broken);
    wanted.idempotency_key = fmt::format("k{}", i);
    auto made = job.create(wanted).get();
    BOOST_TEST_REQUIRE(!made);
    BOOST_TEST((made.error().code == (i % 2 ? errc::not_found : errc::corrupt)),
               made.error().message);
  }
  // With one place alone, the least leak would keep this one out.
  done(value(job.create(named("k0 at last"))).stop());
  done(job.close());
  fs::remove_all(at.data_dir / "store" / broken.str());
  BOOST_TEST(residue(installation_of(at)) == "");
}

BOOST_AUTO_TEST_CASE(a_create_on_a_full_disk_is_told_so_and_works_once_there_is_room) {
  own_spawner own{"full"};
  BOOST_TEST_REQUIRE(run_program(own.command()).code == 0);
  auto rt = own.open(own.options());
  auto job = open_faults(*rt);
  auto greedy = named("greedy");
  greedy.environment.limits.disk_bytes = 4ull << 30; // More than there is.
  auto hog = value(job.create(greedy));
  auto filled = value(hog.exec(exec_spec::shell("dd if=/dev/zero of=/room/fill bs=1M; sync;"
                                                "dd if=/dev/zero of=/room/rest bs=4k")));
  BOOST_TEST((filled.outcome.kind == outcome_kind::disk_full || !filled.ok()));
  for (int i = 0; i < 3; ++i) {
    auto made = job.create(named("beside")).get();
    if (made) {
      // There was room for an empty one: then it can be stopped like any other.
      done(made->stop());
      break;
    }
    BOOST_TEST((made.error().code == errc::exhausted), made.error().message);
  }
  done(hog.stop());
  // The kernel gives deleted space back in its own time: space for data soon, whole regions of the
  // disk some ten seconds later.
  BOOST_TEST(bench::ask_until(bench::within(std::chrono::seconds{60}),
                              std::chrono::milliseconds{50},
                              [&] { return bool(job.create(named("after")).get()); }));
  done(job.close());
  BOOST_TEST(residue(own.where()) == "");
}

BOOST_AUTO_TEST_CASE(a_name_whose_create_failed_while_we_died_cleaning_up_can_be_made_again) {
  auto& at = machine();
  layer_store store{at.data_dir / "store"};
  for (int n = 1;; ++n) {
    // Not mounted by anybody yet, and moved out of the way for the create that is to fail.
    auto tree = at.root / "extra";
    fs::create_directories(tree);
    std::ofstream{tree / "number"} << n;
    auto extra = store.import_directory(tree, "test");
    BOOST_TEST_REQUIRE(bool(extra));
    auto place = at.data_dir / "store" / extra->str();
    auto aside = at.root / "aside";
    fs::rename(place, aside);
    auto state = at.new_state();
    auto marker = at.root / fmt::format("cleanup-marker{}", n);
    child_process trainer{{at.programs / "scenario_trainer", state, at.data_dir, at.run_dir,
                           at.layer.str() + "," + extra->str(), "hold"},
                          {fmt::format("DSEC_KILL_AT=node:{}:{}", n, marker.string())}};
    auto code = trainer.wait();
    fs::rename(aside, place);
    BOOST_TEST_CONTEXT("killed at its point " << n) {
      BOOST_TEST_REQUIRE((code == 3 || code == 128 + SIGKILL), code);
      auto rt = at.open(state);
      auto job = value(rt->open_job("rollout"));
      auto wanted = named("k0");
      wanted.environment.layers.push_back(*extra);
      wanted.environment.limits.memory_bytes = 64 << 20;
      wanted.environment.limits.disk_bytes = 64 << 20;
      auto box = value(job.create(wanted));
      BOOST_TEST(value(box.exec(exec_spec{{"cat", "/number"}})).out == std::to_string(n));
      BOOST_TEST((value(job.create(wanted)).id() == box.id()));
      BOOST_TEST(value(rt->list()).size() == 1u);
      done(job.close());
      BOOST_TEST(residue(installation_of(at)) == "");
    }
    if (code == 3)
      break;
    BOOST_TEST_REQUIRE(n < 100);
  }
}

BOOST_AUTO_TEST_CASE(a_spawner_killed_at_any_step_of_a_create_costs_no_name_and_leaves_nothing) {
  std::size_t hits = 0;
  for (int n = 1; n < 400; n += full_size() ? 1 : 7) {
    own_spawner own{"killed"};
    auto marker = machine().root / fmt::format("spawner-marker{}", n);
    child_process starter{own.command(),
                          {fmt::format("DSEC_KILL_AT=spawner:{}:{}", n, marker.string())}};
    BOOST_TEST_CONTEXT("spawner killed at its point " << n) {
      bool started = starter.wait() == 0;
      auto rt = own.open(own.options());
      auto job = open_faults(*rt);
      auto made = job.create(named("n")).get();
      if (!made) {
        judge(made.error());
        made = job.create(named("n")).get();
      }
      BOOST_TEST_REQUIRE(bool(made), (made ? "" : made.error().message));
      BOOST_TEST(value(made->exec(exec_spec{{"true"}})).ok());
      BOOST_TEST((value(job.create(named("n"))).id() == made->id()));
      BOOST_TEST(value(rt->list()).size() == 1u);
      done(job.close());
      BOOST_TEST(residue(own.where()) == "");
      rt.reset();
      own.end();
      hits += started && fs::exists(marker);
    }
    if (!fs::exists(marker))
      break;
  }
  BOOST_TEST(hits > 3u);
}

BOOST_AUTO_TEST_SUITE_END()
