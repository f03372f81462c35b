#include "bench/soak/verbs.hpp"

#include "bench/soak/judge.hpp"
#include "state/format.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <csignal>

namespace dsec::bench {

namespace {

using random_source = std::mt19937_64;

complaint not_as(const std::string& what, const result<exec_result>& got) {
  if (!got)
    return fmt::format("{}: {} ({})", what, got.error().message, got.error().code);
  return fmt::format("{}: {} {} {} after {} ms, {} bytes", what, got->outcome.kind,
                     got->outcome.code, got->outcome.cause, got->duration.count(), got->out_bytes);
}

complaint expect(const std::string& what, const result<exec_result>& got, outcome_kind kind,
                 std::int32_t code) {
  if (got && got->outcome.kind == kind && got->outcome.code == code)
    return std::nullopt;
  return not_as(what, got);
}

template <class T>
complaint expect_done(const std::string& what, const result<T>& got) {
  if (got)
    return std::nullopt;
  return fmt::format("{}: {} ({})", what, got.error().message, got.error().code);
}

complaint record_step(soak_box& at, random_source&, told& to) {
  const auto number = at.next_step++;
  auto got = at.box.exec(ledger_step(number)).get();
  if (auto bad = expect(fmt::format("step {}", number), got, outcome_kind::exited, 0))
    return bad;
  to.acked(at.box.id().str(), number);
  return std::nullopt;
}

complaint repeat_step(soak_box& at, random_source& random, told&) {
  if (at.next_step == 1)
    return std::nullopt;
  const auto number = 1 + random() % (at.next_step - 1);
  auto got = at.box.exec(ledger_step(number)).get();
  if (got && got->replayed)
    return std::nullopt;
  return not_as(fmt::format("step {} again", number), got);
}

complaint exit_code(soak_box& at, random_source& random, told&) {
  const auto code = static_cast<int>(random() % 256);
  auto got = at.box.exec(exec_spec::shell(fmt::format("exit {}", code))).get();
  return expect("exit", got, outcome_kind::exited, code);
}

complaint killed(soak_box& at, random_source&, told&) {
  auto got = at.box.exec(exec_spec::shell("kill -9 $$")).get();
  return expect("kill -9", got, outcome_kind::signalled, SIGKILL);
}

complaint overdue(soak_box& at, random_source&, told&) {
  auto spec = exec_spec::shell("sleep 100 & sleep 100");
  spec.deadline = std::chrono::milliseconds{100};
  auto got = at.box.exec(std::move(spec)).get();
  if (got && got->outcome.kind == outcome_kind::timed_out)
    return std::nullopt;
  return not_as("deadline", got);
}

complaint much_output(soak_box& at, random_source&, told&) {
  constexpr std::uint64_t bytes = 300'000;
  auto got = at.box.exec(exec_spec::shell(fmt::format("head -c {} /dev/zero", bytes))).get();
  if (got && got->ok() && got->out.size() == bytes && got->out_bytes == bytes)
    return std::nullopt;
  return not_as("output", got);
}

complaint file_round_trip(soak_box& at, random_source& random, told&) {
  const std::string bytes(random() % 200'000, static_cast<char>('a' + random() % 26));
  if (auto bad = expect_done("write", at.box.write("/tmp/soak/file", bytes).get()))
    return bad;
  auto got = at.box.read("/tmp/soak/file").get();
  if (auto bad = expect_done("read", got))
    return bad;
  if (*got != bytes)
    return fmt::format("read: {} bytes that are not the {} written", got->size(), bytes.size());
  return std::nullopt;
}

complaint rest(soak_box& at, random_source& random, told&) {
  auto paused = at.box.pause(random() % 2 == 0).get();
  // The whole job may be resumed meanwhile, which overtakes it.
  const bool overtaken = !paused && paused.error().code == errc::invalid_state;
  if (auto bad = expect_done("pause", paused); bad && !overtaken)
    return bad;
  auto got = at.box.exec(exec_spec::shell("exit 3")).get();
  return expect("exec after a pause", got, outcome_kind::exited, 3);
}

complaint counters(soak_box& at, random_source&, told&) {
  auto got = at.box.stats().get();
  return expect_done("stats", got);
}

complaint background(soak_box& at, random_source&, told&) {
  process_spec spec;
  spec.command = exec_spec::shell("echo begun; sleep 1000 & read line; exit 4");
  spec.open_input = true;
  auto made = at.box.spawn(std::move(spec)).get();
  if (auto bad = expect_done("spawn", made))
    return bad;
  if (auto bad = expect_done("input", made->write("line\n").get()))
    return bad;
  if (auto bad = expect("process", made->wait().get(), outcome_kind::exited, 4))
    return bad;
  return expect_done("remove", made->remove().get());
}

} // namespace

complaint use(soak_box& at, random_source& random, told& to) {
  using verb = complaint (*)(soak_box&, random_source&, told&);
  constexpr std::array<verb, 13> verbs{record_step, record_step, record_step,     repeat_step,
                                       exit_code,   exit_code,   killed,          overdue,
                                       much_output, background,  file_round_trip, rest,
                                       counters};
  return verbs[random() % verbs.size()](at, random, to);
}

} // namespace dsec::bench
