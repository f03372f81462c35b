#pragma once

#include "backends/backend.hpp"
#include "backends/container/io_loop.hpp"
#include "backends/container/spawner_process.hpp"
#include "schemas/spawner.capnp.h"

#include <capnp/serialize.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace dsec {

/// What a spawner says of itself and of the machine.
struct spawner_report {
  std::string version;
  int pid = 0;
  std::uint32_t slots = 0;
  std::uint32_t slots_used = 0;
  std::uint64_t swap_bytes = 0;
  std::string cgroup;
  std::string cgroup_root;
};

/// The one connection to dsec-spawner: datagrams out, answers by sequence number. When the spawner
/// is gone it is started again (as root), and everything that was not answered is said again, which
/// is harmless because every request is idempotent. Loop only, completions too.
class spawner_link {
public:
  spawner_link(io_loop& loop, spawner_options options);

  /// No completion is called any more.
  ~spawner_link();

  /// Of the node for which it speaks from now on; 0 at first: for none.
  void identify(std::uint64_t epoch) {
    epoch_ = epoch;
  }

  void create(const start_spec& spec, completion<void> done);
  void destroy(const sandbox_id& id, completion<void> done);
  void list(completion<std::vector<live_sandbox>> done);
  /// Answers with the process id of the sandbox's dsec-init as the spawner knows it; 0: none lives.
  void init_of(const sandbox_id& id, completion<int> done);
  void warm(std::uint32_t sandboxes, completion<void> done);
  void hello(completion<spawner_report> done);

  /// Ends the spawner and all that it keeps on the machine; invalid_state while sandboxes live.
  void shutdown(completion<void> done);

private:
  struct pending;
  struct socket;
  using answer = std::function<void(result<wire::Reply::Reader>)>;

  void ask(capnp::MallocMessageBuilder& message, answer done);
  void connect();
  kj::Promise<void> session();
  kj::Promise<void> dial(int attempt);
  kj::Promise<void> start(int attempt);
  kj::Promise<void> receive();
  void take(wire::Reply::Reader reply);
  void judge(wire::Reply::Reader reply);
  void flush();
  void fail_all(const error& why);

  io_loop& loop_;
  spawner_options options_;
  std::string version_; ///< Of the program that we would start; empty: any will do.
  std::map<std::uint64_t, pending> pending_;
  std::uint64_t sequence_ = 0;
  std::uint64_t epoch_ = 0;
  /// Asked on each new connection; everything else waits for its answer.
  std::uint64_t hello_sequence_ = 0;
  std::unique_ptr<socket> socket_;
  bool working_ = false;  ///< A session is under way.
  bool answered_ = false; ///< This session brought an answer.
  bool gone_ = false;     ///< This session is to end.
  /// Sessions in a row that ended without one answer.
  int barren_ = 0;
  kj::Array<capnp::word> buffer_;
  kj::Promise<void> work_ = nullptr;
  kj::Promise<void> writable_ = nullptr;
  bool awaits_writable_ = false;
};

} // namespace dsec
