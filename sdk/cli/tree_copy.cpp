#include "sdk/cli/tree_copy.hpp"

#include "backends/container/byte_stream.hpp"
#include "backends/container/wire.hpp"
#include "sdk/embed/local_tree.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <thread>
#include <unistd.h>

namespace dsec {

namespace {

/// Bytes of the archive so far, on a terminal.
class progress {
public:
  ~progress() {
    if (shown_)
      fmt::print(stderr, "\r\x1b[K");
  }

  void add(std::size_t bytes) {
    bytes_ += bytes;
    auto now = std::chrono::steady_clock::now();
    if (!terminal_ || now < next_)
      return;
    next_ = now + std::chrono::milliseconds{100};
    shown_ = true;
    fmt::print(stderr, "\r{:.1f} MiB\x1b[K", static_cast<double>(bytes_) / (1 << 20));
    std::fflush(stderr);
  }

private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  std::uint64_t bytes_ = 0;
  std::chrono::steady_clock::time_point next_ =
    std::chrono::steady_clock::now() + std::chrono::milliseconds{500};
};

/// A thread that blocks on this process's files, and its end of a pipe, which it closes at the end.
class beside {
public:
  using work = std::function<result<void>(int pipe)>;

  beside(int pipe, work what)
    : thread_{[this, pipe, what = std::move(what)] {
        outcome_ = what(pipe);
        ::close(pipe);
      }} {}

  ~beside() {
    if (thread_.joinable())
      thread_.join();
  }

  result<void> join() {
    thread_.join();
    return outcome_;
  }

private:
  result<void> outcome_;
  std::thread thread_;
};

struct pipe_ends {
  kj::AutoCloseFd reading, writing;
};

result<pipe_ends> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0)
    return errno_error(errno, "make a pipe");
  pipe_ends x{kj::AutoCloseFd{ends[0]}, kj::AutoCloseFd{ends[1]}};
  (void)::fcntl(x.reading, F_SETPIPE_SZ, 256 << 10);
  return x;
}

look look_inside(client& at, wire::Sandbox::Client in) {
  // A capability cannot be copied from a constant one.
  auto held = std::make_shared<wire::Sandbox::Client>(kj::mv(in));
  return [&at, held](const std::string& path) -> result<file_status> {
    auto request = held->statRequest();
    request.setPath(wire::bytes(path));
    auto found = wait(at, request.send());
    if (!found)
      return found.error();
    return wire::read(found->getStatus());
  };
}

kj::Promise<void> pump(kj::AsyncInputStream& from, wire::ByteSink::Client to,
                       kj::ArrayPtr<kj::byte> buffer, progress& shown) {
  return from.tryRead(buffer.begin(), 1, buffer.size())
    .then([&from, to, buffer, &shown](std::size_t n) mutable -> kj::Promise<void> {
      if (n == 0)
        return kj::READY_NOW;
      shown.add(n);
      auto request = to.writeRequest(capnp::MessageSize{n / 8 + 16, 0});
      request.setBytes(buffer.slice(0, n));
      return request.send().then(
        [&from, to, buffer, &shown]() mutable { return pump(from, kj::mv(to), buffer, shown); });
    });
}

/// Unpacks below `to` what `write` writes.
result<tree_report>
send_archive(client& at, wire::Sandbox::Client in, const std::string& to, beside::work write) {
  auto begin = in.unpackRequest();
  begin.setPath(wire::bytes(to));
  auto begun = wait(at, begin.send());
  if (!begun)
    return begun.error();
  auto pipe = make_pipe();
  if (!pipe)
    return pipe.error();
  auto archive = kj::heap<wire::ByteSink::Client>(begun->getArchive());
  auto unpacking = begun->getUnpacking();
  // It would hold the archive open.
  begun = error{};
  progress shown;
  auto buffer = kj::heapArray<kj::byte>(stream_piece_bytes);
  beside writer{pipe->writing.release(), std::move(write)};
  auto from = at.io.lowLevelProvider->wrapInputFd(pipe->reading.release(),
                                                  kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP
                                                    | kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC);
  result<void> written;
  kj::Promise<void> ending = kj::READY_NOW;
  auto sending = pump(*from, *archive, buffer, shown)
                   .then([&] {
                     written = writer.join();
                     // Of a broken one, the end is never said.
                     if (written)
                       ending = archive->endRequest().send().ignoreResult().eagerlyEvaluate(
                         [](kj::Exception&&) {});
                     archive = nullptr;
                   })
                   // It takes no more: why is in the outcome.
                   .eagerlyEvaluate([](kj::Exception&&) {});
  auto done = wait(at, unpacking.finishRequest().send());
  // Whoever still writes is told by the pipe.
  sending = nullptr;
  from = nullptr;
  if (!written)
    return written.error();
  if (!done)
    return done.error();
  return wire::read(done->getReport());
}

/// Takes an archive into a file descriptor. A pipe of our own that is full is being emptied. Why it
/// takes no more is left in `failed`: on its way to whoever packs the archive it would be lost.
class archive_writer final : public wire::ByteSink::Server {
public:
  archive_writer(int to, progress& shown, result<void>& failed)
    : to_{to},
      shown_{shown},
      failed_{failed} {}

  kj::Promise<void> write(WriteContext context) override {
    auto bytes = context.getParams().getBytes();
    shown_.add(bytes.size());
    auto ok =
      archive_file_target{to_}.write({reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
    if (ok)
      return kj::READY_NOW;
    failed_ = ok;
    return KJ_EXCEPTION(FAILED, "the archive cannot be written");
  }

  kj::Promise<void> end(EndContext) override {
    return kj::READY_NOW;
  }

private:
  int to_;
  progress& shown_;
  result<void>& failed_;
};

result<tree_report>
receive_archive(client& at, wire::Sandbox::Client in, const std::string& from, int to) {
  progress shown;
  result<void> written;
  auto request = in.packRequest();
  request.setPath(wire::bytes(from));
  request.setArchive(kj::heap<archive_writer>(to, shown, written));
  auto done = wait(at, request.send());
  if (!written)
    return written.error();
  if (!done)
    return done.error();
  return wire::read(done->getReport());
}

error named(const std::string& what, const error& e) {
  return {e.code, fmt::format("{}: {}", what, e.message)};
}

} // namespace

result<tree_report>
copy_in(client& at, wire::Sandbox::Client in, const std::string& from, const std::string& to) {
  auto what = fmt::format("copy {} to {}", from, to);
  auto source = find_local(from);
  if (!source)
    return named(what, source.error());
  auto where = land(source->path, source->is_directory, to, look_inside(at, in));
  if (!where)
    return named(what, where.error());
  tree_report packed;
  auto unpacked = send_archive(at, in, where->folder, [&](int pipe) {
    archive_file_target target{pipe};
    return pack_local(*source, where->top, target, packed);
  });
  if (!unpacked)
    return named(what, unpacked.error());
  return both(what, source->is_directory, std::move(packed), std::move(*unpacked));
}

result<tree_report>
copy_out(client& at, wire::Sandbox::Client in, const std::string& from, const std::string& to) {
  auto what = fmt::format("copy {} to {}", from, to);
  auto found = look_inside(at, in)(from);
  if (!found)
    return named(what, found.error());
  if (found->type == file_type::other)
    return named(what, {errc::invalid_argument, "it is a device, a FIFO or a socket"});
  bool is_directory = found->type == file_type::directory;
  auto where = land(from, is_directory, to, look_here);
  if (!where)
    return named(what, where.error());
  auto pipe = make_pipe();
  if (!pipe)
    return pipe.error();
  tree_report unpacked;
  beside reader{pipe->reading.release(), [&](int archive) {
                  auto source = std::make_unique<archive_file_source>(archive);
                  return unpack_local(*source, *where, unpacked);
                }};
  auto packed = receive_archive(at, in, from, pipe->writing);
  // Its end is the archive's.
  pipe->writing = nullptr;
  auto ok = reader.join();
  // One that broke off looks damaged from here: why is known over there.
  if (!packed && (ok || ok.error().code == errc::corrupt))
    return named(what, packed.error());
  if (!ok)
    return named(what, ok.error());
  return both(what, is_directory, std::move(*packed), std::move(unpacked));
}

result<tree_report> unpack_from_input(client& at, wire::Sandbox::Client in, const std::string& to) {
  return send_archive(at, std::move(in), to, [](int pipe) -> result<void> {
    auto source = std::make_unique<archive_file_source>(STDIN_FILENO);
    archive_file_target target{pipe};
    for (;;) {
      auto bytes = source->read();
      if (!bytes)
        return bytes.error();
      if (bytes->empty())
        return {};
      if (auto ok = target.write(*bytes); !ok)
        return ok;
    }
  });
}

result<tree_report> pack_to_output(client& at, wire::Sandbox::Client in, const std::string& from) {
  return receive_archive(at, std::move(in), from, STDOUT_FILENO);
}

} // namespace dsec
