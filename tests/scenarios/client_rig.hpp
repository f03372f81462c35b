#pragma once

#include "bench/waits.hpp"
#include "tests/sdk/root_only.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dsec::test {

using namespace std::chrono_literals;

/// `dsec serve` on a state directory of its own, which can be killed, and what `dsec` says to it.
struct client_rig {
  std::filesystem::path state = machine().new_state();
  std::unique_ptr<child_process> server;

  client_rig() {
    start();
  }

  ~client_rig() {
    auto left = nlohmann::json::parse(run({"ps", "--json"}).out, nullptr, false);
    if (left.is_array())
      for (const auto& each : left)
        run({"stop", each["id"]});
  }

  client_rig(const client_rig&) = delete;
  client_rig& operator=(const client_rig&) = delete;

  void start() {
    server = std::make_unique<child_process>(words({"serve", "--warm", "0"}));
    auto ready = server->line().value_or("");
    BOOST_TEST_REQUIRE(ready.starts_with("dsec: ready"), ready);
  }

  void kill_server() {
    server->kill(SIGKILL);
    server->wait();
  }

  std::vector<std::string> words(const std::vector<std::string>& arguments) const {
    return machine().dsec(state, arguments);
  }

  finished run(const std::vector<std::string>& arguments, const std::string& input = {}) const {
    return run_program(words(arguments), input);
  }

  /// The same as a shell runs it that makes of "$@" what `script` says.
  finished run_by(const std::string& script, const std::vector<std::string>& arguments) const {
    std::vector<std::string> all{"/bin/sh", "-c", script, "sh"};
    for (auto& word : words(arguments))
      all.push_back(std::move(word));
    return run_program(all);
  }

  std::string line_of(const std::vector<std::string>& arguments) const {
    auto x = run(arguments);
    BOOST_TEST_REQUIRE(x.code == 0, x.err);
    return x.out.substr(0, x.out.find('\n'));
  }

  nlohmann::json json_of(const std::vector<std::string>& arguments) const {
    auto x = run(arguments);
    BOOST_TEST_REQUIRE(x.code == 0, x.err);
    return nlohmann::json::parse(x.out);
  }

  std::string create(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"create", "--image", "busybox"});
    return line_of(more);
  }

  /// Until no sandbox is left.
  bool is_empty_within(std::chrono::milliseconds patience) const {
    return bench::ask_until(bench::within(patience), 20ms, [&] {
      return run({"ps", "--json"}).out == "[]\n";
    });
  }
};

} // namespace dsec::test
