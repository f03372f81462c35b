#include "tests/sdk/root_only.hpp"

#include <nlohmann/json.hpp>

#include <csignal>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

/// `dsec serve` on a state directory of its own, and its clients.
struct served {
  playground& at = machine();
  std::filesystem::path state = at.new_state();
  child_process server{words({"serve", "--warm", "0"})};

  served() {
    auto ready = server.line().value_or("");
    BOOST_TEST_REQUIRE(ready.starts_with("dsec: ready"), ready);
  }

  ~served() {
    // Sandboxes are stopped before the machine is taken down.
    auto ids = nlohmann::json::parse(run({"ps", "--json"}).out, nullptr, false);
    if (ids.is_array())
      for (const auto& each : ids)
        run({"stop", each["id"]});
  }

  std::vector<std::string> words(std::vector<std::string> arguments) const {
    std::vector<std::string> all{machine().programs / "dsec",
                                 "--state-dir",
                                 state,
                                 "--data-dir",
                                 machine().data_dir,
                                 "--run-dir",
                                 machine().run_dir};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }

  finished run(std::vector<std::string> arguments, const std::string& input = {}) const {
    return run_program(words(std::move(arguments)), input);
  }

  std::string create() const {
    auto x = run({"create", "--image", "busybox"});
    BOOST_TEST_REQUIRE(x.code == 0, x.err);
    return x.out.substr(0, x.out.find('\n'));
  }
};

} // namespace

BOOST_AUTO_TEST_SUITE(cli, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(run_prints_what_the_command_prints_and_ends_as_it_ends, served) {
  auto x = run({"run", "--image", "busybox", "--", "sh", "-c", "echo out; echo err >&2; exit 7"});
  BOOST_TEST(x.code == 7);
  BOOST_TEST(x.out == "out\n");
  BOOST_TEST(x.err == "err\n");
  BOOST_TEST(run({"ps", "--json"}).out == "[]\n");
}

BOOST_FIXTURE_TEST_CASE(exec_tells_signals_deadlines_memory_and_its_own_failures_apart, served) {
  auto id = create();
  BOOST_TEST(run({"exec", id, "--", "true"}).code == 0);
  BOOST_TEST(run({"exec", id, "--", "sh", "-c", "kill -9 $$"}).code == 137);
  auto late = run({"exec", "--deadline", "0.1", id, "--", "sleep", "60"});
  BOOST_TEST(late.code == 124);
  BOOST_TEST(late.err == "dsec: the deadline passed\n");
  auto missing = run({"exec", id, "--", "/no/such/program"});
  BOOST_TEST(missing.code == 127);
  BOOST_TEST(missing.err.find("/no/such/program") != std::string::npos, missing.err);
  BOOST_TEST(run({"exec", id, "--", "no-such-program"}).code == 127);
  BOOST_TEST(run({"run", "--image", "busybox", "--", "no-such-program"}).code == 127);
  auto plain = run({"exec", id, "--", "/etc/passwd"});
  BOOST_TEST(plain.code == 126);
  BOOST_TEST(plain.err.find("not executable") != std::string::npos, plain.err);
  BOOST_TEST(run({"exec", id, "--", "/etc"}).code == 126);
  // Wrong requests, not missing programs.
  BOOST_TEST(run({"exec", "--cwd", "/no/such/directory", id, "--", "true"}).code == 125);
  BOOST_TEST(run({"exec", "--user", "nobodyhere", id, "--", "true"}).code == 125);
  BOOST_TEST(run({"exec", "n00000000-1", "--", "true"}).code == 125);
  BOOST_TEST(run({"exec"}).code == 125);

  auto x = run({"create", "--image", "busybox", "--memory", "32M"});
  auto small = x.out.substr(0, x.out.find('\n'));
  auto oom = run({"exec", small, "--", "sh", "-c", "exec tail /dev/zero"});
  BOOST_TEST(oom.code == 137);
  BOOST_TEST(oom.err.find("out of memory") != std::string::npos, oom.err);
}

BOOST_FIXTURE_TEST_CASE(at_the_process_limit_the_commands_own_exit_code_is_kept, served) {
  auto x = run({"create", "--image", "busybox", "--pids", "8"});
  BOOST_TEST_REQUIRE(x.code == 0, x.err);
  auto id = x.out.substr(0, x.out.find('\n'));
  // A shell that cannot fork ends with 2.
  auto full = run({"exec", "--step", "1", id, "--", "sh", "-c",
                   "for i in 1 2 3 4 5 6 7 8; do sleep 600 & done; exit 0"});
  BOOST_TEST(full.code == 2);
  BOOST_TEST(full.err.find("dsec: the process limit was reached") != std::string::npos, full.err);
  auto steps = nlohmann::json::parse(run({"logs", "--json", id}).out);
  BOOST_TEST_REQUIRE(steps.size() == 1u);
  BOOST_TEST(steps[0]["outcome"] == "pids_limit");
  BOOST_TEST(steps[0]["code"] == 2);
}

BOOST_FIXTURE_TEST_CASE(a_command_whose_sandbox_is_stopped_under_it_ends_as_killed, served) {
  auto id = create();
  child_process client{words({"exec", id, "--", "sh", "-c", "echo begun; exec sleep 600"})};
  BOOST_TEST_REQUIRE(client.line().value_or("") == "begun");
  BOOST_TEST(run({"stop", id}).code == 0);
  BOOST_TEST(client.wait() == 137);
}

BOOST_FIXTURE_TEST_CASE(the_help_of_run_and_exec_tells_the_exit_codes, served) {
  for (const char* verb : {"run", "exec"}) {
    auto help = run({verb, "--help"});
    BOOST_TEST(help.code == 0);
    for (const char* code : {"124", "125", "126", "127", "137"})
      BOOST_TEST(help.out.find(code) != std::string::npos, help.out);
  }
}

BOOST_FIXTURE_TEST_CASE(a_background_child_that_holds_the_output_does_not_hold_exec, served) {
  auto id = create();
  auto x = run({"exec", "--deadline", "20", id, "--", "sh", "-c", "sleep 60 & echo hi; exit 3"});
  BOOST_TEST(x.code == 3);
  BOOST_TEST(x.out == "hi\n");
  BOOST_TEST(x.err == "");
}

BOOST_FIXTURE_TEST_CASE(numbers_out_of_range_are_refused_and_named, served) {
  for (auto [option, value] : {std::pair{"--cpus", "1e9"},
                               {"--cpus", "nan"},
                               {"--cpus", "0.0001"},
                               {"--deadline", "1e300"},
                               {"--deadline", "nan"},
                               {"--deadline", "-1"},
                               {"--pids", "0"}}) {
    auto x = run({"run", "--image", "busybox", option, value, "--", "true"});
    BOOST_TEST(x.code == 125);
    BOOST_TEST(x.err.find(option) != std::string::npos, x.err);
  }
  // A sandbox that was made for a command that cannot be asked for is not left behind.
  BOOST_TEST(run({"ps", "--json"}).out == "[]\n");
}

BOOST_FIXTURE_TEST_CASE(an_image_that_is_given_twice_is_refused_before_anything_is_made, served) {
  for (const std::string& again : {std::string{"busybox"}, machine().layer.str()}) {
    auto x = run({"create", "--image", "busybox", "--image", again});
    BOOST_TEST(x.code == 125);
    BOOST_TEST(x.err.find("--image " + again + ": the same layer") != std::string::npos, x.err);
  }
  BOOST_TEST(run({"ps", "--all", "--json"}).out == "[]\n");
}

BOOST_FIXTURE_TEST_CASE(what_follows_the_sandbox_is_the_command_whatever_it_looks_like, served) {
  auto id = create();
  auto said = [&](std::vector<std::string> argv) {
    argv.insert(argv.begin(), {"exec", id});
    return run(argv);
  };
  BOOST_TEST(said({"ls", "-d", "/tmp"}).out == "/tmp\n");
  BOOST_TEST(said({"echo", "-e", "a=b", "--help", "-u"}).out == "a=b --help -u\n");
  BOOST_TEST(said({"printf", "%s|", "[a,b]", "[", "]", "", "[]", "\x01[x]", "--", "stop"}).out
             == "[a,b]|[|]||[]|\x01[x]|--|stop|");
  BOOST_TEST(said({"sh", "-c", "exit 37"}).code == 37);
  BOOST_TEST(said({"--", "echo", "--", "x"}).out == "-- x\n");
  BOOST_TEST(run({"exec", "-e", "A=1", id, "sh", "-c", "echo $A"}).out == "1\n");
}

BOOST_FIXTURE_TEST_CASE(a_closed_standard_descriptor_is_not_taken_by_a_socket, served) {
  auto id = create();
  auto shell = [&](const std::string& rest) {
    std::string line;
    for (const auto& word : words({"exec", "-i", id, "sh", "-c"}))
      line += "'" + word + "' ";
    return run_program({"/bin/sh", "-c", line + rest});
  };
  BOOST_TEST(shell("'wc -c' <&-").out == "0\n");
  auto unheard = shell("'echo hi' >&-");
  BOOST_TEST(unheard.code == 125);
  BOOST_TEST(unheard.err.find("standard output") != std::string::npos, unheard.err);
  BOOST_TEST(shell("'echo hi >&2; exit 3' 2>&-").code == 3);
}

BOOST_FIXTURE_TEST_CASE(exec_passes_input_variables_user_and_directory_on, served) {
  auto id = create();
  std::string input(300'000, 'x');
  BOOST_TEST(run({"exec", "-i", id, "--", "wc", "-c"}, input).out == "300000\n");
  auto x = run({"exec", "-e", "A=b", "-w", "/tmp", "-u", "agent", id, "--", "sh", "-c",
                "echo $A; pwd; id -u"});
  BOOST_TEST(x.out == "b\n/tmp\n1000\n");
}

BOOST_FIXTURE_TEST_CASE(a_step_runs_once_and_its_log_can_be_read, served) {
  auto id = create();
  for (int i = 0; i < 2; ++i) {
    auto x = run({"exec", "--step", "1", id, "--", "sh", "-c", "echo once >> /room/log; echo out"});
    BOOST_TEST(x.code == 0);
    BOOST_TEST(x.out == "out\n");
  }
  BOOST_TEST(run({"exec", id, "--", "cat", "/room/log"}).out == "once\n");
  BOOST_TEST(run({"logs", id, "1"}).out == "out\n");
  auto steps = nlohmann::json::parse(run({"logs", "--json", id}).out);
  BOOST_TEST_REQUIRE(steps.size() == 1u);
  BOOST_TEST(steps[0]["step"] == 1);
  BOOST_TEST(steps[0]["outcome"] == "exited");
}

BOOST_FIXTURE_TEST_CASE(pause_resume_stop_and_ps_show_the_states, served) {
  auto id = create();
  auto state_of = [&] {
    return nlohmann::json::parse(run({"ps", "--all", "--json"}).out)[0]["state"].get<std::string>();
  };
  BOOST_TEST(state_of() == "running");
  BOOST_TEST(run({"pause", "--reclaim", id}).code == 0);
  BOOST_TEST(state_of() == "reclaimed");
  BOOST_TEST(run({"resume", id}).code == 0);
  BOOST_TEST(state_of() == "running");
  BOOST_TEST(run({"stop", id}).code == 0);
  BOOST_TEST(state_of() == "terminated");
}

BOOST_FIXTURE_TEST_CASE(a_job_is_opened_preempted_resumed_listed_and_closed, served) {
  BOOST_TEST(run({"job", "open", "train"}).code == 0);
  auto x = run({"create", "--job", "train", "--image", "busybox"});
  BOOST_TEST_REQUIRE(x.code == 0, x.err);
  auto id = x.out.substr(0, x.out.find('\n'));
  auto report =
    nlohmann::json::parse(run({"job", "preempt", "--until-resume", "--json", "train"}).out);
  BOOST_TEST(report["reclaimed"] == 1);
  auto refused = run({"exec", id, "--", "true"});
  BOOST_TEST(refused.code == 125);
  BOOST_TEST(run({"job", "resume", "train"}).code == 0);
  BOOST_TEST(run({"exec", id, "--", "true"}).code == 0);
  auto jobs = nlohmann::json::parse(run({"job", "ls", "--json"}).out);
  BOOST_TEST_REQUIRE(jobs.size() == 1u);
  BOOST_TEST(jobs[0]["job"] == "train");
  BOOST_TEST(run({"job", "close", "train"}).code == 0);
  BOOST_TEST(run({"job", "resume", "nobody"}).code == 125);
}

BOOST_FIXTURE_TEST_CASE(a_client_that_is_killed_takes_its_command_along_but_not_the_sandbox,
                        served) {
  auto id = create();
  BOOST_TEST_REQUIRE(run({"exec", id, "--", "mkfifo", "/held"}).code == 0);
  // Reads for as long as somebody holds the other end, which cannot be opened before this one.
  child_process watcher{words({"exec", id, "--", "sh", "-c", "cat /held; echo gone"})};
  child_process client{
    words({"exec", id, "--", "sh", "-c", "exec 3>/held; echo begun; exec sleep 600"})};
  BOOST_TEST_REQUIRE(client.line().value_or("") == "begun");
  client.kill(SIGKILL);
  client.wait();
  BOOST_TEST(watcher.line().value_or("") == "gone");
  watcher.wait();
}

BOOST_FIXTURE_TEST_CASE(output_that_nobody_takes_ends_the_command_and_is_an_error, served) {
  auto id = create();
  std::vector<std::string> piped{"/bin/sh", "-c", "{ \"$@\"; echo $? >&2; } | head -c 1", "sh"};
  auto exec = words({"exec", id, "--", "yes"});
  piped.insert(piped.end(), exec.begin(), exec.end());
  auto x = run_program(piped);
  BOOST_TEST(x.out == "y");
  BOOST_TEST(x.err.find("write standard output: Broken pipe") != std::string::npos, x.err);
  BOOST_TEST(x.err.find("125") != std::string::npos, x.err);
}

BOOST_FIXTURE_TEST_CASE(a_deadline_of_a_millisecond_is_one, served) {
  auto id = create();
  BOOST_TEST(run({"exec", "--deadline", "0.001", id, "--", "sleep", "60"}).code == 124);
}

BOOST_FIXTURE_TEST_CASE(a_replay_of_which_a_part_was_kept_says_so, served) {
  auto id = create();
  std::vector<std::string> step{"exec", "--step", "1",       id,         "--",
                                "head", "-c",     "3000000", "/dev/zero"};
  auto first = run(step);
  auto again = run(step);
  BOOST_TEST(again.code == 0);
  BOOST_TEST(again.out.size() < 3000000u);
  BOOST_TEST(again.err.find("standard output was 3000000 bytes") != std::string::npos, again.err);
}

BOOST_FIXTURE_TEST_CASE(an_interrupted_client_passes_the_signal_on, served) {
  auto id = create();
  child_process client{words({"exec", id, "--", "sh", "-c", "echo begun; exec sleep 600"})};
  BOOST_TEST_REQUIRE(client.line().value_or("") == "begun");
  client.kill(SIGINT);
  BOOST_TEST(client.wait() == 128 + SIGINT);
}

BOOST_FIXTURE_TEST_CASE(serve_survives_kill_9_with_its_sandboxes, served) {
  auto id = create();
  run({"exec", id, "--", "sh", "-c", "echo kept > /room/file"});
  server.kill(SIGKILL);
  server.wait();
  auto nobody = run({"ps"});
  BOOST_TEST(nobody.code == 125);
  BOOST_TEST(nobody.err.find("no runtime serves") != std::string::npos, nobody.err);
  child_process again{words({"serve", "--warm", "0"})};
  BOOST_TEST_REQUIRE(again.line().value_or("").starts_with("dsec: ready"));
  BOOST_TEST(run({"exec", id, "--", "cat", "/room/file"}).out == "kept\n");
  BOOST_TEST(run({"stop", id}).code == 0);
  again.kill(SIGTERM);
  BOOST_TEST(again.wait() == 0);
}

BOOST_FIXTURE_TEST_CASE(another_user_is_refused_even_where_the_files_would_let_him_in, served) {
  // The file modes are the first wall; behind it the runtime looks at who connects.
  namespace fs = std::filesystem;
  fs::permissions(at.root, fs::perms{0755});
  fs::permissions(state, fs::perms{0755});
  fs::permissions(state / "dsec.sock", fs::perms{0666});
  std::vector<std::string> call{"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                "--clear-groups"};
  fs::copy_file(at.programs / "dsec", at.root / "dsec-of-others",
                fs::copy_options::overwrite_existing);
  call.push_back(at.root / "dsec-of-others");
  for (const char* word : {"--state-dir", state.c_str(), "ps"})
    call.push_back(word);
  auto x = run_program(call);
  BOOST_TEST(x.code == 125);
  BOOST_TEST(x.err == "dsec: talk to the runtime: refused: this runtime belongs to another user\n");
}

BOOST_FIXTURE_TEST_CASE(doctor_names_what_it_looked_at, served) {
  auto found = nlohmann::json::parse(run({"doctor", "--json"}).out);
  BOOST_TEST(found.size() >= 8u);
  BOOST_TEST(run({"doctor"}).code == 0);
}

BOOST_AUTO_TEST_SUITE_END()
