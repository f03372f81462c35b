#pragma once

#include "bench/place.hpp"
#include "bench/report.hpp"
#include "sdk/embed/runtime.hpp"
#include "state/format.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace dsec::bench {

struct bench_options {
  /// A run of the same shape in less than a minute.
  bool quick = false;
  /// A data directory of dsec whose store has the base layer. The rest of it is not used.
  std::filesystem::path data_dir = "/var/lib/dsec";
  /// Name or digest of the base layer. Empty: the only one that the store has.
  std::string base;
  /// Of a soak: how long; 0: as long as it takes by itself.
  double minutes = 0;
  /// Of a soak: what its chance starts from.
  std::uint64_t seed = 1;
};

/// The value, or a std::runtime_error that says what was wanted.
template <class T>
T value_of(result<T> answer, const std::string& what) {
  if (!answer)
    throw std::runtime_error{
      fmt::format("{}: {} ({})", what, answer.error().message, to_string(answer.error().code))};
  if constexpr (!std::is_void_v<T>)
    return *std::move(answer);
}

template <class T>
T await(const future<T>& answer, const std::string& what) {
  return value_of(answer.get(), what);
}

/// Runs `argv` in `box`; throws unless it exits 0.
void run_in(const sandbox& box, std::vector<std::string> argv);

class testbed;

/// Milliseconds from `create` until /bin/true has answered. The stop is waited for and not counted.
double create_and_exec(testbed& bed);

/// What every bench of sandboxes stands on: a runtime with a spawner and a data directory of its
/// own, in a place that goes away, and one environment.
class testbed {
public:
  explicit testbed(const bench_options& options);

  testbed(const testbed&) = delete;
  testbed& operator=(const testbed&) = delete;

  /// Stops every sandbox and the spawner.
  ~testbed();

  const bench::place& place() const {
    return place_;
  }

  /// The folders of the environment's layers, base first.
  std::vector<std::string> layers() const;

  const dsec::environment& environment() const {
    return environment_;
  }

  const std::filesystem::path& run_dir() const {
    return run_dir_;
  }

  const std::filesystem::path& data_dir() const {
    return data_dir_;
  }

  /// Starts the runtime, once. Until then no thread of it exists.
  dsec::job& job();

  dsec::runtime& runtime() {
    return *runtime_;
  }

  /// Sandboxes that the spawner prepares ahead.
  static constexpr unsigned warm = 32;

private:
  bench::place place_;
  std::filesystem::path data_dir_;
  std::filesystem::path run_dir_;
  dsec::environment environment_;
  std::unique_ptr<dsec::runtime> runtime_;
  std::optional<dsec::job> job_;
};

} // namespace dsec::bench
