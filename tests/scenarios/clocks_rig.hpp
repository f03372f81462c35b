#pragma once

#include "bench/waits.hpp"
#include "sdk/cli/client.hpp"
#include "sdk/front/convert.hpp"
#include "tests/scenarios/heard_events.hpp"
#include "tests/scenarios/residue.hpp"
#include "tests/scenarios/sizes.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsec::test {

using namespace std::chrono_literals;

/// What becomes of the sandboxes of a job.
struct change_log : heard_events {
  using heard_events::heard_events;

  /// What is said of a sandbox once it has ended.
  sandbox_info end_of(const sandbox& box) const {
    BOOST_TEST_REQUIRE(wait_for(event_kind::stopped, box), box.id().str());
    return value(box.info());
  }
};

/// A runtime of its own for one test, and a sandbox whose commands pass the time.
struct clocks_rig {
  playground& at = machine();
  std::filesystem::path state = at.new_state();
  std::unique_ptr<runtime> rt = at.open(state);
  job owner = value(rt->open_job("clocks", {{0ms, 0ms}}));
  change_log log{owner};
  sandbox watch = create({});

  ~clocks_rig() {
    // Nobody's lease would end them.
    (void)owner.close().get();
  }

  sandbox create(const sandbox_clocks& clocks) const {
    create_options x;
    x.environment = at.environment();
    x.clocks = clocks;
    return value(owner.create(std::move(x)));
  }

  /// Lets that much time pass, as a command in a sandbox measures it.
  void pass(std::chrono::milliseconds time) const {
    BOOST_TEST(value(watch.exec(exec_spec{{"usleep", std::to_string(time.count() * 1000)}})).ok());
  }

  finished cli(const std::vector<std::string>& arguments) const {
    return run_program(at.dsec(state, arguments));
  }
};

/// A command that says that it has begun and then runs, silent, until it is ended.
inline exec_spec endless() {
  return exec_spec::shell("echo begun; exec sleep 600");
}

/// `dsec serve`, which can be killed, and a connection to it.
class served_node {
public:
  served_node() {
    BOOST_TEST_REQUIRE(start());
  }

  ~served_node() {
    if (!server_)
      start();
    auto found = find_job();
    if (found)
      (void)wait(*client_, found->closeRequest().send());
  }

  served_node(const served_node&) = delete;
  served_node& operator=(const served_node&) = delete;

  std::vector<std::string> words(const std::vector<std::string>& arguments) const {
    return machine().dsec(state_, arguments);
  }

  finished cli(const std::vector<std::string>& arguments) const {
    return run_program(words(arguments));
  }

  /// False if it did not come up, as one that is killed on its way.
  bool start(const std::vector<std::string>& variables = {}) {
    server_ = std::make_unique<child_process>(words({"serve", "--warm", "0"}), variables);
    if (!server_->line().value_or("").starts_with("dsec: ready"))
      return false;
    auto connected = connect(state_);
    BOOST_TEST_REQUIRE(bool(connected), (connected ? "" : connected.error().message));
    client_ = std::move(*connected);
    return true;
  }

  /// kill -9, unless it has ended.
  void kill() {
    client_.reset();
    server_->kill(SIGKILL);
    server_->wait();
    server_.reset();
  }

  client& at() {
    return *client_;
  }

  result<wire::Job::Client> find_job() {
    auto open = client_->dsec.openJobRequest();
    open.setName("clocks");
    open.initLease();
    auto opened = wait(*client_, open.send());
    if (!opened)
      return opened.error();
    return wire::Job::Client{opened->getJob()};
  }

  /// One that has started; its id.
  result<std::string> create(const sandbox_clocks& clocks) {
    auto job = find_job();
    if (!job)
      return job.error();
    auto create = job->createRequest();
    auto item = create.initItem();
    wire::write(machine().environment(), item.initEnvironment());
    wire::write(clocks, item.initClocks());
    auto answer = wait(*client_, create.send());
    if (!answer)
      return answer.error();
    if (error e; wire::failed(answer->getCreated().getError(), e))
      return e;
    return wire::text(answer->getCreated().getId());
  }

  wire::Sandbox::Client find(const std::string& id) {
    auto find = client_->dsec.sandboxRequest();
    find.setId(id.c_str());
    return find.send().getSandbox();
  }

  result<void> set_clocks(const std::string& id, const sandbox_clocks& clocks) {
    auto request = find(id).setClocksRequest();
    wire::write(clocks, request.initClocks());
    auto done = wait(*client_, request.send());
    return done ? result<void>{} : result<void>{done.error()};
  }

  std::vector<sandbox_info> list(bool with_ended) {
    auto request = client_->dsec.listRequest();
    request.setWithEnded(with_ended);
    auto found = wait(*client_, request.send());
    BOOST_TEST_REQUIRE(bool(found), (found ? "" : found.error().message));
    std::vector<sandbox_info> all;
    for (auto one : found->getSandboxes())
      all.push_back(wire::read(one));
    return all;
  }

  sandbox_info info(const std::string& id) {
    for (const auto& x : list(true))
      if (x.id.str() == id)
        return x;
    BOOST_FAIL(id << " is not in the list");
    return {};
  }

private:
  std::filesystem::path state_ = machine().new_state();
  std::unique_ptr<child_process> server_;
  std::unique_ptr<client> client_;
};

} // namespace dsec::test
