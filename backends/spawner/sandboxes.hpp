#pragma once

#include "backends/spawner/connections.hpp"
#include "backends/spawner/journal.hpp"
#include "backends/spawner/machine.hpp"
#include "backends/spawner/network_pool.hpp"
#include "backends/spawner/poller.hpp"
#include "backends/spawner/slots.hpp"
#include "backends/spawner/sweeper.hpp"
#include "backends/spawner/wire.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace dsec::spawner {

/// Every sandbox of this spawner and what is happening to it:
///
///     queued -> building -> live -> killed -> swept (gone)
///                  `-----------------^
///
/// A few blank ones are built ahead, furnished for a create like the last one that succeeded; a
/// queued one takes over a fitting blank one's process and slot. A sandbox is killed because its
/// build failed, its dsec-init is gone, or somebody asked; it is swept when its last process has
/// gone, and its slot is free when all of it is removed.
class sandboxes {
public:
  /// Tells an asker that it is done (no error) or why not.
  using answer_function = std::function<void(asker, const error*)>;

  sandboxes(const machine& on, std::size_t blanks, poller& loop, network_pool& networks,
            sweeper& sweeper, journal& to, answer_function answer);

  /// Finds what an earlier spawner left: adopts what lives, kills and sweeps the rest.
  void adopt();

  void create(create_order order, asker from);

  /// Refused to a node of an earlier epoch than that of the one that has entered the sandbox.
  void destroy(const destroy_order& order, asker from);

  /// Builds blank ones up to their number, unless a create is under way or has just been, and
  /// there are enough for the next few: its first commands go first.
  void refill();

  /// Milliseconds until `refill` may have something to do again, or -1.
  int refill_ms() const;

  /// Removes the blank ones and builds no more.
  void retire();

  /// A sandbox's process has told something, or ended.
  void on_report(std::uint64_t serial);

  /// An adopted dsec-init has ended.
  void on_pidfd(std::uint64_t serial);

  /// The groups of a killed sandbox may be empty.
  void on_events(std::uint64_t serial);

  /// A child has been reaped. False if it is none of a sandbox.
  bool on_exit(pid_t pid);

  void on_swept(const swept& done);

  std::vector<live_entry> list() const;

  /// Sandboxes that somebody asked for.
  std::size_t count() const;

  /// Whether nothing is left that can still go.
  bool empty() const;

  std::uint32_t slots_used() const {
    return slots_.used();
  }

private:
  enum class phase { queued, blank, building, live, killed, sweeping, stuck };

  struct sandbox {
    std::uint64_t serial = 0;
    std::string id; ///< Or the slot's name, while it is blank.
    phase is = phase::queued;
    std::optional<create_order> order;
    std::optional<std::uint32_t> slot;
    pid_t pid = -1;
    bool is_child = false;                    ///< Ours to reap, and not yet reaped.
    bool prepared = false;                    ///< It has told that it waits for its request.
    std::shared_ptr<const create_order> fits; ///< What a blank one is furnished for. Null: all.
    descriptor socket;
    descriptor host_name; ///< Of a blank one that is prepared.
    descriptor pidfd;
    descriptor events;
    std::optional<error> failure; ///< What the creators are told when all is removed.
    std::vector<asker> creators;
    std::vector<asker> destroyers;
    /// A create that came while the former sandbox of this id was ending.
    std::optional<create_order> next;
    std::vector<asker> next_creators;
  };

  sandbox& insert(const std::string& id);
  sandbox* find(std::uint64_t serial);
  void start_queued();
  result<sandbox*> make_blank(std::shared_ptr<const create_order> likely);
  sandbox* pick_blank(const create_order& order);
  bool blanks_missing() const;
  bool quiet() const;
  void give(sandbox& blank, sandbox& to);
  void hand_over(sandbox& s);
  void read_report(sandbox& s);
  void adopt_one(const std::string& name, std::optional<std::uint32_t> slot);
  void kill(sandbox& s, std::optional<error> why);
  void sweep_when_empty(sandbox& s);
  void finish(sandbox& s, const std::string& why_not);
  void answer_all(std::vector<asker>& askers, const error* e);
  void remove_tombstone(const std::string& id) const;

  const machine& on_;
  poller& loop_;
  network_pool& networks_;
  sweeper& sweeper_;
  journal& log_;
  answer_function answer_;
  std::map<std::string, sandbox> by_id_;
  std::unordered_map<std::uint64_t, std::string> by_serial_;
  std::unordered_map<pid_t, std::uint64_t> by_pid_;
  std::deque<std::uint64_t> queue_;
  std::set<std::uint64_t> making_; ///< Blank ones that are not prepared yet.
  std::set<std::uint64_t> ready_;  ///< Blank ones that are.
  std::size_t blanks_wanted_;
  std::shared_ptr<const create_order> likely_; ///< The last create that succeeded.
  std::chrono::steady_clock::time_point created_at_;
  bool refilling_ = true; ///< Not after a blank one failed: the next create finds out why.
  std::size_t building_ = 0;
  std::size_t building_max_;
  slots slots_;
  std::uint64_t next_serial_ = 1;
};

} // namespace dsec::spawner
