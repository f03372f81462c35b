#pragma once

#include "backends/backend.hpp"
#include "backends/tree/archive_io.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace dsec {

/// An archive from a thread that blocks to one that must not. Holds a few pieces.
class upward_channel final : public input_source, public archive_target {
public:
  void read(std::function<void(std::string)> next) override;

  /// Blocks while it is full; unavailable once nobody reads any more.
  result<void> write(std::string_view bytes) override;

  void end();
  /// There will be no whole archive: the reader's question is dropped.
  void abandon();
  /// Nobody reads any more.
  void leave();

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> pieces_;
  std::function<void(std::string)> next_;
  bool ended_ = false;
  bool abandoned_ = false;
  bool left_ = false;
};

/// The other way.
class downward_channel final : public archive_sink, public archive_source {
public:
  void write(std::string bytes, std::function<void()> ready) override;

  /// Blocks until a piece has come; the error it failed with.
  result<std::string_view> read() override;

  void end();
  void fail(error cause);
  /// Nobody reads any more: the writer's question is dropped.
  void abandon();

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> pieces_;
  std::function<void()> ready_;
  std::string taken_;
  bool ended_ = false;
  bool abandoned_ = false;
  std::optional<error> failed_;
};

} // namespace dsec
