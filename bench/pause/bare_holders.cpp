#include "bench/pause/bare_holders.hpp"

#include "bench/place.hpp"
#include "bench/report.hpp"
#include "bench/spawn.hpp"

#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace dsec::bench {

bare_holders::bare_holders(unsigned count, unsigned megabytes, const std::filesystem::path& folder)
  : program_{sibling_program("dsec-bench-hold")},
    parent_{"dsec-bench-hold-" + std::to_string(::getpid())} {
  memory_group{parent_}.make();
  for (unsigned i = 0; i < count; ++i) {
    auto& held =
      holders_.emplace_back(holder{memory_group{parent_ + "/" + std::to_string(i)}, -1,
                                   (folder / ("holder-" + std::to_string(i) + ".sock")).string()});
    held.group.make();
    held.pid = start_program({held.group.joined(
      {program_, "hold", held.socket, std::to_string(megabytes), std::to_string(i + 1)})});
  }
  for (const auto& held : holders_) {
    go_on();
    run_program({program_, "verify", held.socket});
  }
}

bare_holders::~bare_holders() {
  for (const auto& held : holders_) {
    if (held.pid > 0) {
      ::kill(held.pid, SIGKILL);
      ::waitpid(held.pid, nullptr, 0);
    }
    held.group.remove();
  }
  memory_group{parent_}.remove();
}

bare_holders::measured bare_holders::page_out() const {
  measured found;
  found.before_bytes = resident_bytes();
  const stopwatch freezing;
  for (const auto& held : holders_)
    held.group.begin_freeze();
  for (const auto& held : holders_)
    held.group.await_frozen();
  found.freeze_ms = freezing.ms();

  const stopwatch paging;
  std::atomic<std::size_t> next{0};
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      workers.emplace_back([&] {
        for (std::size_t at; (at = next.fetch_add(1)) < holders_.size();)
          holders_[at].group.page_out();
      });
  }
  found.page_out_ms = paging.ms();
  found.after_bytes = resident_bytes();
  return found;
}

void bare_holders::thaw_and_verify() const {
  for (const auto& held : holders_)
    held.group.thaw();
  for (const auto& held : holders_) {
    go_on();
    run_program({program_, "verify", held.socket});
  }
}

std::uint64_t bare_holders::resident_bytes() const {
  std::uint64_t total = 0;
  for (const auto& held : holders_)
    total += held.group.resident_bytes();
  return total;
}

} // namespace dsec::bench
