#include "tests/fuzz/played_reaper.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace dsec::fuzz {

namespace reaper = init::reaper;

void played_reaper::read_requests() {
  alignas(
    reaper::spawn_request) char datagram[sizeof(reaper::spawn_request) + reaper::inline_bytes_max];
  while (socket_.get() >= 0) {
    iovec part{datagram, sizeof datagram};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 2 * reaper::descriptors_max)];
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const auto size = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size <= 0)
      return;
    claim((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0, "PID 1 can take what it is sent");
    std::vector<kj::AutoCloseFd> files;
    if (auto* header = CMSG_FIRSTHDR(&message))
      for (std::size_t at = 0; CMSG_LEN(at) < header->cmsg_len; at += sizeof(int)) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
        files.emplace_back(fd);
      }
    reaper::verb what{};
    std::memcpy(&what, datagram, sizeof what);
    const auto bytes = static_cast<std::size_t>(size);
    if (what == reaper::verb::spawn)
      note_spawn({datagram, bytes}, std::move(files));
    else if (what == reaper::verb::signal)
      claim(bytes == sizeof(reaper::signal_request) && files.empty(), "a whole signal request");
    else
      note_keep({datagram, bytes}, std::move(files));
  }
}

void played_reaper::note_keep(std::string_view datagram, std::vector<kj::AutoCloseFd> files) {
  reaper::keep_request request;
  claim(datagram.size() == sizeof request, "a whole keep request");
  std::memcpy(&request, datagram.data(), sizeof request);
  claim(request.what == reaper::verb::keep && request.join_count <= reaper::joins_max
          && files.size() == 2 + request.join_count,
        "the descriptors of a keep request");
  births_ = kj::mv(files[1]);
}

void played_reaper::note_spawn(std::string_view datagram, std::vector<kj::AutoCloseFd> files) {
  claim(datagram.size() >= sizeof(reaper::spawn_request), "a whole spawn request");
  reaper::spawn_request request;
  std::memcpy(&request, datagram.data(), sizeof request);
  const auto has = [&](reaper::spawn_flags flag) {
    return (request.flags & flag) != 0;
  };
  claim(!has(reaper::has_terminal) || has(reaper::has_input), "a terminal is an input");
  claim(request.group_count <= reaper::groups_max && request.uid <= 65535 && request.gid <= 65535,
        "ids that PID 1 can give");
  std::string block{datagram.substr(sizeof request)};
  std::size_t next = 2;
  if (has(reaper::has_block) && next < files.size()) {
    block.resize(request.block_bytes);
    claim(::pread(files[next++], block.data(), block.size(), 0)
            == static_cast<ssize_t>(block.size()),
          "the block is in its file");
  }
  claim(block.size() == request.block_bytes, "the block is as long as it is said to be");
  claim(request.argument_count > 0
          && static_cast<std::uint64_t>(std::count(block.begin(), block.end(), '\0'))
               == 1ull + request.argument_count + request.variable_count
          && block.starts_with('/') && block.back() == '\0',
        "the block holds the directory, the arguments and the variables");
  asked command;
  command.exec = request.exec_id;
  if (has(reaper::has_input) && next < files.size())
    command.input = kj::mv(files[next++]);
  if (has(reaper::has_status) && next < files.size())
    command.status = kj::mv(files[next++]);
  claim(request.group_join_count <= reaper::group_joins_max, "groups that PID 1 can join");
  if (has(reaper::has_group))
    next += 1 + request.group_join_count;
  claim(next == files.size() && next >= 2, "the descriptors that the flags name");
  command.out = kj::mv(files[0]);
  command.err = kj::mv(files[1]);
  for (int fd : {command.out.get(), command.err.get(), command.input.get()})
    if (fd >= 0)
      ::fcntl(fd, F_SETFL, O_NONBLOCK);
  commands_.push_back(kj::mv(command));
}

void played_reaper::tell(const void* bytes, std::size_t size) {
  if (socket_.get() >= 0)
    (void)!::send(socket_, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void played_reaper::run_on(asked& command, input& in) {
  reaper::event event;
  event.exec_id = command.exec;
  switch (in.below(8)) {
  case 0:
  case 1: {
    const auto text = in.text();
    const auto& to = in.flag() ? command.out : command.err;
    (void)!::write(to, text.data(), text.size());
    break;
  }
  case 2: {
    const std::string much(in.number<std::uint16_t>(), 'o');
    (void)!::write(command.out, much.data(), much.size());
    break;
  }
  case 3:
    (in.flag() ? command.out : command.err) = nullptr;
    break;
  case 4:
    command.status = nullptr;
    break;
  case 5: {
    char taken[4096];
    (void)!::read(command.input, taken, sizeof taken);
    if (in.below(4) == 0)
      command.input = nullptr;
    break;
  }
  case 6:
    event.what = in.flag() ? reaper::verb::exited : reaper::verb::signalled;
    event.value = in.flag() ? 0 : in.byte();
    tell(&event, sizeof event);
    command.status = nullptr;
    command.input = nullptr;
    // Or children of it live on and hold the streams.
    if (in.below(4) != 0) {
      command.out = nullptr;
      command.err = nullptr;
    }
    break;
  default:
    event.what = in.flag() ? reaper::verb::not_started : reaper::verb::not_cloned;
    event.value = in.flag() ? EAGAIN : in.byte();
    event.where = static_cast<reaper::stage>(in.below(8));
    tell(&event, sizeof event);
  }
}

void played_reaper::play(input& in) {
  switch (in.below(8)) {
  case 0: {
    // Forged: any event.
    reaper::event event;
    event.what = static_cast<reaper::verb>(in.below(10));
    event.value = in.number<std::int32_t>();
    event.exec_id = in.below(10);
    event.where = static_cast<reaper::stage>(in.byte());
    tell(&event, in.below(4) == 0 ? in.byte() % sizeof event : sizeof event);
    break;
  }
  case 1: {
    const auto bytes = in.text();
    tell(bytes.data(), bytes.size());
    break;
  }
  case 2: {
    // A birth, in time or not, of a command or of none.
    const reaper::birth told{in.below(10)};
    if (births_.get() >= 0)
      (void)!::send(births_, &told, in.below(8) == 0 ? in.below(sizeof told) : sizeof told,
                    MSG_DONTWAIT | MSG_NOSIGNAL);
    break;
  }
  case 3:
    // It dies, or only says so.
    if (in.below(8) == 0)
      close();
    else if (in.below(8) == 0)
      ::eventfd_write(death_, 1);
    break;
  default:
    if (!commands_.empty())
      run_on(commands_[in.below(commands_.size())], in);
  }
}

void played_reaper::close() {
  // Whatever was forked meanwhile holds it as well.
  if (socket_.get() >= 0)
    ::shutdown(socket_, SHUT_RDWR);
  socket_ = nullptr;
}

void played_reaper::die() {
  close();
  // And with it whatever it had started.
  commands_.clear();
  births_ = nullptr;
  ::eventfd_write(death_, 1);
}

} // namespace dsec::fuzz
