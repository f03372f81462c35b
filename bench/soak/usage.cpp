#include "bench/soak/usage.hpp"

#include "bench/report.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace dsec::bench {

namespace {

constexpr std::size_t samples_min = 6;

double growth_pct(const std::vector<process_usage>& samples, double process_usage::*what) {
  if (samples.size() < samples_min)
    return 0;
  series first, last;
  const auto third = samples.size() / 3;
  for (std::size_t i = 0; i < third; ++i) {
    first.add(samples[i].*what);
    last.add(samples[samples.size() - 1 - i].*what);
  }
  return first.median() > 0 ? (last.median() / first.median() - 1) * 100 : 0;
}

} // namespace

process_usage usage_of(pid_t pid) {
  process_usage x;
  const auto process = fmt::format("/proc/{}", pid);
  std::ifstream status{process + "/status"};
  for (std::string word; status >> word;) {
    if (word == "VmRSS:")
      status >> x.rss_kb;
    else if (word == "Threads:")
      status >> x.threads;
  }
  std::error_code gone;
  for (std::filesystem::directory_iterator at{process + "/fd", gone}, end; !gone && at != end;
       at.increment(gone))
    ++x.descriptors;
  return x;
}

process_usage mean_usage(const std::vector<pid_t>& pids) {
  process_usage sum;
  double counted = 0;
  for (auto pid : pids) {
    const auto x = usage_of(pid);
    if (x.threads == 0)
      continue;
    sum.rss_kb += x.rss_kb;
    sum.descriptors += x.descriptors;
    sum.threads += x.threads;
    ++counted;
  }
  if (counted > 0) {
    sum.rss_kb /= counted;
    sum.descriptors /= counted;
    sum.threads /= counted;
  }
  return sum;
}

void usage_history::add(const process_usage& x) {
  if (x.threads > 0)
    samples_.push_back(x);
}

double usage_history::rss_growth_pct() const {
  return growth_pct(samples_, &process_usage::rss_kb);
}

double usage_history::descriptors_growth_pct() const {
  return growth_pct(samples_, &process_usage::descriptors);
}

double usage_history::threads_growth_pct() const {
  return growth_pct(samples_, &process_usage::threads);
}

process_usage usage_history::last() const {
  return samples_.empty() ? process_usage{} : samples_.back();
}

} // namespace dsec::bench
