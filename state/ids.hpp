#pragma once

#include "state/error.hpp"

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace dsec {

/// A string that cannot be passed where another kind of id is expected.
template <class Tag>
class id {
public:
  id() = default;

  explicit id(std::string value) : value_{std::move(value)} {}

  const std::string& str() const noexcept {
    return value_;
  }

  bool empty() const noexcept {
    return value_.empty();
  }

  friend auto operator<=>(const id&, const id&) = default;

  template <class Inspector>
  friend typename Inspector::result_type inspect(Inspector& f, id& x) {
    return f(x.value_);
  }

private:
  std::string value_;
};

/// "n" and 8 hex digits, drawn once per state directory.
using node_id = id<struct node_tag>;

/// "<node id>-<sequence>", so that it names its birth node: n5f02a1bc-17.
using sandbox_id = id<struct sandbox_tag>;

/// The job's name, chosen by the trainer: [A-Za-z0-9._-]{1,64}.
using job_id = id<struct job_tag>;

/// "sha256-" and 64 hex digits.
using layer_digest = id<struct layer_tag>;

/// Names one exec of one sandbox. Recorded steps use their step number; the rest is above 2^63.
using exec_id = std::uint64_t;

/// The node id that `random` stands for.
node_id make_node_id(std::uint32_t random);

/// The id of a sandbox born on `node`.
sandbox_id make_sandbox_id(const node_id& node, std::uint64_t sequence);

/// The birth node that `id` names, or invalid_argument if it is no sandbox id.
result<node_id> node_of(const sandbox_id& id);

/// The sequence number that `id` names, or invalid_argument if it is no sandbox id.
result<std::uint64_t> sequence_of(const sandbox_id& id);

/// invalid_argument with value and form, or nothing.
result<void> validate(const node_id& id);
result<void> validate(const sandbox_id& id);
result<void> validate(const job_id& id);
result<void> validate(const layer_digest& id);

} // namespace dsec

template <class Tag>
struct std::hash<dsec::id<Tag>> {
  std::size_t operator()(const dsec::id<Tag>& x) const noexcept {
    return std::hash<std::string>{}(x.str());
  }
};

template <class Tag>
struct fmt::formatter<dsec::id<Tag>> : fmt::formatter<std::string> {
  template <class Context>
  auto format(const dsec::id<Tag>& x, Context& ctx) const {
    return formatter<std::string>::format(x.str(), ctx);
  }
};
