#include "backends/container/file_transfer.hpp"

#include "backends/container/tree_transfer.hpp"
#include "backends/container/wire.hpp"

#include <fmt/format.h>
#include <kj/debug.h>

namespace dsec {

namespace {

constexpr std::size_t piece_bytes = 1 << 20;

using reply = result<file_reply>;

auto open_request(wire::Init::Client& init, const std::string& path, wire::Init::OpenMode mode) {
  auto request = init.openRequest();
  request.setPath(wire::bytes(path));
  request.setMode(mode);
  return request;
}

kj::Promise<reply>
read_from(wire::File::Client file, std::shared_ptr<const file_read> what, std::string so_far) {
  auto request = file.readRequest();
  request.setOffset(so_far.size());
  request.setBytes(piece_bytes);
  return request.send().then(
    [file, what, so_far = std::move(so_far)](auto&& answer) mutable -> kj::Promise<reply> {
      if (error e; wire::failed(answer.getError(), e))
        return reply{e};
      auto size = answer.getSize();
      auto bytes = answer.getBytes();
      if (size > what->bytes_max || so_far.size() + bytes.size() > what->bytes_max)
        return reply{error{errc::exhausted, fmt::format("read {}: {} bytes, the limit is {}",
                                                        what->path, size, what->bytes_max)}};
      if (so_far.empty() && size > bytes.size())
        so_far.reserve(size);
      so_far.append(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
      // A shorter piece may be a file of /proc, which says size 0: only an empty one is the end.
      if (bytes.size() == 0 || (size > 0 && so_far.size() >= size)) {
        file_reply whole;
        whole.bytes = std::move(so_far);
        return reply{std::move(whole)};
      }
      return read_from(kj::mv(file), std::move(what), std::move(so_far));
    });
}

/// Into a `File` or a `Replacing`.
template <class Client>
kj::Promise<reply>
write_to(Client file, std::shared_ptr<const file_write> what, std::size_t offset) {
  if (offset >= what->bytes.size())
    return reply{file_reply{}};
  auto piece = std::string_view{what->bytes}.substr(offset, piece_bytes);
  auto request = file.writeRequest();
  request.setBytes(wire::bytes(piece));
  return request.send().then(
    [file, what, next = offset + piece.size()](auto&& answer) mutable -> kj::Promise<reply> {
      if (error e; wire::failed(answer.getError(), e))
        return reply{e};
      return write_to(kj::mv(file), std::move(what), next);
    });
}

/// Opens, and continues with what it opened.
template <class Request, class Use>
kj::Promise<reply> with_open(Request request, Use use) {
  return request.send().then([use = kj::mv(use)](auto&& opened) mutable -> kj::Promise<reply> {
    if (error e; wire::failed(opened.getError(), e))
      return reply{e};
    return use(opened.getFile());
  });
}

kj::Promise<reply> act(wire::Init::Client init, file_read what) {
  auto held = std::make_shared<const file_read>(std::move(what));
  return with_open(open_request(init, held->path, wire::Init::OpenMode::READ),
                   [held](wire::File::Client file) { return read_from(kj::mv(file), held, {}); });
}

/// Beside the old file, then in its place: nobody sees a part.
kj::Promise<reply> replace(wire::Init::Client init, std::shared_ptr<const file_write> what) {
  auto request = init.replaceRequest();
  request.setPath(wire::bytes(what->path));
  request.setPermissions(what->mode);
  request.setMakeParents(what->make_parents);
  return with_open(kj::mv(request), [what](wire::Replacing::Client file) {
    return write_to(file, what, 0).then([file](reply written) mutable -> kj::Promise<reply> {
      if (!written)
        return written;
      return file.finishRequest().send().then([](auto&& answer) -> reply {
        if (error e; wire::failed(answer.getError(), e))
          return e;
        return file_reply{};
      });
    });
  });
}

kj::Promise<reply> act(wire::Init::Client init, file_write what) {
  auto held = std::make_shared<const file_write>(std::move(what));
  if (held->atomic && !held->append)
    return replace(kj::mv(init), held);
  auto request =
    open_request(init, held->path,
                 held->append ? wire::Init::OpenMode::APPEND : wire::Init::OpenMode::WRITE);
  request.setPermissions(held->mode);
  request.setMakeParents(held->make_parents);
  return with_open(kj::mv(request),
                   [held](wire::File::Client file) { return write_to(kj::mv(file), held, 0); });
}

kj::Promise<reply> act(wire::Init::Client init, file_list what) {
  return with_open(open_request(init, what.path, wire::Init::OpenMode::LIST),
                   [](wire::File::Client file) {
                     return file.listRequest().send().then([](auto&& answer) -> reply {
                       if (error e; wire::failed(answer.getError(), e))
                         return e;
                       file_reply found;
                       for (auto entry : answer.getEntries())
                         found.entries.push_back(wire::read(entry));
                       return found;
                     });
                   });
}

kj::Promise<reply> act(wire::Init::Client init, file_stat what) {
  auto request = init.statusRequest();
  request.setPath(wire::bytes(what.path));
  return request.send().then([](auto&& answer) -> reply {
    if (error e; wire::failed(answer.getError(), e))
      return e;
    file_reply found;
    found.status = wire::read(answer.getStatus());
    return found;
  });
}

kj::Promise<reply> act_on(io_loop& loop, wire::Init::Client init, file_request request) {
  if (auto* tree = std::get_if<tree_write>(&request))
    return unpack(loop, kj::mv(init), std::move(*tree));
  if (auto* tree = std::get_if<tree_read>(&request))
    return pack(loop, kj::mv(init), std::move(*tree));
  return std::visit(
    [&]<class What>(What& what) -> kj::Promise<reply> {
      if constexpr (requires { act(init, std::move(what)); })
        return act(init, std::move(what));
      else
        KJ_UNREACHABLE;
    },
    request);
}

} // namespace

kj::Promise<result<file_reply>>
transfer(io_loop& loop, wire::Init::Client init, file_request request) {
  auto path = std::visit([](const auto& what) { return what.path; }, request);
  return act_on(loop, kj::mv(init), std::move(request))
    .then([path = std::move(path)](reply x) -> reply {
      // dsec-init knows an open file by no name.
      if (x || x.error().message.find(path) != std::string::npos)
        return x;
      return error{x.error().code, fmt::format("{}: {}", path, x.error().message)};
    });
}

} // namespace dsec
