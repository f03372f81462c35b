#pragma once

#include "sdk/cli/clock_options.hpp"
#include "sdk/cli/options.hpp"
#include "sdk/embed/runtime.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsec {

/// What `create` and `run` take to describe a sandbox.
struct environment_options {
  std::vector<std::string> images;
  std::string job = "cli";
  std::string key;
  std::string memory;
  std::optional<std::uint32_t> pids;
  std::string cpus;
  std::string disk;
  bool allow_setuid = false;
  clock_options clocks;
  sandbox_clocks base_clocks; ///< What holds of those that are not given.

  void add_to(CLI::App& command);

  /// With layers resolved through the store of `data_dir`.
  result<create_options> resolve(const std::filesystem::path& data_dir) const;

  /// Opens the job (without a lease, unless it is there already) and creates.
  result<std::pair<std::string, wire::Sandbox::Client>>
  create(client& at, const create_options& wanted) const;
};

/// "512M", "2G", "4096": bytes. invalid_argument otherwise.
result<std::uint64_t> parse_bytes(const std::string& name, const std::string& text);

/// "NAME=value" as a pair; a name alone takes the value of the caller's own environment.
std::pair<std::string, std::string> parse_variable(const std::string& text);

} // namespace dsec
