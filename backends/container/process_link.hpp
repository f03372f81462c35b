#pragma once

#include "backends/backend.hpp"
#include "backends/container/io_loop.hpp"
#include "schemas/init.capnp.h"

#include <cstdint>
#include <map>
#include <memory>

namespace dsec {

/// What is asked of the processes of one sandbox, over the connection of its init_link. Loop only;
/// promises that it gave go before it.
class process_link {
public:
  explicit process_link(io_loop& loop) : loop_{loop} {}

  /// A broken connection rejects the promise.
  kj::Promise<result<process_reply>> ask(wire::Init::Client init, process_request request);

  /// Before the connection goes.
  void close() {
    turns_.clear();
    attached_.clear();
  }

private:
  using reply = result<process_reply>;
  using shared_bytes = std::shared_ptr<const std::string>;

  struct turn {
    std::uint64_t number = 0;
    kj::ForkedPromise<void> over;
  };

  kj::Promise<reply> act(wire::Init::Client init, process_start x);
  kj::Promise<reply> act(wire::Init::Client init, process_list x);
  kj::Promise<reply> act(wire::Init::Client init, process_wait x);
  kj::Promise<reply> act(wire::Init::Client init, process_attach x);
  kj::Promise<reply> act(wire::Init::Client init, process_detach x);
  kj::Promise<reply> act(wire::Init::Client init, process_input x);
  kj::Promise<reply> act(wire::Init::Client init, process_resize x);
  kj::Promise<reply> act(wire::Init::Client init, process_signal x);
  kj::Promise<reply> act(wire::Init::Client init, process_kill x);
  kj::Promise<reply> act(wire::Init::Client init, process_remove x);

  /// In pieces, behind whatever was asked to be written to the same process before.
  kj::Promise<reply> write_in_turn(wire::Init::Client init, exec_id id, shared_bytes bytes,
                                   std::size_t from, bool end);

  io_loop& loop_;
  std::map<exec_id, turn> turns_;
  std::uint64_t last_turn_ = 0;
  std::map<std::uint64_t, kj::Own<kj::PromiseFulfiller<void>>> attached_;
};

} // namespace dsec
