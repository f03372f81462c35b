#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dsec::spawner {

/// <run>/spawner.log: one line per decision. When it has grown to its bound it becomes
/// spawner.log.1 and a new one begins, so that both together never hold more than twice the bound.
class journal {
public:
  /// With `foreground`, lines go to standard error instead.
  journal(std::string path, bool foreground);

  /// "<time> <event> <text>"; event is `<noun>.<what happened>`.
  void line(std::string_view event, std::string_view text);

private:
  static constexpr std::uint64_t bytes_max = 4 << 20;

  std::string path_;
  bool foreground_;
};

} // namespace dsec::spawner
