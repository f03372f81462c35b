#include "backends/init/replacement.hpp"

#include "backends/init/file_open.hpp"
#include "backends/init/file_task.hpp"
#include "backends/tree/draft.hpp"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace dsec::init {

namespace {

constexpr int links_max = 40;
constexpr std::size_t path_bytes_max = 4095;
constexpr char commit = 'c';
constexpr char drop = 'd';

/// Where the new file goes.
struct target {
  kj::AutoCloseFd folder;
  std::string name;
  bool exists = false;

  struct stat old {};
};

/// Follows final links as an open would. Returns 0 or an errno value.
int find(const file_request& request, int root, target& to) {
  std::string path = request.path;
  for (int links = 0; links < links_max; ++links) {
    if (path.size() > path_bytes_max)
      return ENAMETOOLONG;
    if (request.make_parents)
      if (int number = make_parents(root, path.c_str()))
        return number;
    const auto slash = path.rfind('/');
    const auto folder = path.substr(0, slash + 1);
    to.name = path.substr(slash + 1);
    if (to.name.empty() || to.name == "." || to.name == "..")
      return EISDIR;
    to.folder = open_beneath(root, folder.c_str(), O_PATH | O_DIRECTORY, 0);
    if (to.folder.get() < 0)
      return errno;
    to.exists = ::fstatat(to.folder, to.name.c_str(), &to.old, AT_SYMLINK_NOFOLLOW) == 0;
    if (!to.exists)
      return errno == ENOENT ? 0 : errno;
    if (S_ISDIR(to.old.st_mode))
      return EISDIR;
    if (S_ISREG(to.old.st_mode))
      return 0;
    if (!S_ISLNK(to.old.st_mode))
      return ENXIO;
    char text[path_bytes_max + 1];
    const ssize_t n = ::readlinkat(to.folder, to.name.c_str(), text, sizeof text);
    if (n < 0)
      return errno;
    const std::string link{text, static_cast<std::size_t>(n)};
    path = link.starts_with('/') ? link : folder + link;
  }
  return ELOOP;
}

[[noreturn]] void refuse(int socket, int number) {
  file_reading status;
  status.number = number;
  tell(socket, status, -1);
  ::_exit(0);
}

/// The life of the process that keeps watch.
[[noreturn]] void
keep(const file_request& request, int user_namespace, int mount_namespace, int socket) {
  if (int number = enter_inside(user_namespace, mount_namespace))
    refuse(socket, number);
  const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  target to;
  if (int number = root < 0 ? errno : find(request, root, to))
    refuse(socket, number);
  const auto draft = draft_name();
  kj::AutoCloseFd file{
    ::openat(to.folder, draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (file.get() < 0)
    refuse(socket, errno);
  int number = 0;
  const auto mode = to.exists ? to.old.st_mode & 07777 : request.permissions & 07777;
  if ((to.exists && ::fchown(file, to.old.st_uid, to.old.st_gid) != 0) || ::fchmod(file, mode) != 0)
    number = errno;
  file_reading status;
  status.number = number;
  tell(socket, status, number == 0 ? file.get() : -1);
  file = nullptr;
  char word = 0;
  ssize_t n;
  do
    n = ::recv(socket, &word, 1, 0);
  while (n < 0 && errno == EINTR);
  const bool wanted = number == 0 && n == 1 && word == commit;
  const bool placed =
    wanted && ::renameat(to.folder, draft.c_str(), to.folder, to.name.c_str()) == 0;
  status.number = placed ? 0 : errno;
  if (!placed)
    ::unlinkat(to.folder, draft.c_str(), 0);
  if (n == 1)
    tell(socket, status, -1);
  ::_exit(0);
}

} // namespace

kj::Promise<result<kj::Own<replacement>>>
replacement::begin(kj::UnixEventPort& port, task_graves& graves, file_request request,
                   int user_namespace, int mount_namespace) {
  using made = result<kj::Own<replacement>>;
  auto task = task_process::start(port, graves, [&](int socket) {
    keep(request, user_namespace, mount_namespace, socket);
  });
  if (!task)
    return made{task.error()};
  auto& keeper = **task;
  keeper.spare();
  return keeper.answer().then([task = kj::mv(*task)](result<file_answer>&& opened) mutable -> made {
    if (!opened)
      return opened.error();
    return kj::refcounted<replacement>(kj::mv(task), std::move(*opened));
  });
}

kj::Promise<result<int>> replacement::finish() {
  return end(commit);
}

kj::Promise<void> replacement::abandon() {
  return end(drop).ignoreResult();
}

kj::Promise<result<int>> replacement::end(char how) {
  opened_.file = nullptr;
  if (::send(keeper_->socket(), &how, 1, MSG_NOSIGNAL) != 1)
    return result<int>{errno_error(errno, "replace a file: tell its keeper")};
  return keeper_->answer().then(
    [self = kj::addRef(*this)](result<file_answer>&& x) mutable -> result<int> {
      self->keeper_->said_all();
      if (!x)
        return x.error();
      return x->status.number;
    });
}

} // namespace dsec::init
