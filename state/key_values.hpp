#pragma once

#include "state/error.hpp"
#include "state/keys.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dsec {

struct key_write {
  enum class kind : std::uint8_t {
    put,
    erase,
    erase_range, ///< From `key`, included, to `value`, excluded.
  };

  kind what = kind::put;
  dsec::family family = dsec::family::meta;
  std::string key;
  std::string value;
};

/// Ordered bytes by family: what differs between the stores of state/store.hpp.
class key_values {
public:
  virtual ~key_values() = default;

  /// What has become of a write when it returns.
  enum class write_mode : std::uint8_t {
    synced,  ///< A machine that loses power keeps it.
    written, ///< A process that is killed keeps it.
  };

  /// In order, all or nothing, durable as `mode` says when it returns.
  virtual result<void> write(const std::vector<key_write>& writes, write_mode mode) = 0;

  virtual result<std::optional<std::string>> get(family in, std::string_view key) = 0;

  enum class then : std::uint8_t { on, stop };
  using visitor = std::function<result<then>(std::string_view key, std::string_view value)>;

  /// Every key from `from` on that begins with `prefix`, in order, until `visit` stops or fails.
  virtual result<void>
  scan(family in, std::string_view prefix, std::string_view from, const visitor& visit) = 0;

  /// The last key that begins with `prefix`, if there is one.
  virtual result<std::optional<std::string>> last_key(family in, std::string_view prefix) = 0;
};

} // namespace dsec
