#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dsec::bench {

/// The groups `name` (a path below each hierarchy's root) of one holder of memory, v1 or v2.
class memory_group {
public:
  explicit memory_group(const std::string& name);

  /// Where the memory of a live sandbox is charged, found by its supervisor, whose pid is in
  /// `run_dir`. Throws if there is none.
  static memory_group of_sandbox(const std::filesystem::path& run_dir, const std::string& id);

  void make() const;

  /// Its processes are gone, or about to.
  void remove() const;

  /// `argv` as a command that joins the group first, so that everything it touches is charged
  /// there.
  std::vector<std::string> joined(const std::vector<std::string>& argv) const;

  void begin_freeze() const;

  /// Throws if that takes more than 30 s.
  void await_frozen() const;

  void thaw() const;

  /// Gives everything that can be paged out to the swap.
  void page_out() const;

  /// Anonymous memory in RAM, what only the swap cache still holds included; every page once.
  std::uint64_t resident_bytes() const;

private:
  std::uint64_t number(const std::string& file, const std::string& key = {}) const;

  std::string unified_;
  std::string memory_; ///< The same on a machine without v1 controllers.
  bool v1_;
};

} // namespace dsec::bench
