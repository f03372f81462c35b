#include "tests/kernel/init/private_sandbox.hpp"

#include "backends/init/confine.hpp"
#include "backends/init/launch.hpp"
#include "backends/init/reaper_protocol.hpp"

#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sched.h>
#include <stdexcept>
#include <unistd.h>

namespace dsec::test {

namespace {

namespace fs = std::filesystem;

constexpr unsigned id_base = 1'000'000;
constexpr const char* hierarchies[] = {"unified", "memory", "pids", "cpu"};

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "private sandbox: %s: %s\n", what, std::strerror(errno));
  ::_exit(3);
}

void must(bool ok, const char* what) {
  if (!ok)
    die(what);
}

void write_file(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || ::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("write " + path + ": " + std::strerror(errno));
  ::close(fd);
}

int sealed_reaper() {
  const int fd = ::memfd_create("dsec-reaper", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  const auto program = init::reaper_program();
  must(fd >= 0 && ::write(fd, program.bytes, program.size) == static_cast<ssize_t>(program.size),
       "write the reaper");
  must(::fchmod(fd, 0111) == 0, "chmod the reaper");
  must(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0,
       "seal the reaper");
  const int read_only =
    ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC);
  must(read_only >= 0, "reopen the reaper");
  ::close(fd);
  return read_only;
}

/// The file system of the sandbox, as the host's root makes it: what dsec-init probes for a full
/// disk.
void mount_disk(const std::string& folder, std::uint64_t disk_bytes) {
  const auto root = folder + "/root";
  must(::unshare(CLONE_NEWNS) == 0
         && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0,
       "make / private");
  const auto base = std::to_string(id_base);
  const auto options =
    "mode=755,uid=" + base + ",gid=" + base + ",size=" + std::to_string(disk_bytes);
  must(::mount("tmpfs", root.c_str(), "tmpfs", 0, options.c_str()) == 0, "mount the root");
  must(::mkdir((root + "/scratch").c_str(), 0755) == 0, "make the scratch folder");
}

void build_root(const std::string& folder) {
  const auto root = folder + "/root";
  // A mount of its own: the one that came from the host may not become a root.
  must(::mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr) == 0, "bind the root");
  fs::copy(folder + "/template", root,
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  for (const char* name : {"/proc", "/dev", "/tmp", "/root", "/etc", "/home"})
    fs::create_directory(root + name);
  ::chmod((root + "/tmp").c_str(), 01777);
  write_file(root + "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
                                   "agent:x:1000:1000::/home:/bin/sh\n");
  write_file(root + "/etc/group", "root:x:0:\nagent:x:1000:\nwheel:x:10:root,agent\nidle:x:11:\n");
  for (const std::string device : {"/dev/null", "/dev/zero"}) {
    write_file(root + device, "");
    must(::mount(device.c_str(), (root + device).c_str(), nullptr, MS_BIND, nullptr) == 0,
         "bind a device");
  }
  must(::mount("proc", (root + "/proc").c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr)
         == 0,
       "mount proc");
  fs::create_directory(root + "/dev/pts");
  must(::mount("devpts", (root + "/dev/pts").c_str(), "devpts", MS_NOSUID | MS_NOEXEC,
               "ptmxmode=0666,mode=0620,gid=5")
         == 0,
       "mount devpts");
  must(::chdir(root.c_str()) == 0 && ::syscall(SYS_pivot_root, ".", ".") == 0
         && ::umount2(".", MNT_DETACH) == 0 && ::chdir("/") == 0,
       "pivot_root");
}

[[noreturn]] void become_reaper(const std::string& folder, int go, int socket, int program) {
  char byte;
  must(::read(go, &byte, 1) == 1, "wait for the id maps");
  must(::setresgid(0, 0, 0) == 0 && ::setresuid(0, 0, 0) == 0, "become root inside");
  errno = init::forbid_user_namespaces();
  must(errno == 0, "forbid user namespaces");
  build_root(folder);
  must(::fcntl(program, F_DUPFD_CLOEXEC, 100) == 100, "place the program");
  must(::dup2(socket, init::reaper::socket_fd) >= 0, "place the socket");
  const char* stage = "";
  if (int number = init::confine_payload(false, &stage)) {
    errno = number;
    die(stage);
  }
  const char* argv[] = {"dsec-reaper", nullptr};
  const char* env[] = {nullptr};
  ::syscall(SYS_execveat, 100, "", argv, env, AT_EMPTY_PATH);
  die("exec the reaper");
}

int open_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  must(fd >= 0, path.c_str());
  return fd;
}

/// The process that becomes dsec-init. Tells the reaper's pid on `report`.
[[noreturn]] void launch_here(const std::string& folder, const std::string& name,
                              private_sandbox_options options, int listener, int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL); // A test that is killed leaves nothing.
  // PID 1 clones commands from this group into those of the payload below it.
  const auto unified = "/sys/fs/cgroup/unified/" + name;
  write_file(unified + "/cgroup.procs", "0");
  mount_disk(folder, options.disk_bytes);
  if (!options.kernel_log)
    must(::mount("/dev/null", "/dev/kmsg", nullptr, MS_BIND, nullptr) == 0, "cover the kernel log");
  const int program = sealed_reaper();
  int ends[2], go[2], pidfd = -1;
  must(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  must(::pipe2(go, O_CLOEXEC) == 0, "pipe");
  clone_args how{};
  how.flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_PIDFD;
  how.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  how.exit_signal = SIGCHLD;
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &how, sizeof how));
  must(pid >= 0, "clone");
  if (pid == 0)
    become_reaper(folder, go[0], ends[1], program);
  const auto process = "/proc/" + std::to_string(pid);
  const auto map = "0 " + std::to_string(id_base) + " 65536\n";
  write_file(process + "/uid_map", map);
  write_file(process + "/gid_map", map);
  must(::write(go[1], "x", 1) == 1, "go");
  ::close(ends[1]);
  char peek;
  must(::recv(ends[0], &peek, 1, MSG_PEEK) > 0, "wait for the reaper");

  init::launch given;
  given.listener = listener;
  given.reaper_socket = ends[0];
  given.reaper_pidfd = pidfd;
  given.reaper_pid = pid;
  given.run_dir = open_folder(folder + "/run");
  given.scratch_dir = open_folder(process + "/root/scratch");
  given.payload_v2 = open_folder(unified + "/payload");
  given.memory_v1 = open_folder("/sys/fs/cgroup/memory/" + name);
  given.pids_v1 = open_folder("/sys/fs/cgroup/pids/" + name);
  given.cpu_v1 = open_folder("/sys/fs/cgroup/cpu/" + name);
  given.memory_bytes = options.memory_bytes;
  given.processes = options.processes;
  given.disk_bytes = options.disk_bytes;
  given.for_assigning = {report};
  init::supervise(std::move(given), [&](const result<void>& complete) {
    must(complete && ::write(report, &pid, sizeof pid) == sizeof pid, "report");
    return init::assignment{name, options.pause_after_ms, options.stop_after_ms};
  });
}

} // namespace

std::string private_sandbox::missing() {
  if (::geteuid() != 0)
    return "needs root";
  if (::access("/bin/busybox", X_OK) != 0)
    return "needs /bin/busybox (package busybox-static)";
  for (const char* hierarchy : hierarchies)
    if (!fs::exists(std::string("/sys/fs/cgroup/") + hierarchy + "/cgroup.procs"))
      return std::string("needs /sys/fs/cgroup/") + hierarchy;
  return "";
}

std::string private_sandbox::group(const char* hierarchy) const {
  return std::string("/sys/fs/cgroup/") + hierarchy + "/" + name_;
}

std::string private_sandbox::payload() const {
  return group("unified") + "/payload";
}

private_sandbox::private_sandbox(private_sandbox_options options) {
  static int made = 0;
  char pattern[] = "/tmp/dsec-init-test-XXXXXX";
  if (!::mkdtemp(pattern))
    throw std::runtime_error("make a temporary folder");
  folder_ = pattern;
  name_ = "dsec-init-test-" + std::to_string(::getpid()) + "-" + std::to_string(made++);
  for (const char* name : {"/run", "/root", "/template", "/template/bin"})
    fs::create_directory(folder_ + name);
  ::chmod(folder_.c_str(), 0755);
  fs::copy_file("/bin/busybox", folder_ + "/template/bin/busybox");
  fs::copy_file(DSEC_WALL_PROBE, folder_ + "/template/bin/wall_probe");
  for (const char* applet :
       {"sh",    "true", "false", "cat",    "echo", "sleep", "env",  "id",   "head", "yes",
        "ls",    "rm",   "mkdir", "mkfifo", "ln",   "mv",    "dd",   "kill", "wc",   "touch",
        "chmod", "tail", "ps",    "test",   "seq",  "tr",    "stat", "tee",  "pwd",  "setsid"})
    fs::create_symlink("busybox", folder_ + "/template/bin/" + applet);
  for (const char* hierarchy : hierarchies)
    fs::create_directory(group(hierarchy));
  fs::create_directory(payload());
  if (::chown((group("unified") + "/cgroup.procs").c_str(), id_base, id_base) != 0)
    throw std::runtime_error("chown cgroup.procs");
  const auto bytes = std::to_string(options.memory_bytes);
  write_file(group("memory") + "/memory.limit_in_bytes", bytes);
  write_file(group("memory") + "/memory.memsw.limit_in_bytes", bytes);
  write_file(group("pids") + "/pids.max", std::to_string(options.processes));

  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::snprintf(where.sun_path, sizeof where.sun_path, "%s", socket_path().c_str());
  if (::bind(listener, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0
      || ::listen(listener, 64) != 0)
    throw std::runtime_error("listen on " + socket_path());
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0)
    throw std::runtime_error("pipe");
  supervisor_ = ::fork();
  if (supervisor_ == 0)
    launch_here(folder_, name_, options, listener, report[1]);
  ::close(listener);
  ::close(report[1]);
  const bool told = ::read(report[0], &reaper_, sizeof reaper_) == sizeof reaper_;
  ::close(report[0]);
  if (!told)
    throw std::runtime_error("the sandbox could not be built");
}

private_sandbox::~private_sandbox() {
  if (!supervisor_reaped_) {
    ::kill(supervisor_, SIGKILL);
    ::waitpid(supervisor_, nullptr, 0);
  }
  // dsec-init gone, the reaper ends and its pid namespace with it.
  std::error_code ignored;
  {
    std::ofstream(payload() + "/cgroup.kill") << "1";
    std::ofstream(payload() + "/cgroup.freeze") << "0";
  }
  payload_empties(5000);
  for (const auto& folder : {payload(), group("memory"), group("pids")})
    for (const auto& child : fs::directory_iterator(folder, ignored))
      if (child.is_directory(ignored))
        ::rmdir(child.path().c_str());
  ::rmdir(payload().c_str());
  for (const char* hierarchy : hierarchies)
    for (int i = 0; i < 100 && ::rmdir(group(hierarchy).c_str()) != 0 && errno == EBUSY; ++i)
      ::poll(nullptr, 0, 10);
  fs::remove_all(folder_, ignored);
}

std::string private_sandbox::socket_path() const {
  return folder_ + "/run/" + name_ + ".sock";
}

std::string private_sandbox::tombstone(int wait_ms) const {
  for (int waited = 0;; waited += 10) {
    std::ifstream in(folder_ + "/run/" + name_ + ".end");
    if (in)
      return {std::istreambuf_iterator<char>(in), {}};
    if (waited >= wait_ms)
      return "";
    ::poll(nullptr, 0, 10);
  }
}

std::vector<pid_t> private_sandbox::payload_pids() const {
  std::vector<pid_t> all;
  std::error_code ignored;
  for (const auto& child : fs::directory_iterator(payload(), ignored)) {
    if (!child.is_directory(ignored))
      continue;
    std::ifstream in(child.path() / "cgroup.procs");
    for (pid_t pid; in >> pid;)
      all.push_back(pid);
  }
  return all;
}

bool private_sandbox::payload_empties(int wait_ms) const {
  for (int waited = 0; !payload_pids().empty(); waited += 10) {
    if (waited >= wait_ms)
      return false;
    ::poll(nullptr, 0, 10);
  }
  return true;
}

bool private_sandbox::supervisor_ended(int wait_ms) {
  for (int waited = 0; waited <= wait_ms; waited += 10) {
    if (::waitpid(supervisor_, nullptr, WNOHANG) == supervisor_)
      return supervisor_reaped_ = true;
    ::poll(nullptr, 0, 10);
  }
  return false;
}

} // namespace dsec::test
