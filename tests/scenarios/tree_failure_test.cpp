// Full disks, deaths, pauses and callers that stand still in the middle of a tree or a file.
#include "tests/scenarios/tree_rig.hpp"

#include <csignal>
#include <fstream>
#include <future>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

/// An archive that is given piece by piece, when the test says so.
class slow_source final : public input_source {
public:
  void read(std::function<void(std::string)> next) override {
    std::scoped_lock lock{mutex_};
    next_ = std::move(next);
    asked_.notify_all();
  }

  /// Waits for the question.
  void give(std::string bytes) {
    take()(std::move(bytes));
  }

  /// Drops it: the caller has left.
  void leave() {
    take() = nullptr;
  }

  void wait_for_question() {
    std::unique_lock lock{mutex_};
    BOOST_TEST_REQUIRE(asked_.wait_for(lock, 20s, [&] { return bool(next_); }));
  }

private:
  std::function<void(std::string)> take() {
    wait_for_question();
    std::scoped_lock lock{mutex_};
    return std::exchange(next_, nullptr);
  }

  std::mutex mutex_;
  std::condition_variable asked_;
  std::function<void(std::string)> next_;
};

/// Takes nothing until it is told to.
class slow_archive final : public archive_sink {
public:
  void write(std::string bytes, std::function<void()> ready) override {
    std::scoped_lock lock{mutex_};
    bytes_ += bytes.size();
    ready_ = std::move(ready);
    written_.notify_all();
  }

  void wait_for_bytes() {
    std::unique_lock lock{mutex_};
    BOOST_TEST_REQUIRE(written_.wait_for(lock, 20s, [&] { return bool(ready_); }));
  }

  std::size_t bytes() {
    std::scoped_lock lock{mutex_};
    return bytes_;
  }

  void leave() {
    std::function<void()> dropped;
    std::scoped_lock lock{mutex_};
    dropped = std::exchange(ready_, nullptr);
  }

private:
  std::mutex mutex_;
  std::condition_variable written_;
  std::function<void()> ready_;
  std::size_t bytes_ = 0;
};

std::string one_file(std::size_t size) {
  return crafted_archive{}.add('0', "before", "x").add('0', "file", many_bytes(size)).bytes();
}

std::set<std::string> names_in(const sandbox& box, const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : value(box.list(folder)))
    names.insert(entry.name);
  return names;
}

} // namespace

BOOST_AUTO_TEST_SUITE(tree_failure, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(a_disk_that_fills_up_ends_a_tree_with_its_reason, exec_rig) {
  auto box = create();
  auto here = at.new_state();
  for (int i = 0; i < 10; ++i)
    put_file(here / "up" / fmt::format("f{}", i), many_bytes(12 << 20));
  auto got = box.upload(here / "up", "/room/up").get();
  BOOST_TEST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::exhausted), got.error().message);
  // Every file that is there is whole.
  for (const auto& entry : value(box.list("/room/up")))
    BOOST_TEST(entry.status.size == 12u << 20, entry.name);
  // A bomb is bounded by the same limit.
  auto bomb = run_program(
    {"/bin/sh", "-c",
     "f=$(mktemp) && truncate -s 256M $f && tar -C / -cf - ${f#/} | zstd -3 -c; rm -f $f"});
  auto burst = box.unpack("/room/bomb", source_of(bomb.out)).get();
  BOOST_TEST_REQUIRE(!burst);
  BOOST_TEST((burst.error().code == errc::exhausted), burst.error().message);
  auto after = value(box.exec(exec_spec::shell("rm -rf /room/up /room/bomb && echo alive")));
  BOOST_TEST(after.out == "alive\n");
  BOOST_TEST(tree_tasks_end());
  fs::remove_all(here);
}

BOOST_FIXTURE_TEST_CASE(a_replaced_file_is_the_old_one_or_the_new_one_and_never_a_part, exec_rig) {
  auto box = create();
  const std::string old(1 << 20, 'o');
  done(box.write("/room/file", old));
  auto full = box.write("/room/file", many_bytes(100 << 20)).get();
  BOOST_TEST_REQUIRE(!full);
  BOOST_TEST((full.error().code == errc::exhausted), full.error().message);
  BOOST_TEST(value(box.read("/room/file")) == old);
  BOOST_TEST((names_in(box, "/room") == std::set<std::string>{"file"}));

  // A reader inside sees one or the other, whole, while it is replaced again and again.
  auto reader = box.start(exec_spec::shell(
    "while [ ! -e /room/stop ]; do a=$(head -c 1 /room/file); b=$(tail -c 1 /room/file);"
    " n=$(wc -c < /room/file); [ $n = 1048576 ] || echo torn; done"));
  for (std::size_t i = 0; i < at_size(50, 500); ++i)
    done(box.write("/room/file", std::string(1 << 20, static_cast<char>('a' + i % 26))));
  done(box.write("/room/stop", ""));
  auto seen = value(reader.result());
  BOOST_TEST(seen.out == "", seen.out);
}

BOOST_FIXTURE_TEST_CASE(a_replaced_file_keeps_its_mode_and_owner_and_links_lead_to_it, exec_rig) {
  auto box = create();
  auto run = [&](const std::string& script) {
    auto x = value(box.exec(exec_spec::shell(script)));
    BOOST_TEST(x.ok(), x.err);
    return x.out;
  };
  run("mkdir -p /room/a /room/b && echo old > /room/a/file && chmod 604 /room/a/file"
      " && chown 1000:1000 /room/a/file && ln -s ../a/file /room/b/relative"
      " && ln -s /room/b/relative /room/b/chain && ln -s /room/a/made /room/b/dangling"
      " && ln -s loop /room/b/loop && ln -s /room/a /room/b/folder");
  for (auto* path : {"/room/a/file", "/room/b/relative", "/room/b/chain", "/room/b/folder/file"}) {
    done(box.write(path, path));
    BOOST_TEST(run("cat /room/a/file") == path);
    auto is = value(box.stat("/room/a/file"));
    BOOST_TEST(is.mode == 0604u);
    BOOST_TEST(is.uid == 1000u);
    BOOST_TEST(is.gid == 1000u);
    BOOST_TEST((is.type == file_type::regular));
  }
  BOOST_TEST((value(box.stat("/room/b/chain")).type == file_type::symlink));
  done(box.write("/room/b/dangling", "made", {0600}));
  BOOST_TEST(run("cat /room/a/made") == "made");
  BOOST_TEST(value(box.stat("/room/a/made")).mode == 0600u);
  for (auto* path : {"/room/b/loop", "/room/a", "/room/b/folder", "/room/a/file/x", "/dev/null"}) {
    auto refused = box.write(path, "x").get();
    BOOST_TEST_REQUIRE(!refused, path);
    BOOST_TEST((refused.error().code == errc::invalid_argument), refused.error().message);
  }
  // In place, when that is asked for: whoever has it open sees it.
  run("ln /room/a/file /room/a/second");
  done(box.write("/room/a/file", "in place", {0644, false}));
  BOOST_TEST(run("cat /room/a/second") == "in place");
  done(box.write("/room/a/file", "replaced"));
  BOOST_TEST(run("cat /room/a/second") == "in place");
  BOOST_TEST((names_in(box, "/room/a") == std::set<std::string>{"file", "made", "second"}));
}

BOOST_FIXTURE_TEST_CASE(a_caller_that_leaves_ends_what_it_began, tree_rig) {
  auto source = std::make_shared<slow_source>();
  auto up = box.unpack("/room/up", source);
  source->give(one_file(1 << 20).substr(0, 700'000));
  source->leave();
  auto got = up.get();
  BOOST_TEST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::unavailable), got.error().message);
  BOOST_TEST(tree_tasks_end());

  run("head -c 20000000 /dev/zero > /room/big");
  auto sink = std::make_shared<slow_archive>();
  auto down = box.pack("/room/big", sink);
  sink->wait_for_bytes();
  sink->leave();
  auto packed = down.get();
  BOOST_TEST_REQUIRE(!packed);
  BOOST_TEST((packed.error().code == errc::unavailable), packed.error().message);
  BOOST_TEST(tree_tasks_end());
  BOOST_TEST(sink->bytes() < 10'000'000u);
}

BOOST_FIXTURE_TEST_CASE(an_archive_that_breaks_off_or_is_none_is_corrupt, tree_rig) {
  auto whole = one_file(1 << 20);
  for (const auto& bytes : {whole.substr(0, 700'000), std::string{}, many_bytes(100'000),
                            std::string{"\x1f\x8b\x08", 3} + many_bytes(1000)}) {
    auto got = box.unpack("/room/up", source_of(bytes)).get();
    BOOST_TEST_REQUIRE(!got);
    BOOST_TEST((got.error().code == errc::corrupt), got.error().message);
    BOOST_TEST(!box.stat("/room/up/file").get());
  }
  BOOST_TEST(value(box.unpack("/room/up", source_of(whole))).entries == 2u);
}

BOOST_FIXTURE_TEST_CASE(a_pause_does_not_stop_a_tree_that_is_under_way, tree_rig) {
  auto whole = one_file(1 << 20);
  auto source = std::make_shared<slow_source>();
  auto up = box.unpack("/room/up", source);
  source->give(whole.substr(0, 300'000));
  done(box.pause());
  source->give(whole.substr(300'000));
  source->give({});
  BOOST_TEST(value(up).entries == 2u);
  BOOST_TEST((value(box.info()).state == sandbox_state::paused));
  done(box.resume());
  BOOST_TEST(value(box.stat("/room/up/file")).size == 1u << 20);
}

BOOST_AUTO_TEST_CASE(a_tree_may_take_longer_than_a_question_but_a_dead_end_is_told) {
  auto& at = machine();
  auto options = at.options();
  options.backend_timeout = 1s;
  auto opened = runtime::open(at.new_state(), options);
  BOOST_TEST_REQUIRE(bool(opened));
  auto rt = std::move(*opened);
  auto box = playground::one_sandbox(*rt, at.environment());
  auto whole = one_file(1 << 20);
  auto source = std::make_shared<slow_source>();
  auto up = box.unpack("/room/up", source);
  source->give(whole.substr(0, 300'000));
  // It is our turn, for longer than dsec-init may take over its own.
  source->wait_for_question();
  BOOST_TEST(!bench::ask_until(bench::within(2500ms), 50ms, [&] { return up.ready(); }));
  source->give(whole.substr(300'000));
  source->give({});
  BOOST_TEST(value(up).entries == 2u);

  auto init = demo::init_pids(installation_of(at)).at(box.id().str());
  ::kill(init, SIGSTOP);
  auto stuck = box.unpack("/room/up", source_of(whole)).get();
  ::kill(init, SIGCONT);
  BOOST_TEST_REQUIRE(!stuck);
  BOOST_TEST((stuck.error().code == errc::unavailable), stuck.error().message);
  done(box.write("/room/again", "x"));
  BOOST_TEST(tree_tasks_end());
}

BOOST_FIXTURE_TEST_CASE(many_trees_at_once_wait_for_their_turn_and_all_arrive, tree_rig) {
  for (int i = 0; i < 20; ++i)
    put_file(here / "up" / fmt::format("f{}", i), many_bytes(50'000));
  std::vector<future<tree_report>> all;
  for (int i = 0; i < 32; ++i)
    all.push_back(box.upload(here / "up", fmt::format("/room/a/b/c/{}", i)));
  for (int i = 0; i < 32; ++i)
    BOOST_TEST(value(all[i]).entries == 21u);
  auto count = value(box.exec(exec_spec::shell("find /room/a/b/c -type f | wc -l"))).out;
  BOOST_TEST(std::stoi(count) == 32 * 20);
}

BOOST_FIXTURE_TEST_CASE(a_runtime_that_closes_answers_every_copy_and_hangs_on_none, tree_rig) {
  for (int i = 0; i < 20; ++i)
    put_file(here / "up" / fmt::format("f{}", i), many_bytes(500'000));
  std::vector<future<tree_report>> all;
  for (int i = 0; i < 24; ++i)
    all.push_back(i % 2 ? box.upload(here / "up", fmt::format("/room/{}", i))
                        : box.download("/bin", here / fmt::format("down{}", i)));
  value(all[0]);
  rt.reset();
  std::size_t cut = 0;
  for (const auto& each : all) {
    BOOST_TEST_REQUIRE(each.ready());
    auto got = each.get();
    cut += !got;
    BOOST_TEST((got || got.error().code == errc::unavailable), (got ? "" : got.error().message));
  }
  BOOST_TEST(cut > 0u);
  BOOST_TEST(tree_tasks_end());
}

BOOST_FIXTURE_TEST_CASE(a_sandbox_that_is_stopped_ends_its_trees_with_that_reason, tree_rig) {
  auto source = std::make_shared<slow_source>();
  auto up = box.unpack("/room/up", source);
  source->give(one_file(1 << 20).substr(0, 300'000));
  source->wait_for_question();
  done(box.stop());
  auto got = up.get();
  BOOST_TEST_REQUIRE(!got);
  BOOST_TEST((got.error().code == errc::invalid_state), got.error().message);
  BOOST_TEST(tree_tasks_end());
}

BOOST_AUTO_TEST_CASE(a_node_that_is_killed_in_the_middle_leaves_no_process_and_no_draft) {
  auto& at = machine();
  auto state = at.new_state();
  std::string id;
  {
    child_process trainer{
      {at.programs / "scenario_trainer", state, at.data_dir, at.run_dir, at.layer.str(), "copy"}};
    id = trainer.line().value_or("");
    BOOST_TEST_REQUIRE(!id.empty());
    BOOST_TEST_REQUIRE(trainer.line().value_or("") == "copying");
    // It copies again and again.
    BOOST_TEST(bench::ask_until(bench::within(10s), 0ms, [] { return !tree_tasks().empty(); }));
    trainer.kill(SIGKILL);
    trainer.wait();
  }
  BOOST_TEST(tree_tasks_end());
  auto rt = at.open(state);
  auto box = value(rt->find(sandbox_id{id}));
  // The drafts are removed by processes that nobody waits for.
  BOOST_TEST(bench::ask_until(bench::within(10s), 20ms, [&] {
    for (const auto& name : names_in(box, "/room"))
      if (name.starts_with(".dsec"))
        return false;
    return true;
  }));
  auto replaced = value(box.read("/room/replaced"));
  BOOST_TEST((replaced == std::string(4 << 20, 'a') || replaced == std::string(4 << 20, 'b')));
  done(box.stop());
}

BOOST_AUTO_TEST_SUITE_END()
