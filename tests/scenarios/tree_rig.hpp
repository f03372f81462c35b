#pragma once

#include "tests/scenarios/exec_rig.hpp"
#include "tests/scenarios/residue.hpp"

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dsec::test {

/// A sandbox, and a folder of the host for what goes up and comes down.
struct tree_rig : exec_rig {
  sandbox box = create(roomy());
  std::filesystem::path here = at.new_state();

  tree_rig() {
    std::filesystem::create_directories(here);
  }

  void run(const std::string& script) const;

  dsec::environment roomy() const {
    auto x = at.environment();
    x.limits.disk_bytes = 1 << 30;
    return x;
  }
};

/// Everything below `root`, one line each, by name: kind, mode, owner's times to the nanosecond,
/// size, link target, which other names it has, and a digest of its bytes. Names are byte-exact.
std::vector<std::string> describe_tree(const std::filesystem::path& root, bool with_times = true);

/// What the first has and the second has not, or the other way round; empty: the same.
std::string differences(const std::vector<std::string>& a, const std::vector<std::string>& b);

/// Disk blocks of all files below.
std::uint64_t allocated_bytes(const std::filesystem::path& root);

void put_file(const std::filesystem::path& path, const std::string& bytes, mode_t mode = 0644);

/// A ustar archive, byte by byte: what no packer would make.
class crafted_archive {
public:
  crafted_archive& add(char type, const std::string& name, const std::string& bytes = {},
                       const std::string& link = {}, unsigned mode = 0644);
  std::string bytes() const;

private:
  std::string bytes_;
};

/// Gives an archive that is in memory.
std::shared_ptr<input_source> source_of(std::string bytes);

/// Takes one into memory.
class memory_archive final : public archive_sink {
public:
  void write(std::string bytes, std::function<void()> ready) override;
  std::string bytes() const;

private:
  mutable std::mutex mutex_;
  std::string bytes_;
};

/// Path and reason of what was left out.
std::map<std::string, std::string> refusals_of(const tree_report& x);

/// Processes that move a tree for this program's spawner, or for nobody any more.
std::set<pid_t> tree_tasks();

/// Nobody tells of them: until there are none, at most 10 s.
bool tree_tasks_end();

} // namespace dsec::test
