#pragma once

#include "schemas/init.capnp.h"
#include "state/error.hpp"

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <map>
#include <string>
#include <vector>

namespace dsec::test {

/// What a test asks to be run.
struct run_options {
  std::uint64_t deadline_ms = 0;
  std::uint64_t spool_bytes = 1 << 20;
  std::string user;
  std::string cwd = "/";
  bool has_stdin = false;
  bool attended = false;
  std::vector<std::string> env = {"PATH=/bin"};
};

struct run_result {
  wire::Outcome::Kind kind{};
  int code = 0;
  std::uint64_t limit_bytes = 0, peak_bytes = 0;
  std::string cause, out, err;
  std::uint64_t out_bytes = 0, err_bytes = 0, duration_ms = 0;
  unsigned oom_kills = 0;
};

struct entry {
  wire::FileStatus::Type type{};
  unsigned mode = 0, uid = 0, gid = 0;
  std::uint64_t size = 0;
};

/// Collects what is written to it. `delay` holds every write back that long, as a slow reader
/// would.
class collecting_sink final : public wire::ByteSink::Server {
public:
  explicit collecting_sink(std::string& to, kj::Timer* timer = nullptr, kj::Duration delay = {})
    : to_{to},
      timer_{timer},
      delay_{delay} {}

  kj::Promise<void> write(WriteContext context) override;

  kj::Promise<void> end(EndContext) override {
    return kj::READY_NOW;
  }

private:
  std::string& to_;
  kj::Timer* timer_;
  kj::Duration delay_;
};

/// One connection to a dsec-init, as the node has it. Errors of calls throw dsec::error.
class init_client {
public:
  init_client(kj::AsyncIoContext& io, const std::string& socket, std::uint64_t epoch = 1);

  wire::Exec::Client
  start(std::uint64_t id, const std::vector<std::string>& argv, const run_options& options = {});
  run_result wait(wire::Exec::Client& exec);
  run_result run(const std::vector<std::string>& argv, const run_options& options = {});
  run_result shell(const std::string& script, const run_options& options = {});
  using collected = capnp::RemotePromise<wire::Init::RunResults>;

  /// In one call, without a capability.
  collected collect(std::uint64_t id, const std::vector<std::string>& argv,
                    const run_options& options = {}, const std::vector<std::uint64_t>& forget = {});
  run_result wait(collected&& answer);
  void cancel(std::uint64_t id);

  void write_file(const std::string& path, const std::string& bytes, bool parents = false);
  std::string read_file(const std::string& path);
  entry status(const std::string& path);
  std::map<std::string, entry> list(const std::string& path);

  std::uint64_t pause();
  std::pair<std::uint64_t, std::uint64_t> reclaim();
  void resume();

  kj::WaitScope& scope() {
    return io_.waitScope;
  }

  wire::Init::Client& init() {
    return *init_;
  }

  capnp::Response<wire::InitGate::EnterResults> entered() {
    return gate_enter(epoch_);
  }

  kj::Promise<void> disconnected() {
    return network_->onDisconnect();
  }

  std::uint64_t last_id = 100;

private:
  capnp::Response<wire::InitGate::EnterResults> gate_enter(std::uint64_t epoch);
  wire::File::Client open(const std::string& path, wire::Init::OpenMode mode, bool parents);

  kj::AsyncIoContext& io_;
  std::uint64_t epoch_;
  kj::Own<kj::AsyncIoStream> stream_;
  kj::Own<capnp::TwoPartyVatNetwork> network_;
  kj::Own<capnp::RpcSystem<capnp::rpc::twoparty::VatId>> rpc_;
  kj::Own<wire::Init::Client> init_;
};

} // namespace dsec::test
