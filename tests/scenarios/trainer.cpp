// A trainer for the scenarios that end one: says on standard output how far it is, one line a
// time.
#include "sdk/embed/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

using namespace dsec;

constexpr auto usage = "scenario_trainer STATE DATA RUN LAYER[,LAYER] "
                       "write|copy|hold|succeed|fail|rival [COUNT PAUSE_MS "
                       "STOP_MS]\n";

template <class T>
T expect(result<T> x) {
  if (x)
    return std::move(*x);
  fmt::print(stderr, "trainer: {}\n", x.error().message);
  std::exit(3);
}

void expect(const result<void>& x) {
  if (x)
    return;
  fmt::print(stderr, "trainer: {}\n", x.error().message);
  std::exit(3);
}

void say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

struct orders {
  std::string mode;
  environment from;
  std::size_t count = 1;
  job_options terms{{std::chrono::milliseconds{0}, std::chrono::milliseconds{0}}};
};

/// Sandboxes of keys k0, k1, ...; says the id of each.
std::vector<sandbox> create(const job& in, const orders& asked) {
  std::vector<create_options> wanted;
  for (std::size_t i = 0; i < asked.count; ++i) {
    create_options one;
    one.environment = asked.from;
    one.idempotency_key = fmt::format("k{}", i);
    wanted.push_back(std::move(one));
  }
  std::vector<sandbox> made;
  for (const auto& each : in.create_batch(std::move(wanted)))
    made.push_back(expect(each.get()));
  for (const auto& each : made)
    say(each.id().str());
  return made;
}

/// Leaves the same bytes in two files, by a command and as an upload, and syncs nothing.
void write(const sandbox& to) {
  auto made = expect(
    to.exec(exec_spec::shell("dd if=/dev/urandom of=/room/by-command bs=1M count=4 2>/dev/null"))
      .get());
  if (!made.ok())
    std::exit(4);
  expect(to.write("/room/by-upload", expect(to.read("/room/by-command").get())).get());
  say("written");
}

/// An archive whose owner is asked for it and does not answer.
struct silent_archive final : input_source {
  std::function<void(std::string)> asked;
  std::promise<void> was_asked;

  void read(std::function<void(std::string)> next) override {
    asked = std::move(next);
    was_asked.set_value();
  }
};

/// Replaces a file for ever, with a tree half moved.
void copy(const sandbox& to) {
  expect(to.write("/room/replaced", std::string(4 << 20, 'a')).get());
  auto archive = std::make_shared<silent_archive>();
  auto up = to.unpack("/room/up", archive);
  archive->was_asked.get_future().wait();
  say("copying");
  for (bool odd = true;; odd = !odd)
    expect(to.write("/room/replaced", std::string(4 << 20, odd ? 'b' : 'a')).get());
}

/// What another owner of the same sandbox does, late: told by SIGUSR1, which waits while this
/// process is stopped.
void rival(const sandbox& with) {
  sigset_t told;
  sigemptyset(&told);
  sigaddset(&told, SIGUSR1);
  say("ready");
  int number = 0;
  ::sigwait(&told, &number);
  auto ran = with.exec(exec_spec::shell("echo rival >> /room/log")).get();
  say(ran && ran->ok() ? "ran" : "did not run");
  auto stopped = with.stop().get();
  say(stopped ? "stopped" : "refused: " + stopped.error().message);
}

int run(runtime& at, const orders& asked) {
  auto job = expect(at.open_job("rollout", asked.terms).get());
  auto made = create(job, asked);
  if (asked.mode == "succeed") {
    for (const auto& each : made)
      if (!expect(each.exec(exec_spec{{"true"}}).get()).ok())
        return 4;
    expect(job.close().get());
    return 0;
  }
  if (asked.mode == "fail") {
    auto last = expect(made.back().exec(exec_spec{{"false"}}).get());
    return last.ok() ? 0 : 5; // As a trainer that throws: nothing is closed.
  }
  if (asked.mode == "write")
    write(made.front());
  else if (asked.mode == "copy")
    copy(made.front());
  else if (asked.mode == "rival")
    rival(made.front());
  else
    say("ready");
  ::pause();
  return 0;
}

std::vector<layer_digest> layers_of(std::string_view text) {
  std::vector<layer_digest> all;
  for (std::size_t at = 0; at <= text.size();) {
    auto end = std::min(text.find(',', at), text.size());
    all.emplace_back(std::string{text.substr(at, end - at)});
    at = end + 1;
  }
  return all;
}

long number(std::string_view text) {
  long x = 0;
  std::from_chars(text.data(), text.data() + text.size(), x);
  return x;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 6 && argc != 9) {
    fmt::print(stderr, usage);
    return 2;
  }
  // Before any thread is there, so that none of them takes it.
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &held, nullptr);

  orders asked;
  asked.mode = argv[5];
  asked.from.layers = layers_of(argv[4]);
  asked.from.limits.memory_bytes = 64 << 20;
  asked.from.limits.disk_bytes = 64 << 20;
  if (argc == 9) {
    asked.count = static_cast<std::size_t>(number(argv[6]));
    asked.terms.lease.pause_after = std::chrono::milliseconds{number(argv[7])};
    asked.terms.lease.stop_after = std::chrono::milliseconds{number(argv[8])};
  }
  runtime_options options;
  options.data_dir = argv[2];
  options.run_dir = argv[3];
  options.workers = 2;
  options.warm = 0;
  auto at = expect(runtime::open(argv[1], options));
  return run(*at, asked);
}
