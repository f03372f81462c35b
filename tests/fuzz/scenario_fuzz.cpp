// Scenario files, which people write: any bytes are a scenario within its limits, or a message that
// says what is wrong.

#include "actors/scenario.hpp"
#include "tests/fuzz/input.hpp"

#include <sys/mman.h>

#include <unistd.h>

using namespace dsec;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace std::chrono_literals;
  static const int file = ::memfd_create("scenario", MFD_CLOEXEC);
  fuzz::claim(::ftruncate(file, 0) == 0
                && ::pwrite(file, bytes, size, 0) == static_cast<ssize_t>(size),
              "write the file");
  const auto read = load_scenario("/proc/self/fd/" + std::to_string(file));
  if (!read) {
    fuzz::claim(read.error().code == errc::invalid_argument && !read.error().message.empty(),
                "a bad scenario is told", read.error().message);
    return 0;
  }
  constexpr auto longest = std::chrono::milliseconds{1'000'000s};
  fuzz::claim(read->nodes >= 1 && read->nodes <= 10'000, "nodes");
  fuzz::claim(read->limit >= 0ms && read->limit <= longest, "limit");
  for (const auto& job : read->jobs) {
    fuzz::claim(bool{validate(job.name)}, "a job's name", job.name.str());
    fuzz::claim(job.think_least >= 0ms && job.think_most >= job.think_least
                  && job.think_most <= longest,
                "think");
    fuzz::claim(job.act_least >= 0ms && job.act_most >= job.act_least && job.act_most <= longest,
                "act");
    for (const auto& x : job.preemptions)
      fuzz::claim(x.at >= 0ms && x.lasts >= 0ms && x.lasts <= longest, "preemption");
  }
  for (const auto& x : read->deaths)
    fuzz::claim(x.node < read->nodes && x.at >= 0ms, "death");
  return 0;
}
