// A trainer for the crash tests: says on standard output how far it is, one line a time, until it
// is killed.
#include "sdk/embed/runtime.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

template <class T>
T expect(dsec::result<T> x) {
  if (x)
    return std::move(*x);
  fmt::print(stderr, "trainer: {}\n", x.error().message);
  std::exit(3);
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

dsec::exec_spec step(std::uint64_t number, std::string script) {
  auto spec = dsec::exec_spec::shell(std::move(script));
  spec.step = number;
  return spec;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "trainer STATE DATA RUN LAYER steps|lease|create\n");
    return 2;
  }
  dsec::runtime_options options;
  options.data_dir = argv[2];
  options.run_dir = argv[3];
  options.warm = 0;
  auto runtime = expect(dsec::runtime::open(argv[1], options));
  std::string_view mode = argv[5];
  dsec::job_options terms;
  using ms = std::chrono::milliseconds;
  terms.lease =
    mode == "lease" ? dsec::lease_terms{ms{1000}, ms{2500}} : dsec::lease_terms{ms{0}, ms{0}};
  auto job = expect(runtime->open_job("rollout", terms).get());
  dsec::create_options wanted;
  wanted.environment.layers = {dsec::layer_digest{argv[4]}};
  wanted.idempotency_key = "first";
  auto sandbox = expect(job.create(wanted).get());
  say(sandbox.id().str());
  if (mode == "steps") {
    for (std::uint64_t i = 1; i <= 3; ++i)
      say(fmt::format(
        "step {} {}", i,
        expect(sandbox.exec(step(i, fmt::format("echo {} >> /room/log; echo out{}", i, i))).get())
          .outcome.code));
    // Opening a FIFO waits for the other side: no one asks twice how far the step is.
    expect(sandbox.exec(dsec::exec_spec{{"mkfifo", "/room/begun", "/room/go"}}).get());
    auto flying = sandbox.exec(
      step(4, "echo 4 >> /room/log; echo > /room/begun; read word < /room/go; echo landed"));
    expect(sandbox.exec(dsec::exec_spec::shell("read word < /room/begun")).get());
    say("in flight");
  }
  if (mode == "create")
    return 0;
  ::pause();
}
