#pragma once

#include "bench/waits.hpp"
#include "tests/scenarios/sizes.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace dsec::test {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// A runtime of its own for one test.
struct exec_rig {
  playground& at = machine();
  std::filesystem::path state = at.new_state();
  std::unique_ptr<runtime> rt = at.open(state);

  sandbox create() const {
    return create(at.environment());
  }

  sandbox create(const dsec::environment& from) const {
    return playground::one_sandbox(*rt, from);
  }
};

inline std::chrono::milliseconds since(steady::time_point then) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - then);
}

/// A command that is recorded.
inline exec_spec step(std::uint64_t number, exec_spec spec) {
  spec.step = number;
  return spec;
}

/// Notes what a command writes, and when, and takes it at once.
class listener : public output_sink {
public:
  void write(stream which, std::string bytes, std::function<void()> ready) override {
    {
      std::scoped_lock lock{mutex_};
      (which == stream::out ? out_ : err_) += bytes;
      times_.push_back(steady::now());
      more_.notify_all();
    }
    ready();
  }

  /// Until standard output holds `text`, at most 20 s.
  bool hears(const std::string& text) {
    std::unique_lock lock{mutex_};
    return more_.wait_for(lock, 20s, [&] { return out_.find(text) != std::string::npos; });
  }

  std::string out() const {
    std::scoped_lock lock{mutex_};
    return out_;
  }

  std::string err() const {
    std::scoped_lock lock{mutex_};
    return err_;
  }

  std::vector<steady::time_point> times() const {
    std::scoped_lock lock{mutex_};
    return times_;
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable more_;
  std::string out_, err_;
  std::vector<steady::time_point> times_;
};

/// Processes of that name inside.
inline int count_of(const sandbox& box, const std::string& name) {
  auto x = value(box.exec(exec_spec{
    {"/bin/sh", "-c",
     "n=0; for f in /proc/[0-9]*/comm; do read -r c < $f && [ \"$c\" = $0 ] && n=$((n+1)); done "
     "2>/dev/null; echo $n",
     name}}));
  return std::stoi(x.out);
}

/// Processes of a sandbox go without telling anybody: it is asked.
inline bool comes_to(const sandbox& box, const std::string& name, int count,
                     std::chrono::milliseconds patience) {
  return bench::ask_until(bench::within(patience), 10ms,
                          [&] { return count_of(box, name) == count; });
}

/// Until none of its processes is left, zombies included.
inline bool falls_silent(const sandbox& box, std::chrono::milliseconds patience) {
  return bench::ask_until(bench::within(patience), 10ms,
                          [&] { return value(box.stats()).processes == 0; });
}

/// Bytes without a pattern that a wrong offset would keep.
inline std::string many_bytes(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint64_t x = 88172645463325252ull;
  for (auto& byte : bytes) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    byte = static_cast<char>(x >> 32);
  }
  return bytes;
}

} // namespace dsec::test
