#include "backends/init/tree_task.hpp"

#include "backends/init/capabilities.hpp"
#include "backends/init/file_open.hpp"
#include "backends/init/file_task.hpp"
#include "backends/init/seccomp_filter.hpp"
#include "backends/tree/extract.hpp"
#include "backends/tree/pack.hpp"
#include "backends/tree/refusals.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <new>
#include <unistd.h>

namespace dsec::init {

namespace {

/// For the windows of decompressors (xz -9: 64 MiB, zstd: 128 MiB) and what a tree needs.
constexpr rlim_t memory_bytes_max = 512 << 20;

// -- what is left in the memory file

void put(std::string& to, std::uint64_t number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put(std::string& to, std::string_view text) {
  put(to, static_cast<std::uint64_t>(text.size()));
  to += text;
}

/// Reads what `put` wrote; what is missing reads as nothing.
struct cursor {
  std::string_view rest;

  std::uint64_t number() {
    std::uint64_t x = 0;
    if (rest.size() < sizeof x)
      return 0;
    std::memcpy(&x, rest.data(), sizeof x);
    rest.remove_prefix(sizeof x);
    return x;
  }

  std::string text() {
    const auto size = std::min<std::uint64_t>(number(), rest.size());
    std::string x{rest.substr(0, size)};
    rest.remove_prefix(size);
    return x;
  }
};

std::string outcome_of(const result<void>& ended, const tree_report& report) {
  std::string text;
  put(text, ended ? 0 : static_cast<std::uint64_t>(ended.error().code));
  put(text, ended ? std::string_view{} : std::string_view{ended.error().message});
  put(text, report.entries);
  put(text, report.bytes);
  put(text, report.refused_total);
  put(text, report.refused.size());
  for (const auto& x : report.refused) {
    put(text, x.path);
    put(text, x.why);
  }
  return text;
}

[[noreturn]] void
leave(int memory, int socket, const result<void>& ended, const tree_report& report) {
  const auto text = outcome_of(ended, report);
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(memory, text.data() + at, text.size() - at);
    if (n < 0)
      break;
    at += static_cast<std::size_t>(n);
  }
  tell(socket, {}, -1);
  ::_exit(0);
}

// -- what it gives up

/// Bytes of strangers are decompressed and taken apart here: nothing but files is in reach.
result<void> confine() {
  constexpr std::uint64_t kept = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE
                                 | 1ULL << CAP_DAC_READ_SEARCH | 1ULL << CAP_FOWNER
                                 | 1ULL << CAP_FSETID;
  if (int number = keep_capabilities(kept))
    return errno_error(number, "capabilities");
  const rlimit memory{memory_bytes_max, memory_bytes_max};
  ::setrlimit(RLIMIT_DATA, &memory);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  seccomp_filter f;
  for (long number : {SYS_fork,
                      SYS_vfork,
                      SYS_clone,
                      SYS_clone3,
                      SYS_socket,
                      SYS_socketpair,
                      SYS_connect,
                      SYS_bind,
                      SYS_listen,
                      SYS_accept,
                      SYS_accept4,
                      SYS_kill,
                      SYS_tkill,
                      SYS_tgkill,
                      SYS_setns,
                      SYS_pidfd_open,
                      SYS_pidfd_send_signal,
                      SYS_prlimit64,
                      SYS_setuid,
                      SYS_setresuid,
                      SYS_mount_setattr,
                      SYS_chroot})
    f.refuse(number, EPERM);
  if (int number = f.install())
    return errno_error(number, "seccomp");
  return {};
}

/// Only what it needs: dsec-init's own descriptors lead to more than files.
void close_others(int& pipe, int& memory, int& socket) {
  for (int* each : {&pipe, &memory, &socket})
    *each = ::fcntl(*each, F_DUPFD, 100);
  int at = 3;
  for (int* each : {&pipe, &memory, &socket})
    *each = ::dup2(*each, at++);
  ::syscall(SYS_close_range, static_cast<unsigned>(at), ~0U, 0);
}

// -- what it does

result<void>
unpack(const std::string& path, int root, int pipe, const std::string& what, tree_report& report) {
  auto folder = open_beneath(root, path.c_str(), O_PATH | O_DIRECTORY, 0);
  const bool is_new = folder.get() < 0 && errno == ENOENT;
  if (is_new) {
    if (int number = make_parents(root, (path + "/.").c_str()))
      return errno_error(number, what);
    folder = open_beneath(root, path.c_str(), O_PATH | O_DIRECTORY, 0);
  }
  if (folder.get() < 0 && (errno == ENOTDIR || errno == EXDEV || errno == ELOOP))
    return error{errc::invalid_argument, errno_error(errno, what).message};
  if (folder.get() < 0)
    return errno_error(errno, what);
  static archive_file_source from{pipe};
  extract_rules rules;
  rules.set_root = is_new;
  refusals refused{report};
  return extract_archive(
    from, folder, rules, what,
    [&](std::string_view entry, std::string_view why) { refused.add(entry, why); }, report);
}

result<void>
pack(const std::string& path, int root, int pipe, const std::string& what, tree_report& report) {
  const auto [folder_path, name] = folder_and_name(path);
  auto folder = open_beneath(root, folder_path.c_str(), O_PATH | O_DIRECTORY, 0);
  if (folder.get() < 0)
    return errno_error(errno, what);
  archive_file_target to{pipe};
  refusals refused{report};
  return pack_tree(
    folder, name, {name == "." ? "" : name, true}, to, what,
    [&](std::string_view entry, std::string_view why) { refused.add(entry, why); }, report);
}

} // namespace

void serve_tree_task(const tree_request& request, int pipe, int memory_file, int socket) {
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_NAME, "dsec-tree");
  tree_report report;
  const auto what = (request.direction == tree_direction::unpack ? "unpack below '" : "pack '")
                    + request.path + "'";
  auto failed = [&](const error& e) {
    leave(memory_file, socket, error{e.code, what + ": " + e.message}, report);
  };
  if (int number = enter_inside(request.user_namespace, request.mount_namespace))
    failed(errno_error(number, "enter the sandbox"));
  close_others(pipe, memory_file, socket);
  // After the change of credentials, which takes it back.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent)
    ::_exit(1);
  const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0)
    failed(errno_error(errno, "open its root"));
  if (auto ok = confine(); !ok)
    failed(ok.error());
  result<void> ended;
  try {
    ended = request.direction == tree_direction::unpack
              ? unpack(request.path, root, pipe, what, report)
              : pack(request.path, root, pipe, what, report);
  } catch (const std::bad_alloc&) {
    ended = error{errc::exhausted, what + ": more than 512 MiB of memory would be needed"};
  } catch (const std::exception& fault) {
    ended = error{errc::unavailable, what + ": " + fault.what()};
  }
  // The archive's end, ahead of the answer.
  ::close(pipe);
  leave(memory_file, socket, ended, report);
}

result<tree_report> read_tree_outcome(std::string_view text) {
  cursor from{text};
  const auto code = from.number();
  auto message = from.text();
  if (code != 0)
    return error{static_cast<errc>(code), std::move(message)};
  tree_report report;
  report.entries = from.number();
  report.bytes = from.number();
  report.refused_total = from.number();
  for (auto n = from.number(); n > 0 && !from.rest.empty(); --n) {
    auto path = from.text();
    report.refused.push_back({std::move(path), from.text()});
  }
  return report;
}

} // namespace dsec::init
