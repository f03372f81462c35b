// Whatever fails says what was attempted, on what, and why, under a code that one can branch on.
#include "tests/scenarios/residue.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>

using namespace dsec;
using namespace dsec::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

const job_options no_lease{{0ms, 0ms}};

template <class T>
error failure_of(const result<T>& x) {
  BOOST_TEST_REQUIRE(!x);
  return x.error();
}

template <class T>
error failure_of(const future<T>& x) {
  return failure_of(x.get());
}

/// One way to fail, and all that its error must say beside its code: whom it concerns (ids), what
/// was asked, and the cause.
void expect(const char* what, const error& told, errc code, std::vector<std::string> says) {
  BOOST_TEST_CONTEXT(what << " -> " << to_string(told.code) << ": " << told.message) {
    BOOST_TEST(to_string(told.code) == to_string(code));
    for (const auto& part : says)
      BOOST_TEST((told.message.find(part) != std::string::npos),
                 "it does not say '" << part << "'");
  }
}

exec_spec step(std::uint64_t number, const char* script) {
  auto spec = exec_spec::shell(script);
  spec.step = number;
  return spec;
}

struct opened {
  playground& at = machine();
  fs::path state = at.new_state();
  std::unique_ptr<runtime> rt;
  job errors;
  sandbox box;
  std::string id;

  opened() {
    auto options = at.options();
    options.capacity = 2;
    auto made = runtime::open(state, options);
    BOOST_TEST_REQUIRE(bool(made));
    rt = std::move(*made);
    errors = value(rt->open_job("errors", no_lease));
    box = value(errors.create({at.environment(), "first"}));
    id = box.id().str();
  }

  ~opened() {
    if (!rt)
      rt = at.open(state);
    (void)value(rt->open_job("errors", no_lease)).close().get();
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(api_error, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(errors_of_files_name_the_sandbox_the_path_and_the_cause, opened) {
  using e = errc;
  expect("read what is not there", failure_of(box.read("/no/file")), e::not_found,
         {id, "/no/file", "No such file"});
  expect("list what is not there", failure_of(box.list("/no/folder")), e::not_found,
         {id, "/no/folder", "No such file"});
  expect("stat what is not there", failure_of(box.stat("/no/file")), e::not_found,
         {id, "/no/file", "No such file"});
  expect("read a folder", failure_of(box.read("/room")), e::invalid_argument,
         {id, "/room", "regular file"});
  expect("list a file", failure_of(box.list("/etc/passwd")), e::invalid_argument,
         {id, "/etc/passwd", "Not a directory"});
  expect("a path that is relative", failure_of(box.write("here", "x")), e::invalid_argument,
         {id, "here", "absolute"});
  expect("write over a folder", failure_of(box.write("/room", "x")), e::invalid_argument,
         {id, "/room"});
  done(box.write("/room/large", std::string(5000, 'l')));
  expect("read more than allowed", failure_of(box.read("/room/large", 1000)), e::exhausted,
         {id, "/room/large", "5000", "1000"});
  auto disk = std::string(8 << 20, 'd');
  error full;
  for (int i = 0; i < 16 && full.message.empty(); ++i)
    if (auto x = box.write(fmt::format("/room/fill{}", i), disk).get(); !x)
      full = x.error();
  expect("write on a full disk", full, e::exhausted, {id, "/room/fill"});
}

BOOST_FIXTURE_TEST_CASE(errors_of_commands_name_the_sandbox_the_step_and_the_cause, opened) {
  using e = errc;
  expect("a command of nothing", failure_of(box.exec(exec_spec{})), e::invalid_argument,
         {id, "argv"});
  expect("an argument too long",
         failure_of(box.exec(exec_spec{{"echo", std::string(200'000, 'x')}})), e::invalid_argument,
         {id, "argv", "200000"});
  auto elsewhere = exec_spec{{"true"}};
  elsewhere.cwd = "/no/folder";
  expect("a directory that is not there", failure_of(box.exec(elsewhere)), e::not_found,
         {id, "/no/folder"});
  auto nobody = exec_spec{{"true"}};
  nobody.user = "nobody-here";
  expect("a user that is not there", failure_of(box.exec(nobody)), e::not_found,
         {id, "nobody-here"});
  expect("a program that is not there", failure_of(box.exec(exec_spec{{"/no/program"}})),
         e::no_program, {id, "/no/program"});
  expect("a program that is no program", failure_of(box.exec(exec_spec{{"/etc/passwd"}})),
         e::not_executable, {id, "/etc/passwd"});
  value(box.exec(step(4, "echo one")));
  expect("a step that was another", failure_of(box.exec(step(4, "echo two"))), e::diverged,
         {id, "step 4"});
  expect("a step that was never", failure_of(box.step(99)), e::not_found, {id, "99"});
  done(box.stop());
  for (const auto& told :
       {failure_of(box.exec(exec_spec{{"true"}})), failure_of(box.read("/x")),
        failure_of(box.pause()), failure_of(box.resume()), failure_of(box.stats())})
    expect("a sandbox that was stopped", told, e::invalid_state, {id, "terminated", "stopped"});
}

BOOST_FIXTURE_TEST_CASE(errors_of_jobs_and_creates_name_the_job_the_key_and_the_limit, opened) {
  using e = errc;
  const auto unknown = sandbox_id{"n00000000-77"};
  expect("a sandbox that never was", failure_of(rt->find(unknown)), e::not_found, {unknown.str()});
  expect("a job that never was", failure_of(rt->find_job("never")), e::not_found, {"never"});
  expect("a job without a name", failure_of(rt->open_job("", no_lease)), e::invalid_argument,
         {"job"});
  auto wrong = at.environment();
  wrong.limits.memory_bytes = 1;
  expect("too little memory", failure_of(errors.create({wrong, {}})), e::invalid_argument,
         {"memory_bytes", "1", std::to_string(memory_bytes_min)});
  auto other = at.environment();
  other.cwd = "/room";
  expect("a key of another environment", failure_of(errors.create({other, "first"})), e::diverged,
         {"errors", "first", id});
  auto missing = at.environment();
  missing.layers = {layer_digest{"sha256-" + std::string(64, '0')}};
  expect("a layer that is missing", failure_of(errors.create({missing, {}})), e::not_found,
         {missing.layers[0].str(), "start sandbox n"});
  auto broken = at.environment();
  broken.layers = {layer_digest{"sha256-" + std::string(64, 'b')}};
  fs::create_directories(at.data_dir / "store" / broken.layers[0].str());
  std::ofstream{at.data_dir / "store" / broken.layers[0].str() / "layer.erofs"} << "no image";
  expect("a layer that is broken", failure_of(errors.create({broken, {}})), e::corrupt,
         {broken.layers[0].str()});
  fs::remove_all(at.data_dir / "store" / broken.layers[0].str());
  auto second = value(errors.create({at.environment(), {}}));
  expect("one more than the node takes", failure_of(errors.create({at.environment(), {}})),
         e::exhausted, {"sandboxes", "node", "2"});
  value(errors.preempt(preempt_mode::until_resume));
  expect("a command while preempted", failure_of(box.exec(exec_spec{{"true"}})), e::preempted,
         {id, "errors"});
  expect("a create while preempted", failure_of(errors.create({at.environment(), {}})),
         e::preempted, {"errors"});
  done(errors.close());
  expect("a create in a closed job", failure_of(errors.create({at.environment(), {}})),
         e::invalid_state, {"errors", "closed"});
}

BOOST_FIXTURE_TEST_CASE(errors_of_the_runtime_name_its_place_and_its_owner, opened) {
  using e = errc;
  expect("a state directory that is owned", failure_of(runtime::open(state, at.options())),
         e::state_in_use, {state.string(), std::to_string(::getpid())});
  auto nowhere = at.options();
  nowhere.run_dir = "relative";
  expect("a run directory that is relative", failure_of(runtime::open(at.new_state(), nowhere)),
         e::invalid_argument, {"run_dir", "relative"});
  auto no_spawner = at.options();
  no_spawner.run_dir = at.root / "empty";
  no_spawner.spawner = "/no/spawner";
  expect("a spawner that cannot be started", failure_of(runtime::open(at.new_state(), no_spawner)),
         e::unavailable, {"/no/spawner"});
  rt.reset();
  expect("a runtime that is closed", failure_of(box.exec(exec_spec{{"true"}})), e::unavailable,
         {"closed"});
}

BOOST_FIXTURE_TEST_CASE(what_became_of_a_command_whose_sandbox_broke_says_why, opened) {
  auto flying = box.exec(exec_spec{{"sleep", "600"}});
  auto up = box.exec(exec_spec{{"true"}});
  BOOST_TEST(value(up).ok());
  auto init = demo::init_pids(installation_of(at)).at(id);
  ::kill(init, SIGKILL);
  auto x = value(flying);
  BOOST_TEST(to_string(x.outcome.kind) == to_string(outcome_kind::infrastructure));
  BOOST_TEST(x.outcome.cause.find("dsec-init") != std::string::npos, x.outcome.cause);
  BOOST_TEST(x.outcome.cause.find("effect unknown") != std::string::npos, x.outcome.cause);
  auto told = failure_of(box.exec(exec_spec{{"true"}}));
  expect("a sandbox that broke", told, errc::invalid_state, {id, "infrastructure", "dsec-init"});
  auto stopped = value(errors.create({at.environment(), {}}));
  auto cut = stopped.exec(exec_spec{{"sleep", "600"}});
  BOOST_TEST(value(stopped.exec(exec_spec{{"true"}})).ok());
  done(stopped.stop());
  BOOST_TEST(to_string(value(cut).outcome.kind) == to_string(outcome_kind::sandbox_stopped));
}

BOOST_AUTO_TEST_SUITE_END()
