// A trainer in the middle of its work, for a scenario that ends it: all its sandboxes run step
// after step, and between them commands that are not recorded. Says on standard output each event
// that it reads ("event CURSOR SANDBOX KIND STEP") and each step that was answered ("answer SANDBOX
// STEP").
#include "sdk/embed/runtime.hpp"
#include "state/format.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace dsec;

template <class T>
T expect(result<T> x) {
  if (x)
    return std::move(*x);
  fmt::print(stderr, "storm: {}\n", x.error().message);
  std::exit(3);
}

void say(const std::string& line) {
  static std::mutex one_at_a_time;
  std::scoped_lock lock{one_at_a_time};
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

/// Runs step `number` and, once it is answered, all that follow.
void run_from(const sandbox& in, std::uint64_t number) {
  exec_spec step{{"true"}};
  step.step = number;
  in.exec(step).then([=](const result<exec_result>& x) {
    if (!x)
      return;
    say(fmt::format("answer {} {}", in.id(), number));
    in.exec(exec_spec{{"true"}}).then([=](const result<exec_result>&) {
      run_from(in, number + 1);
    });
  });
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "storm STATE DATA RUN LAYER COUNT\n");
    return 2;
  }
  runtime_options options;
  options.data_dir = argv[2];
  options.run_dir = argv[3];
  options.workers = 2;
  options.warm = 0;
  auto at = expect(runtime::open(argv[1], options));
  auto job = expect(at->open_job("storm", {{std::chrono::milliseconds{0}, {}}}).get());
  auto reading = job.follow(1, [](const job_event& x) {
    say(fmt::format("event {} {} {} {}", x.cursor, x.sandbox, x.kind,
                    x.step ? std::to_string(*x.step) : "-"));
  });
  std::vector<create_options> wanted(std::strtoul(argv[5], nullptr, 10));
  for (auto& one : wanted) {
    one.environment.layers = {layer_digest{argv[4]}};
    one.environment.limits.memory_bytes = 64 << 20;
    one.environment.limits.disk_bytes = 64 << 20;
  }
  for (const auto& each : job.create_batch(std::move(wanted)))
    run_from(expect(each.get()), 1);
  ::pause();
}
