#pragma once

#include "actors/errors.hpp"
#include "actors/plane.hpp"
#include "actors/simulation.hpp"
#include "backends/sim/sim_backend.hpp"
#include "backends/sim/sim_time.hpp"
#include "state/store.hpp"

#include <boost/test/unit_test.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsec::test {

/// The answer to a request, once there is one.
template <class T>
using answer = std::shared_ptr<std::optional<result<T>>>;

/// Runs inside the fixture's own actor.
using asker_call = std::function<void(caf::event_based_actor*)>;

/// One life of a process: gateway and node actors on a simulated machine, on the test's own thread.
/// Time is `time`, and whose turn it is among several is drawn from the seed.
class process {
public:
  /// Recovers from `durable`.
  process(sim_time& time, sim_world& machine, store& durable, std::uint64_t seed,
          plane_options options = {});

  /// A crash: what is not durable is lost, the machine goes on.
  ~process();

  /// Delivers messages until none is left; the clock stands.
  void settle() {
    run_.settle();
  }

  /// Delivers at most `messages`.
  void step(std::size_t messages) {
    run_.step(messages);
  }

  /// Delivers everything that is due up to `by` from now.
  void advance(std::chrono::nanoseconds by) {
    run_.advance(by);
  }

  /// Moves the clock to the next thing that is due; what it set off is not delivered yet.
  void tick() {
    run_.tick();
  }

  /// Sends a request; the answer comes while messages are delivered.
  template <class T, class Handle, class Message>
  answer<T> send(const Handle& receiver, Message message) {
    auto kept = std::make_shared<std::optional<result<T>>>();
    call([=](caf::event_based_actor* self) {
      self->request(receiver, caf::infinite, message)
        .then([kept](const T& x) { *kept = x; },
              [kept](caf::error& cause) { *kept = from_caf(cause, "the actor"); });
    });
    return kept;
  }

  /// Sends what is not answered.
  template <class Handle, class Message>
  void tell(const Handle& receiver, Message message) {
    caf::anon_send(receiver, std::move(message));
  }

  /// Sends a request and lets time pass until it is answered, at most ten minutes.
  template <class T, class Handle, class Message>
  result<T> ask(const Handle& receiver, Message message) {
    return wait(send<T>(receiver, std::move(message)));
  }

  template <class T>
  result<T> wait(const answer<T>& x) {
    for (int i = 0; i < 60'000 && !*x; ++i)
      advance(std::chrono::milliseconds{10});
    BOOST_REQUIRE_MESSAGE(*x, "no answer arrived");
    return **x;
  }

  const plane& actors() const {
    return plane_;
  }

private:
  void call(asker_call x);

  sim_backend kernel_;
  simulation run_;
  caf::actor asker_;
  plane plane_;
};

/// A machine and a state directory that live through crashes of the process.
struct machine_fixture {
  explicit machine_fixture(std::uint64_t seed_of_all = 1, sim_costs costs = {});

  /// Starts the process, or starts it again after a crash.
  void start();

  /// kill -9.
  void crash();

  /// A crash, and the machine loses power.
  void reboot();

  job_actor open(const std::string& name, lease_terms lease = {});

  /// One sandbox, running.
  sandbox_id create(const job_actor& job, std::string key = {});

  sandbox_actor find(const sandbox_id& id);

  sandbox_info info(const sandbox_id& id);

  /// That store, whose commits `changed` is told of.
  std::unique_ptr<store> telling(std::unique_ptr<store> inner);

  std::uint64_t seed = 1;
  sim_time time;
  sim_world machine;
  std::unique_ptr<store> durable = telling(make_memory_store());
  plane_options options;
  /// Told of every record of a sandbox once it is durable.
  std::function<void(const sandbox_record&)> changed = [](const sandbox_record&) {
  };
  std::uint64_t lives = 0;
  std::unique_ptr<process> now;
};

/// What a sandbox in tests starts from.
environment small_environment();

exec_message command(std::vector<std::string> argv, std::optional<std::uint64_t> step = {},
                     std::uint64_t ticket = 0);

} // namespace dsec::test
