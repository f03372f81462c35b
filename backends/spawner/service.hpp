#pragma once

#include "backends/spawner/connections.hpp"
#include "backends/spawner/journal.hpp"
#include "backends/spawner/machine.hpp"
#include "backends/spawner/network_pool.hpp"
#include "backends/spawner/poller.hpp"
#include "backends/spawner/sandboxes.hpp"
#include "backends/spawner/sweeper.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dsec::spawner {

/// The event loop of the spawner: accepts, forks, reaps, answers. One thread; nothing in it waits.
class service {
public:
  service(machine& on, const options& chosen, journal& to);

  /// Starts the workers, adopts what lives, begins to remove what is dead, and listens.
  result<void> start();

  /// Serves until a shutdown or the end of idleness has been carried out.
  result<void> run();

private:
  void handle(const event& e);
  void serve(std::uint64_t connection);
  void carry_out(const request& asked, asker from);
  void shut_down(asker from);
  void begin_end();
  result<void> end();
  void answer(asker to, std::string datagram);
  void restart_workers();
  void answer_warm();
  hello_facts facts() const;
  int idle_ms();

  machine& on_;
  const options& chosen_;
  journal& log_;
  poller loop_;
  connections clients_;
  network_pool networks_;
  sweeper sweeper_;
  sandboxes table_;
  descriptor signals_;
  std::vector<asker> warming_;
  std::chrono::steady_clock::time_point busy_at_;
  bool ending_ = false;
  bool asked_to_go_ = false;       ///< By SIGTERM or SIGINT.
  std::optional<asker> ended_for_; ///< Who asked for the shutdown.
};

/// The build id of this program.
std::string program_version();

} // namespace dsec::spawner
