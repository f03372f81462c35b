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

  /// In order, all or nothing, durable when it returns.
  virtual result<void> write(const std::vector<key_write>& writes) = 0;

  virtual result<std::optional<std::string>> get(family in, std::string_view key) = 0;

  using visitor = std::function<result<void>(std::string_view key, std::string_view value)>;

  /// Every key that begins with `prefix`, in order, until `visit` fails.
  virtual result<void> scan(family in, std::string_view prefix, const visitor& visit) = 0;
};

} // namespace dsec
