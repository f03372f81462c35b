#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace dsec {

/// Threads for what blocks on this process's own files: at most eight at once, made when there is
/// work and gone when there is none. Any thread.
class tree_workers {
public:
  /// `closed`: it will not be done. Must not block for longer than what it waits for is owed.
  using work = std::function<void(bool closed)>;

  void run(work x);

  /// What waits is told, what runs is waited for. Nothing is done from now on.
  void close();

private:
  void serve();

  std::mutex mutex_;
  std::condition_variable ended_;
  std::deque<work> waiting_;
  unsigned threads_ = 0;
  bool closed_ = false;
};

} // namespace dsec
