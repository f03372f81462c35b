#include "bench/report.hpp"

#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <unistd.h>

namespace dsec::bench {

namespace {

nlohmann::json machine() {
  utsname name{};
  ::uname(&name);
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  double load = 0;
  std::ifstream{"/proc/loadavg"} >> load;
  return {{"kernel", name.release},
          {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
          {"memory_mb", pages * page_bytes >> 20},
          {"load_1min", load}};
}

double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

} // namespace

double stopwatch::ms() const {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started_)
    .count();
}

void series::add(double value) {
  values_.push_back(value);
}

double series::percentile(double rank) const {
  if (values_.empty())
    return std::numeric_limits<double>::quiet_NaN();
  auto sorted = values_;
  const auto last = static_cast<double>(sorted.size() - 1);
  const auto at = static_cast<std::ptrdiff_t>(std::lround(rank / 100 * last));
  std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
  return sorted[static_cast<std::size_t>(at)];
}

void paired_series::add(double first, double second) {
  first_.add(first);
  second_.add(second);
  ratios_.add(first / second);
}

report::report(std::string bench) : bench_{std::move(bench)} {}

void report::metric(const std::string& key, double value) {
  if (std::isfinite(value))
    metrics_[key] = rounded(value);
  else
    note(key, "not measured");
}

void report::note(const std::string& key, std::string text) {
  notes_[key] = std::move(text);
}

void report::missing_peer(const std::string& peer, std::string reason) {
  metric("peer_" + peer + "_missing", 1);
  note("peer_" + peer + "_missing", std::move(reason));
}

void report::print() const {
  const nlohmann::json all{
    {"bench", bench_}, {"machine", machine()}, {"metrics", metrics_}, {"notes", notes_}};
  std::printf("%s\n", all.dump().c_str());
  std::fflush(stdout);
}

void progress(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

} // namespace dsec::bench
