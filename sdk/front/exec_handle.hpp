#pragma once

#include "backends/backend.hpp"
#include "backends/container/io_loop.hpp"
#include "schemas/dsec.capnp.h"
#include "sdk/embed/runtime.hpp"

#include <memory>

namespace dsec {

/// A client's ends of a streamed exec, as the runtime takes them: output goes to the client's sinks
/// as fast as the client takes it, input comes from what the client sends. May be destroyed on any
/// thread; what is KJ's is destroyed in the loop.
class client_streams final : public output_sink {
public:
  /// Loop only. Null sinks drop their stream.
  client_streams(io_loop& loop, wire::ByteSink::Client out, bool has_out,
                 wire::ByteSink::Client err, bool has_err, bool has_input);

  void write(stream which, std::string bytes, std::function<void()> ready) override;
  std::shared_ptr<input_source> input() override;

  /// Where the client sends standard input. Loop only.
  wire::ByteSink::Client input_sink();

  /// Nobody reads input any more; what the client still sends is dropped. Loop only.
  void close_input();

private:
  struct parts;
  std::shared_ptr<parts> parts_;
  bool has_input_;
};

/// What a client holds of a command. Loop only.
class exec_handle final : public wire::ExecHandle::Server {
public:
  enum class when_dropped { cancel, keep };

  /// `streams` may be null.
  exec_handle(io_loop& loop, running_exec exec, std::shared_ptr<client_streams> streams,
              when_dropped dropped);
  ~exec_handle();

  kj::Promise<void> wait(WaitContext context) override;
  kj::Promise<void> signal(SignalContext context) override;
  kj::Promise<void> cancel(CancelContext context) override;

private:
  running_exec exec_;
  kj::ForkedPromise<void> ended_;
  when_dropped dropped_;
};

} // namespace dsec
