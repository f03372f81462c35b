#pragma once

#include "schemas/dsec.capnp.h"
#include "state/error.hpp"

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>

#include <filesystem>
#include <memory>

namespace dsec {

/// One connection to the runtime that serves a state directory, and the event loop of this thread.
struct client {
  kj::AsyncIoContext io;
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyClient rpc;
  wire::Dsec::Client dsec;

  client(kj::AsyncIoContext loop, kj::Own<kj::AsyncIoStream> connected);
};

/// unavailable if no runtime serves `state_dir`.
result<std::unique_ptr<client>> connect(const std::filesystem::path& state_dir);

/// Waits for an answer that carries `error`. Both a refusal and a broken connection come back as an
/// error.
template <class Results>
result<capnp::Response<Results>> wait(client& from, kj::Promise<capnp::Response<Results>> answer);

} // namespace dsec

#include "sdk/cli/client_wait.hpp"
