#pragma once

#include "sdk/embed/runtime.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dsec::test {

/// A machine of its own for one test program: data, run and state directories below one temporary
/// directory, a spawner with a small scratch, and one layer with a busybox. Ends the spawner and
/// removes everything.
class playground {
public:
  playground();
  ~playground();

  std::filesystem::path root;
  std::filesystem::path data_dir;
  std::filesystem::path run_dir;
  std::filesystem::path programs; ///< Where dsec, dsec-spawner and sdk_trainer lie.
  layer_digest layer;

  /// A state directory that no test has used.
  std::filesystem::path new_state();
  runtime_options options() const;
  dsec::environment environment() const;

  /// The words that run `dsec` on that state directory.
  std::vector<std::string>
  dsec(const std::filesystem::path& state, const std::vector<std::string>& arguments) const;

  /// A runtime on that state directory; fails the test if there is none.
  std::unique_ptr<runtime> open(const std::filesystem::path& state) const;

  /// A job without a lease and one sandbox in it.
  static sandbox
  one_sandbox(runtime& at, const dsec::environment& from, const std::string& job = "test");

private:
  unsigned states_ = 0;
};

/// Why the tests cannot run here, or nothing.
std::optional<std::string> why_not();

/// The one of this program; made at first use.
playground& machine();

/// Ends it.
void end_machine();

/// A program under test, with its standard output and error.
struct finished {
  int code = -1; ///< Exit code, or 128 + signal.
  std::string out;
  std::string err;
};

finished run_program(const std::vector<std::string>& argv, const std::string& input = {});

/// A child that is killed when it goes out of scope.
class child_process {
public:
  explicit child_process(const std::vector<std::string>& argv,
                         const std::vector<std::string>& variables = {});
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  /// The next line of its standard output; nothing at the end.
  std::optional<std::string> line();
  void kill(int number) const;
  /// Exit code, or 128 + signal.
  int wait();

private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string rest_;
};

} // namespace dsec::test
