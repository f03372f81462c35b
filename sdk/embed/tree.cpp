#include "sdk/embed/archive_channel.hpp"
#include "sdk/embed/handles.hpp"
#include "sdk/embed/local_tree.hpp"

#include <fmt/format.h>

namespace dsec {

namespace {

result<tree_report>
do_upload(const sandbox& box, const std::filesystem::path& from, const std::string& to) {
  auto what = fmt::format("upload {} to {}", from.string(), to);
  auto named = [&](const error& e) {
    return error{e.code, fmt::format("{}: {}", what, e.message)};
  };
  auto source = find_local(from);
  if (!source)
    return named(source.error());
  auto at = land(source->path, source->is_directory, to,
                 [&](const std::string& path) { return box.stat(path).get(); });
  if (!at)
    return named(at.error());
  auto channel = std::make_shared<upward_channel>();
  auto unpacked = box.unpack(at->folder, channel);
  unpacked.then([channel](const result<tree_report>&) { channel->leave(); });
  tree_report packed;
  auto ok = pack_local(*source, at->top, *channel, packed);
  // One that has ended says why, better than that nobody reads.
  bool local = !ok && !unpacked.ready();
  ok ? channel->end() : channel->abandon();
  auto done = unpacked.get();
  if (local)
    return named(ok.error());
  if (!done)
    return named(done.error());
  return both(what, source->is_directory, std::move(packed), std::move(*done));
}

result<tree_report>
do_download(const sandbox& box, const std::string& from, const std::filesystem::path& to) {
  auto what = fmt::format("download {} to {}", from, to.string());
  auto named = [&](const error& e) {
    return error{e.code, fmt::format("{}: {}", what, e.message)};
  };
  auto found = box.stat(from).get();
  if (!found)
    return named(found.error());
  if (found->type == file_type::other)
    return named({errc::invalid_argument, "it is a device, a FIFO or a socket"});
  bool is_directory = found->type == file_type::directory;
  auto at = land(from, is_directory, to.native(), look_here);
  if (!at)
    return named(at.error());
  auto channel = std::make_shared<downward_channel>();
  auto packed = box.pack(from, channel);
  packed.then(
    [channel](const result<tree_report>& x) { x ? channel->end() : channel->fail(x.error()); });
  tree_report unpacked;
  auto ok = unpack_local(*channel, *at, unpacked);
  if (!ok)
    channel->abandon();
  auto done = packed.get();
  // One that broke off looks damaged from here: why is known over there.
  if (!done && (ok || ok.error().code == errc::corrupt))
    return named(done.error());
  if (!ok)
    return named(ok.error());
  return both(what, is_directory, std::move(*done), std::move(unpacked));
}

template <class Do>
future<tree_report> beside(const std::shared_ptr<runtime_core>& core, Do work) {
  future<tree_report> answer;
  core->workers().run([answer, work = std::move(work)](bool closed) {
    answer.fulfill(closed ? result<tree_report>{runtime_core::closed_error()} : work());
  });
  return answer;
}

future<tree_report>
move_tree(const std::shared_ptr<runtime_core>& core, const sandbox_id& id, file_request request) {
  file_message message{std::make_shared<const file_request>(std::move(request))};
  return core->ask<tree_report>([=](requester* self, const debt<tree_report>& owed) {
    ask_sandbox<file_reply_ptr>(
      self, id, message, [=](const file_reply_ptr& x) { owed.pay(x->tree); },
      [=](const error& e, const sandbox_info*) { owed.pay(e); });
  });
}

} // namespace

future<tree_report> sandbox::unpack(std::string path, std::shared_ptr<input_source> archive) const {
  return move_tree(state_->core, state_->id, tree_write{std::move(path), std::move(archive)});
}

future<tree_report> sandbox::pack(std::string path, std::shared_ptr<archive_sink> archive) const {
  return move_tree(state_->core, state_->id, tree_read{std::move(path), std::move(archive)});
}

future<tree_report> sandbox::upload(std::filesystem::path from, std::string to) const {
  return beside(state_->core, [box = *this, from = std::move(from), to = std::move(to)] {
    return do_upload(box, from, to);
  });
}

future<tree_report> sandbox::download(std::string from, std::filesystem::path to) const {
  return beside(state_->core, [box = *this, from = std::move(from), to = std::move(to)] {
    return do_download(box, from, to);
  });
}

} // namespace dsec
