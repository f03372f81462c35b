#pragma once

#include "backends/backend.hpp"
#include "backends/container/io_loop.hpp"
#include "schemas/command.capnp.h"

#include <memory>
#include <string>

namespace dsec {

/// At most this much goes into one `ByteSink.write`.
inline constexpr std::size_t stream_piece_bytes = 64 << 10;

/// Hands what it is sent to one stream of `to`, and takes the next bytes only when `to` is ready.
/// Loop only.
wire::ByteSink::Client
receive_into(io_loop& loop, std::shared_ptr<output_sink> to, output_sink::stream which);

/// Sends `first`, then what `rest` (may be null) brings, then the end; as fast as `to` takes it.
/// Loop only.
kj::Promise<void> send_input(io_loop& loop, wire::ByteSink::Client to,
                             std::shared_ptr<const std::string> first,
                             std::shared_ptr<input_source> rest);

} // namespace dsec
