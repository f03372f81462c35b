// The file API's paths. An agent plants links, folders, files and odd times in its tree, the node
// asks for any path of it: nothing outside is opened, made, changed or told of.

#include "backends/init/file_open.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/throwaway.hpp"

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <unistd.h>

using namespace dsec;
using namespace dsec::init;

namespace {

int tree = -1;

/// Few names, so that they meet; ways out, absolute, climbing and through /proc; and any bytes.
std::string path_of(fuzz::input& in) {
  static const char* const parts[] = {"a",
                                      "b",
                                      "c",
                                      "..",
                                      ".",
                                      "/",
                                      "//",
                                      "/..",
                                      "mnt",
                                      "/mnt/outside/secret",
                                      "outside",
                                      "secret",
                                      "/proc",
                                      "self",
                                      "root",
                                      "cwd",
                                      "fd",
                                      "/proc/self/fd/3",
                                      "/proc/self/root",
                                      "../../outside/secret",
                                      "/mnt/root",
                                      "../../../etc/passwd",
                                      "exe",
                                      "thread-self",
                                      "/a/b"};
  std::string path;
  for (auto n = in.below(6); n > 0; --n) {
    if (in.flag())
      path += '/';
    if (const auto which = in.below(sizeof parts / sizeof *parts + 1);
        which < sizeof parts / sizeof *parts)
      path += parts[which];
    else
      path += in.text();
  }
  // As the server has it checked before it asks.
  path.erase(std::min(path.find('\0'), path.size()));
  path.resize(std::min<std::size_t>(path.size(), 4095));
  return path;
}

/// The folder of a place, reached through no link: planting must not lead out by itself.
int folder_of(const std::string& place) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const auto slash = place.rfind('/');
  const auto folder = slash == std::string::npos ? "." : place.substr(0, slash);
  return static_cast<int>(::syscall(SYS_openat2, tree, folder.c_str(), &how, sizeof how));
}

/// The agent's own doing, in its tree: links lead wherever they like.
void plant(fuzz::input& in) {
  static const char* const places[] = {"a", "b", "c", "a/a", "a/b", "b/a", "b/b", "a/b/c"};
  const std::string place = in.one_of(places);
  const kj::AutoCloseFd folder{folder_of(place)};
  if (folder.get() < 0)
    return;
  const auto last = place.substr(place.rfind('/') + 1);
  const char* const name = last.c_str();
  switch (in.below(6)) {
  case 0:
    (void)!::symlinkat(path_of(in).c_str(), folder, name);
    break;
  case 1:
    (void)!::mkdirat(folder, name, 0755);
    break;
  case 2: {
    const kj::AutoCloseFd file{
      ::openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)};
    const timespec times[] = {{0, 0}, {in.number<std::int64_t>(), 1}};
    if (file.get() >= 0)
      (void)!(::ftruncate(file, in.byte()) + ::futimens(file, times));
    break;
  }
  case 3: {
    const std::string other = in.one_of(places);
    const kj::AutoCloseFd to{folder_of(other)};
    if (to.get() >= 0)
      (void)!::renameat(folder, name, to, other.substr(other.rfind('/') + 1).c_str());
    break;
  }
  case 4:
    if (::unlinkat(folder, name, 0) != 0)
      (void)!::unlinkat(folder, name, AT_REMOVEDIR);
    break;
  default:
    (void)!::mkfifoat(folder, name, 0644);
  }
}

void ask(fuzz::input& in) {
  static const file_task tasks[] = {file_task::open_read, file_task::open_write,
                                    file_task::open_append, file_task::open_directory,
                                    file_task::status};
  file_request request;
  request.task = in.one_of(tasks);
  request.path = '/' + path_of(in);
  request.permissions = in.number<std::uint16_t>();
  const bool writes =
    request.task == file_task::open_write || request.task == file_task::open_append;
  request.make_parents = writes && in.flag();
  const auto answer = open_in_root(request, tree);
  const auto& status = answer.status;
  if (answer.file.get() >= 0) {
    fuzz::throwaway::check_inside(answer.file);
    fuzz::claim(status.number == 0, "what is opened is no error");

    struct stat s {};

    fuzz::claim(::fstat(answer.file, &s) == 0, "an opened file has a status");
    fuzz::claim(request.task == file_task::open_directory ? S_ISDIR(s.st_mode) : S_ISREG(s.st_mode),
                "only what was asked for is opened", request.path);
  } else if (request.task != file_task::status) {
    fuzz::claim(status.number != 0, "nothing opened is an error");
  }
  fuzz::claim(status.size != fuzz::throwaway::secret_bytes, "nothing outside is told of",
              request.path);
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  fuzz::throwaway::enter(true);
  tree = ::open(fuzz::throwaway::root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::input in{bytes, size};
  for (int steps = 0; !in.empty() && steps < 64; ++steps)
    if (in.flag())
      plant(in);
    else
      ask(in);
  fuzz::throwaway::check_outside();
  fuzz::throwaway::clear();
  return 0;
}
