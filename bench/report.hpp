#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dsec::bench {

/// Time since its construction, on the monotonic clock.
class stopwatch {
public:
  double ms() const;

private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

/// Measurements of one thing. Percentiles are taken by nearest rank; an empty series answers NaN.
class series {
public:
  void add(double value);

  double percentile(double rank) const; ///< 0 to 100.

  double median() const {
    return percentile(50);
  }

  double max() const {
    return percentile(100);
  }

  std::size_t size() const {
    return values_.size();
  }

private:
  std::vector<double> values_;
};

/// Two things measured turn by turn, so that a noisy machine disturbs both alike.
class paired_series {
public:
  void add(double first, double second);

  /// Median of first / second, formed pair by pair.
  double ratio() const {
    return ratios_.median();
  }

  const series& first() const {
    return first_;
  }

  const series& second() const {
    return second_;
  }

private:
  series first_;
  series second_;
  series ratios_;
};

/// What one bench found: one JSON object with the machine, the metrics and notes.
class report {
public:
  explicit report(std::string bench);

  /// A value that is not a finite number stays out of the metrics and becomes a note.
  void metric(const std::string& key, double value);

  void note(const std::string& key, std::string text);

  /// peer_PEER_missing: 1, with the reason as a note.
  void missing_peer(const std::string& peer, std::string reason);

  /// To standard output, as its last line.
  void print() const;

private:
  std::string bench_;
  std::map<std::string, double> metrics_;
  std::map<std::string, std::string> notes_;
};

/// One line on standard error.
void progress(const std::string& line);

} // namespace dsec::bench
