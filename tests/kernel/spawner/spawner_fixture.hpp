#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace dsec::test {

/// The answer to one request, whatever it was.
struct answer {
  std::uint8_t code = 0; ///< dsec::errc, 0: none.
  std::string message;
  std::map<std::string, int> pids; ///< list: dsec-init of every sandbox; 0 for an ending one.
  std::string cgroup_root;         ///< hello
  std::string version;
  std::uint64_t slots_used = 0;
  std::uint32_t sandboxes = 0;
};

struct create_fields {
  std::string id = "s-1";
  std::vector<std::string> layers;
  std::uint64_t memory_bytes = 64 << 20;
  std::uint32_t processes = 64;
  std::uint32_t cpu_milli = 0;
  std::uint64_t disk_bytes = 16 << 20;
  std::string hostname;
};

/// One connection to a spawner.
class spawner_client {
public:
  explicit spawner_client(const std::string& run_dir);

  ~spawner_client();

  spawner_client(const spawner_client&) = delete;

  std::uint64_t send_create(const create_fields& fields);
  std::uint64_t send_destroy(const std::string& id);

  /// Sends a datagram as it is. False if the spawner has hung up.
  bool send_bytes(const std::string& bytes);

  /// The answer to the request of this sequence; others are kept. Nothing if the spawner hung up.
  std::optional<answer> wait_for(std::uint64_t sequence);

  std::optional<answer> create(const create_fields& fields);
  std::optional<answer> destroy(const std::string& id);
  std::optional<answer> list();
  std::optional<answer> hello();
  std::optional<answer> warm(std::uint32_t count);
  std::optional<answer> shutdown();

private:
  template <class Fill>
  std::uint64_t send(Fill fill);

  int socket_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, answer> early_;
};

/// What can be seen of a spawner's sandboxes from outside it.
struct traces {
  std::set<std::string> files;      ///< In the run directory, but not the spawner's own.
  std::set<std::string> subvolumes; ///< On the scratch.
  std::set<std::string> groups;     ///< Below its root in every hierarchy.
  std::set<std::string> processes;  ///< In those groups.

  bool none() const {
    return files.empty() && subvolumes.empty() && groups.empty() && processes.empty();
  }

  std::string text() const;
};

/// A spawner of the test's own, with a layer of busybox in its store. The destructor leaves
/// nothing.
class spawner_fixture {
public:
  spawner_fixture();

  ~spawner_fixture();

  /// Starts it and waits until it is ready. Returns its exit code and puts what it said into
  /// `said`.
  int start(const std::vector<std::string>& more = {}, const std::string& kill_at = "");

  /// SIGKILL, and waits until it is gone.
  void kill_spawner();

  pid_t spawner_pid() const;

  create_fields fields(const std::string& id) const;

  traces look() const;

  /// What stands in any hierarchy for a spawner on this run directory.
  static std::vector<std::filesystem::path> groups_of(const std::string& run_dir);

  /// Waits until `reached` holds, asking again and again: of groups, subvolumes and pools together
  /// the kernel tells nobody. False after 20 s.
  static bool eventually(const std::function<bool()>& reached);

  std::filesystem::path folder;
  std::string run_dir;
  std::string data_dir;
  std::string layer;
  std::string said;
};

/// Path of a file inside the sandbox whose dsec-init has this pid, as seen from outside.
std::string inside(int init_pid, const std::string& path);

/// PID 1 of that sandbox.
int reaper_of(int init_pid);

} // namespace dsec::test
