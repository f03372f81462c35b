#pragma once

#include "backends/backend.hpp"
#include "backends/container/acknowledgements.hpp"
#include "backends/container/io_loop.hpp"
#include "backends/container/process_link.hpp"
#include "schemas/init.capnp.h"

#include <capnp/rpc-twoparty.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

namespace dsec {

/// The connection to one sandbox's dsec-init. Loop only, completions too. When it breaks, or is
/// dropped, every completion that is still owed gets its answer: `unavailable`, or what `close`
/// said.
class init_link {
public:
  /// Dials `socket` and enters with `epoch`. not_found: nothing listens there. invalid_state: a
  /// newer process has entered.
  static kj::Promise<result<std::shared_ptr<init_link>>>
  open(io_loop& loop, sandbox_id id, std::filesystem::path socket, std::uint64_t epoch,
       std::shared_ptr<acknowledgements> durable);

  init_link(io_loop& loop, sandbox_id id, kj::Own<kj::AsyncIoStream> stream,
            std::shared_ptr<acknowledgements> durable);
  ~init_link();

  /// Enters again, as this connection's own epoch does; `found` is then what dsec-init says now.
  kj::Promise<result<void>> enter(std::uint64_t epoch);

  const found_sandbox& found() const noexcept;

  /// `lost(why)` is called once if the connection ends without `close`, from a fresh turn of the
  /// loop, in which the link may be destroyed; `why` as the connection tells it.
  void on_lost(std::function<void(std::string)> lost);

  /// It has ended without `close`; `lost` was called, or will be.
  bool is_broken() const noexcept {
    return broken_;
  }

  /// What the link's end means to whoever still waits.
  enum class ending {
    silent,  ///< Nobody is told: the backend is going.
    stopped, ///< Execs and processes end as sandbox_stopped, the rest is invalid_state.
    broken,  ///< unavailable.
  };

  /// Ends the connection.
  void close(ending how);

  /// Kills every command under way, and every process that is waited for, and calls `done` once
  /// each has said what it had written until then, or after a while. Their outcome is
  /// sandbox_stopped. Nothing is to be asked afterwards
  /// but `close`, which must not come before `done`.
  void stop_commands(std::function<void()> done);

  void pause(completion<void> done);
  void reclaim(completion<reclaim_report> done);
  void resume(completion<void> done);
  void exec(std::shared_ptr<const exec_call> call, completion<exec_result> done);
  void cancel(exec_id exec);
  void signal(exec_id exec, int number);
  void discard(const std::vector<exec_id>& execs);
  void file(file_request request, completion<file_reply> done);
  void process(process_request request, completion<process_reply> done);
  void stats(completion<sandbox_stats> done);
  void set_clocks(const sandbox_clocks& clocks, completion<void> done);
  void renew(const lease_terms& lease);

private:
  struct fate;
  template <class T>
  class owed;
  struct connection;
  class open_ends;

  template <class T>
  std::shared_ptr<owed<T>> owe(completion<T> done);
  /// Without sink and input: one round trip, no capability.
  void exec_collected(const exec_call& call, std::shared_ptr<owed<exec_result>> debt);
  /// With the command's capability, by which its streams flow.
  void
  exec_streamed(std::shared_ptr<const exec_call> call, std::shared_ptr<owed<exec_result>> debt);
  std::vector<exec_id> take_durable();
  /// An outcome was told: what dsec-init keeps of it goes with the next command or after a while.
  void release_later();
  void release();

  io_loop& loop_;
  sandbox_id id_;
  std::shared_ptr<fate> fate_;
  std::shared_ptr<open_ends> open_;
  process_link processes_; ///< Its promises are the connection's.
  kj::Own<connection> connection_;
  std::shared_ptr<acknowledgements> durable_;
  /// Outcomes that were told and are not among `durable_` so far.
  std::size_t told_ = 0;
  kj::Duration release_delay_;
  bool releasing_ = false;
  bool broken_ = false;
  /// Answers that were read, whose release would wake dsec-init.
  std::vector<capnp::Response<wire::Init::RunResults>> read_;
  found_sandbox found_;
};

} // namespace dsec
