#include "backends/spawner/names.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace dsec::spawner {

namespace {

constexpr std::uint32_t first_id = 0x10000000;
constexpr std::string_view default_run_dir = "/run/dsec";

/// FNV-1a: the same for a run directory in every build, which names that outlive the spawner need.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : text)
    hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

bool lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

} // namespace

names::names(std::string run_dir, std::string data_dir)
  : run_dir_{std::move(run_dir)},
    data_dir_{std::move(data_dir)},
    cgroup_root_{"dsec"},
    id_base_{first_id} {
  if (run_dir_ == default_run_dir)
    return;
  auto hash = hash_of(run_dir_);
  char suffix[16];
  std::snprintf(suffix, sizeof suffix, "-%08x", static_cast<unsigned>(hash >> 32));
  cgroup_root_ += suffix;
  id_base_ += slots_max * ids_per_slot * (1 + static_cast<std::uint32_t>(hash % 7));
}

bool valid_sandbox_id(std::string_view x) {
  return !x.empty() && x.size() <= 40 && x != "spawner"
         && std::all_of(x.begin(), x.end(), [](char c) { return lower_or_digit(c) || c == '-'; });
}

std::string slot_name(std::uint32_t slot) {
  return '_' + std::to_string(slot);
}

std::optional<std::uint32_t> slot_of(std::string_view name) {
  std::uint32_t slot = 0;
  if (name.size() < 2 || name.front() != '_')
    return std::nullopt;
  auto [end, failed] = std::from_chars(name.data() + 1, name.data() + name.size(), slot);
  if (failed != std::errc{} || end != name.data() + name.size() || slot >= slots_max
      || slot_name(slot) != name)
    return std::nullopt;
  return slot;
}

bool valid_digest(std::string_view x) {
  constexpr std::string_view prefix = "sha256-";
  if (x.size() != prefix.size() + 64 || x.substr(0, prefix.size()) != prefix)
    return false;
  auto hex = x.substr(prefix.size());
  return std::all_of(hex.begin(), hex.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string printable(std::string_view x) {
  std::string text;
  for (char c : x.substr(0, 80))
    text += c >= ' ' && c <= '~' ? c : '?';
  if (x.size() > 80)
    text += "...";
  return text;
}

} // namespace dsec::spawner
