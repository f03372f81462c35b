#pragma once

#include "state/error.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dsec::demo {

/// The trainer's own notes, one JSON object a line, written so that they outlive kill -9. What it
/// says was acknowledged is what dsec must not lose. Events: started, sent, acked, preempted,
/// rollout, seen, finished.
class ledger {
public:
  /// Opens for appending; a half-written last line of a killed process is cut off.
  static result<ledger> open(const std::filesystem::path& file);

  ledger(ledger&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}

  ledger& operator=(ledger&&) = delete;

  ~ledger();

  /// Durable when it returns, if `durable`. Ends the program when the file cannot be written.
  void append(const nlohmann::json& event, bool durable = true);

private:
  explicit ledger(int fd) : fd_{fd} {}

  int fd_ = -1;
};

/// What a ledger says, in order. An unreadable last line is ignored.
std::vector<nlohmann::json> read_ledger(const std::filesystem::path& file);

/// The same, of what was read from it already.
std::vector<nlohmann::json> parse_ledger(const std::string& text);

/// (sandbox name, step).
using step_key = std::pair<std::string, std::uint64_t>;

/// Of a sent or acked step.
step_key key_of(const nlohmann::json& event);

/// The ledger of all runs of one job, added up.
struct ledger_sums {
  std::uint64_t runs = 0;
  bool preempted = false;
  std::map<step_key, std::string> acked; ///< To what was answered, in short.
  std::map<step_key, std::uint64_t> sent;
  /// What each sandbox's own file of steps holds, as read at the end: step -> how often.
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> seen;
};

ledger_sums add_up(const std::vector<nlohmann::json>& events);

/// Judged by what the steps themselves wrote inside the sandboxes.
struct step_verdict {
  std::uint64_t checked = 0;    ///< Acknowledged steps of sandboxes whose file could be read.
  std::uint64_t unreadable = 0; ///< Acknowledged steps of sandboxes that are gone.
  std::vector<std::string> lost;
  std::vector<std::string> duplicated;
  std::vector<std::string> changed; ///< Answered differently the second time.
};

step_verdict judge(const std::vector<nlohmann::json>& events);

} // namespace dsec::demo
