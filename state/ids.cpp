#include "state/ids.hpp"

#include "state/printable.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace dsec {

namespace {

constexpr std::string_view digest_prefix = "sha256-";
constexpr std::size_t digest_digits = 64;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_node(std::string_view text) {
  return text.size() == 9 && text[0] == 'n' && is_hex(text.substr(1));
}

error invalid(std::string_view kind, const std::string& value, std::string_view form) {
  return {errc::invalid_argument, fmt::format("{} is {}; {}", kind, printable(value), form)};
}

/// Only the one spelling that make_sandbox_id gives: no sign, no leading zero.
bool parse_sequence(std::string_view text, std::uint64_t& out) {
  if (text.empty() || (text[0] == '0' && text.size() > 1))
    return false;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failure == std::errc{} && end == text.data() + text.size();
}

struct sandbox_parts {
  node_id node;
  std::uint64_t sequence = 0;
};

result<sandbox_parts> parse(const sandbox_id& id) {
  std::string_view text = id.str();
  auto dash = text.find('-');
  sandbox_parts parts;
  if (dash == std::string_view::npos || !is_node(text.substr(0, dash))
      || !parse_sequence(text.substr(dash + 1), parts.sequence))
    return invalid("sandbox id", id.str(), "a node id, '-' and a number, as n5f02a1bc-17");
  parts.node = node_id{std::string{text.substr(0, dash)}};
  return parts;
}

} // namespace

node_id make_node_id(std::uint32_t random) {
  return node_id{fmt::format("n{:08x}", random)};
}

sandbox_id make_sandbox_id(const node_id& node, std::uint64_t sequence) {
  return sandbox_id{fmt::format("{}-{}", node, sequence)};
}

result<node_id> node_of(const sandbox_id& id) {
  auto parts = parse(id);
  if (!parts)
    return parts.error();
  return parts->node;
}

result<std::uint64_t> sequence_of(const sandbox_id& id) {
  auto parts = parse(id);
  if (!parts)
    return parts.error();
  return parts->sequence;
}

result<void> validate(const node_id& id) {
  if (!is_node(id.str()))
    return invalid("node id", id.str(), "'n' and 8 hex digits");
  return {};
}

result<void> validate(const sandbox_id& id) {
  if (auto parts = parse(id); !parts)
    return parts.error();
  return {};
}

result<void> validate(const job_id& id) {
  const auto& text = id.str();
  auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.'
           || c == '_' || c == '-';
  };
  if (text.empty() || text.size() > 64 || !std::all_of(text.begin(), text.end(), allowed))
    return invalid("job", text, "1 to 64 characters of A-Z a-z 0-9 . _ -");
  return {};
}

result<void> validate(const layer_digest& id) {
  std::string_view text = id.str();
  if (text.size() != digest_prefix.size() + digest_digits || text.substr(0, 7) != digest_prefix
      || !is_hex(text.substr(7)))
    return invalid("layer digest", id.str(), "\"sha256-\" and 64 hex digits");
  return {};
}

} // namespace dsec
