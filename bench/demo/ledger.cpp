#include "bench/demo/ledger.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unistd.h>

namespace dsec::demo {

namespace {

using json = nlohmann::json;

/// Outcomes of commands that may never have started, so that they left no line of their own.
bool may_not_have_started(const std::string& outcome) {
  return outcome == "pids_limit" || outcome == "infrastructure" || outcome == "sandbox_stopped"
         || outcome == "cancelled" || outcome == "node_lost";
}

} // namespace

result<ledger> ledger::open(const std::filesystem::path& file) {
  int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0)
    return errno_error(errno, "opening the ledger " + file.string());
  std::ifstream in{file, std::ios::binary};
  std::ostringstream text;
  text << in.rdbuf();
  auto whole = text.str().rfind('\n');
  auto keep = whole == std::string::npos ? 0 : whole + 1;
  if (::ftruncate(fd, static_cast<off_t>(keep)) != 0) {
    auto cause = errno_error(errno, "cutting the ledger " + file.string());
    ::close(fd);
    return cause;
  }
  return ledger{fd};
}

ledger::~ledger() {
  if (fd_ >= 0)
    ::close(fd_);
}

void ledger::append(const json& event, bool durable) {
  auto line = event.dump() + "\n";
  auto written = ::write(fd_, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size()) || (durable && ::fdatasync(fd_) != 0)) {
    std::perror("dsec-demo: writing the ledger");
    std::abort();
  }
}

std::vector<json> read_ledger(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return parse_ledger({std::istreambuf_iterator<char>{in}, {}});
}

std::vector<json> parse_ledger(const std::string& text) {
  std::vector<json> events;
  std::istringstream in{text};
  for (std::string line; std::getline(in, line);) {
    auto event = json::parse(line, nullptr, false);
    if (event.is_object())
      events.push_back(std::move(event));
  }
  return events;
}

step_key key_of(const json& event) {
  return {event.at("sandbox"), event.at("step")};
}

ledger_sums add_up(const std::vector<json>& events) {
  ledger_sums sums;
  for (const auto& event : events) {
    auto kind = event.value("event", "");
    if (kind == "started") {
      ++sums.runs;
    } else if (kind == "preempted") {
      sums.preempted = true;
    } else if (kind == "sent") {
      ++sums.sent[key_of(event)];
    } else if (kind == "acked") {
      sums.acked[key_of(event)] = event.at("answer");
    } else if (kind == "seen") {
      auto& counts = sums.seen[event.at("sandbox")];
      counts.clear();
      for (std::uint64_t step : event.at("steps"))
        ++counts[step];
    }
  }
  return sums;
}

step_verdict judge(const std::vector<json>& events) {
  auto sums = add_up(events);
  step_verdict verdict;
  std::map<step_key, std::string> first;
  for (const auto& event : events) {
    if (event.value("event", "") != "acked")
      continue;
    auto [known, added] = first.emplace(key_of(event), event.at("answer"));
    if (!added && known->second != event.at("answer"))
      verdict.changed.push_back(fmt::format("{} step {}: first {}, then {}", known->first.first,
                                            known->first.second, known->second,
                                            event.at("answer").get<std::string>()));
  }
  for (const auto& [key, answer] : first) {
    auto sandbox = sums.seen.find(key.first);
    if (sandbox == sums.seen.end()) {
      ++verdict.unreadable;
      continue;
    }
    ++verdict.checked;
    auto outcome = answer.substr(0, answer.find(' '));
    if (!sandbox->second.contains(key.second) && !may_not_have_started(outcome))
      verdict.lost.push_back(fmt::format("{} step {} ({})", key.first, key.second, answer));
  }
  for (const auto& [sandbox, counts] : sums.seen)
    for (const auto& [step, count] : counts)
      if (count > 1)
        verdict.duplicated.push_back(fmt::format("{} step {}: {} times", sandbox, step, count));
  return verdict;
}

} // namespace dsec::demo
