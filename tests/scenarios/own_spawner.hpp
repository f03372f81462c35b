#pragma once

#include "bench/demo/census.hpp"
#include "bench/waits.hpp"
#include "tests/scenarios/call_faults.hpp"
#include "tests/sdk/playground.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dsec::test {

/// A second machine next to the playground, with its layers, for tests that do things to a spawner
/// which no other test should share. Its folder is `name` below the playground's.
class own_spawner {
public:
  explicit own_spawner(const std::string& name)
    : folder_{machine().root / name},
      where_{folder_ / "run", folder_ / "data"} {
    std::filesystem::create_directories(where_.data_dir);
    std::filesystem::create_directory_symlink(machine().data_dir / "store",
                                              where_.data_dir / "store");
  }

  own_spawner(const own_spawner&) = delete;
  own_spawner& operator=(const own_spawner&) = delete;

  /// Starts it with every kernel call of it under watch.
  call_faults& start_watched(const std::string& blanks) {
    faults_.emplace(command(blanks));
    BOOST_TEST_REQUIRE(faults_->code() == 0);
    return *faults_;
  }

  ~own_spawner() {
    end();
    std::error_code failed;
    std::filesystem::remove_all(folder_, failed);
  }

  std::vector<std::string> command(const std::string& blanks = "0") const {
    return {machine().programs / "dsec-spawner",
            "--data-dir",
            where_.data_dir,
            "--run-dir",
            where_.run_dir,
            "--scratch-bytes",
            "536870912",
            "--swap-bytes",
            "134217728",
            "--warm",
            "0",
            "--blanks",
            blanks,
            "--idle-exit",
            "120"};
  }

  const demo::installation& where() const {
    return where_;
  }

  int pid() const {
    return demo::spawner_pid(where_);
  }

  runtime_options options() const {
    auto x = machine().options();
    x.data_dir = where_.data_dir;
    x.run_dir = where_.run_dir;
    return x;
  }

  std::unique_ptr<runtime> open(runtime_options with) const {
    auto rt = runtime::open(machine().new_state(), std::move(with));
    BOOST_TEST_REQUIRE(bool(rt), (rt ? "" : rt.error().message));
    return std::move(*rt);
  }

  /// SIGKILL, and waits until it is gone.
  void kill() const {
    auto spawner = pid();
    BOOST_TEST_REQUIRE(spawner > 0);
    ::kill(spawner, SIGKILL);
    BOOST_TEST_REQUIRE(bench::wait_for_end(spawner, bench::within(std::chrono::seconds{10})));
  }

  /// It removes all it keeps on the machine, unless sandboxes live.
  void end() const {
    auto spawner = pid();
    if (spawner <= 0)
      return;
    ::kill(spawner, SIGTERM);
    BOOST_TEST(bench::wait_for_end(spawner, bench::within(std::chrono::seconds{20})));
  }

private:
  std::filesystem::path folder_;
  demo::installation where_;
  std::optional<call_faults> faults_; ///< Goes after the spawner that it watches.
};

} // namespace dsec::test
