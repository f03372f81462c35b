#include "tests/fuzz/init_world.hpp"

#include "tests/fuzz/throwaway.hpp"

#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <unistd.h>

namespace dsec::fuzz {

namespace {

constexpr const char* counter_files[] = {"memory.current", "memory.peak",  "memory.swap.current",
                                         "memory.events",  "pids.current", "pids.events",
                                         "cpu.stat"};
constexpr int groups_made = 24;

int run_folder = -1, scratch_folder = -1, payload_folder = -1;
int user_namespace = -1, mount_namespace = -1;

void must(bool ok, const char* what) {
  if (ok)
    return;
  std::fprintf(stderr, "world of dsec-init: %s: %s\n", what, std::strerror(errno));
  std::exit(2);
}

int make_folder(const char* path) {
  must(::mkdir(path, 0755) == 0, path);
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  must(folder >= 0, path);
  return folder;
}

void write_file(int folder, const char* name, std::string_view text) {
  const kj::AutoCloseFd file{
    ::openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  must(file.get() >= 0
         && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()),
       name);
}

/// The namespaces of a sandbox whose root is the throwaway tree. Whoever made them may go: the
/// descriptors keep them.
void make_namespaces() {
  int ready[2], go[2];
  must(::pipe2(ready, O_CLOEXEC) == 0 && ::pipe2(go, O_CLOEXEC) == 0, "pipes");
  const pid_t pid = ::fork();
  must(pid >= 0, "fork");
  char byte = 'x';
  if (pid == 0) {
    must(::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "namespaces of a sandbox");
    must(::write(ready[1], &byte, 1) == 1 && ::read(go[0], &byte, 1) == 1, "id maps");
    const char* root = throwaway::root;
    must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0
           && ::mount(root, root, nullptr, MS_BIND | MS_REC, nullptr) == 0 && ::chdir(root) == 0
           && ::syscall(SYS_pivot_root, ".", ".") == 0 && ::umount2(".", MNT_DETACH) == 0,
         "the root of a sandbox");
    must(::write(ready[1], &byte, 1) == 1 && ::read(go[0], &byte, 1) == 1, "namespaces");
    ::_exit(0);
  }
  // Everything else is read-only.
  must(::mkdir("/mnt/proc", 0555) == 0
         && ::mount("proc", "/mnt/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0,
       "mount proc");
  const auto process = "/mnt/proc/" + std::to_string(pid);
  auto wait = [&] {
    must(::read(ready[0], &byte, 1) == 1, "a sandbox");
  };
  wait();
  for (const char* map : {"/uid_map", "/gid_map"}) {
    const kj::AutoCloseFd file{::open((process + map).c_str(), O_WRONLY | O_CLOEXEC)};
    must(::write(file, "0 0 65536\n", 10) == 10, map);
  }
  must(::write(go[1], &byte, 1) == 1, "go");
  wait();
  user_namespace = ::open((process + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC);
  mount_namespace = ::open((process + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC);
  must(user_namespace >= 0 && mount_namespace >= 0, "open the namespaces");
  must(::write(go[1], &byte, 1) == 1 && ::waitpid(pid, nullptr, 0) == pid
         && ::umount2("/mnt/proc", MNT_DETACH) == 0,
       "end");
  for (int fd : {ready[0], ready[1], go[0], go[1]})
    ::close(fd);
}

std::string program_of(const std::string& process) {
  char path[4096];
  const auto size = ::readlink((process + "/exe").c_str(), path, sizeof path);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : std::string{};
}

bool is_zombie(const std::string& process) {
  std::ifstream file{process + "/stat"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto name_end = text.rfind(')');
  return name_end == text.npos || text.substr(name_end).starts_with(") Z");
}

/// The agent's tree as it is at the beginning.
void furnish() {
  throwaway::clear();
  const int tree = ::open(throwaway::root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  must(::mkdirat(tree, "etc", 0755) == 0 && ::mkdirat(tree, "a", 0755) == 0
         && ::symlinkat("/a", tree, "link") == 0 && ::mkfifoat(tree, "fifo", 0644) == 0,
       "furnish the root");
  write_file(tree, "etc/passwd", "root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/:/bin/sh\n");
  write_file(tree, "etc/group", "wheel:x:10:root,agent\n");
  ::close(tree);
}

/// A process that was forked here and runs this program still: a task inside the sandbox, but no
/// child of the sanitizers.
bool a_task_lives() {
  const auto process = "/proc/" + std::to_string(::getpid());
  std::ifstream children{process + "/task/" + std::to_string(::getpid()) + "/children"};
  const auto own = program_of(process);
  for (pid_t pid; children >> pid;) {
    const auto child = "/proc/" + std::to_string(pid);
    const auto program = program_of(child);
    // One that is about to end has no program and its descriptors still.
    if (program == own || (program.empty() && !is_zombie(child)))
      return true;
  }
  return false;
}

int copy_of(int fd) {
  return ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

} // namespace

struct init_world::io_provider final : kj::AsyncIoProvider {
  explicit io_provider(kj::Timer& t) : timer{t} {}

  kj::OneWayPipe newOneWayPipe() override {
    KJ_UNIMPLEMENTED("not here");
  }

  kj::TwoWayPipe newTwoWayPipe() override {
    KJ_UNIMPLEMENTED("not here");
  }

  kj::Network& getNetwork() override {
    KJ_UNIMPLEMENTED("not here");
  }

  PipeThread newPipeThread(
    kj::Function<void(kj::AsyncIoProvider&, kj::AsyncIoStream&, kj::WaitScope&)>) override {
    KJ_UNIMPLEMENTED("not here");
  }

  kj::Timer& getTimer() override {
    return timer;
  }

  kj::Timer& timer;
};

void init_world::prepare() {
  throwaway::enter(false);
  run_folder = make_folder("/mnt/run");
  scratch_folder = make_folder("/mnt/scratch");
  payload_folder = make_folder("/mnt/payload");
  for (const char* name : counter_files)
    write_file(payload_folder, name, "0\n");
  write_file(payload_folder, "cgroup.freeze", "0");
  // Both at once: whatever the freezer waits for has happened.
  write_file(payload_folder, "cgroup.events", "populated 0\nfrozen 0\nfrozen 1\n");
  for (int i = 0; i < groups_made; ++i) {
    const auto group = "/mnt/payload/e" + std::to_string(i);
    const kj::AutoCloseFd folder{make_folder(group.c_str())};
    for (const char* name : {"cgroup.kill", "cgroup.procs", "cgroup.freeze"})
      write_file(folder, name, "");
    write_file(folder, "cgroup.events", "populated 0\nfrozen 0\n");
  }
  const auto pts = std::string{throwaway::root} + "/dev/pts";
  must(::mkdir((std::string{throwaway::root} + "/dev").c_str(), 0755) == 0
         && ::mkdir(pts.c_str(), 0755) == 0
         && ::mount("devpts", pts.c_str(), "devpts", MS_NOSUID | MS_NOEXEC,
                    "newinstance,ptmxmode=0666,mode=0620,gid=5,max=64")
              == 0,
       "mount devpts");
  make_namespaces();
}

init_world::init_world() : loop_{port}, scope{loop_}, timer_{kj::origin<kj::TimePoint>()} {
  furnish();
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  socklen_t size = sizeof where;
  // An abstract name that the kernel chooses.
  must(::bind(listener, reinterpret_cast<sockaddr*>(&where), sizeof where.sun_family) == 0
         && ::listen(listener, 8) == 0
         && ::getsockname(listener, reinterpret_cast<sockaddr*>(&where), &size) == 0,
       "listen");
  address_.assign(reinterpret_cast<char*>(&where), size);
  int ends[2];
  must(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
       "PID 1's socket");
  // Stands for the pidfd: it becomes readable with PID 1's end, and takes no signal.
  death_ = kj::AutoCloseFd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  reaper_ = std::make_unique<played_reaper>(kj::AutoCloseFd{ends[1]}, death_);
  init::launch given;
  given.reaper_socket = ends[0];
  given.reaper_pidfd = death_;
  given.run_dir = run_folder;
  given.scratch_dir = scratch_folder;
  given.payload_v2 = payload_folder;
  given.memory_bytes = 64 << 20;
  given.processes = 1000;
  given.disk_bytes = 1 << 20;
  init::privileged_files files;
  files.user_namespace = kj::AutoCloseFd{copy_of(user_namespace)};
  files.mount_namespace = kj::AutoCloseFd{copy_of(mount_namespace)};
  files.null_device = kj::AutoCloseFd{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  kj::AsyncIoContext io{kj::Own<kj::LowLevelAsyncIoProvider>{}, kj::heap<io_provider>(timer_),
                        scope, port};
  sandbox_ = std::make_unique<init::sandbox>(std::move(given), kj::mv(files), io);
  gate_ = std::make_unique<init::gate>(*sandbox_, kj::AutoCloseFd{listener});
  init::assignment whose;
  whose.sandbox_id = "n00000001-1";
  sandbox_->become(whose);
  running_ = sandbox_->run().then([this] { over_ = true; }).eagerlyEvaluate([](kj::Exception&&) {});
  accepting_ = gate_->run().eagerlyEvaluate([](kj::Exception&&) {});
}

init_world::~init_world() noexcept(false) {
  end();
}

void init_world::end() {
  if (!sandbox_)
    return;
  reaper_->die();
  // What is told of the end waits a while for its readers.
  for (int i = 0; i < 4; ++i)
    pass(1 * kj::SECONDS);
  claim(over_, "dsec-init is over when PID 1 is");
  accepting_ = nullptr;
  gate_ = nullptr;
  // Calls that were under way go on without their connections, and end before the sandbox that they
  // use. dsec-init itself takes nothing apart.
  come_to_rest();
  for (int i = 0; i < 4; ++i)
    pass(10 * kj::SECONDS);
  come_to_rest();
  running_ = nullptr;
  sandbox_ = nullptr;
  // Those whose caller went away were killed. Not waited for: the sanitizers have a child as well.
  while (::waitpid(-1, nullptr, WNOHANG) > 0)
    ;
}

kj::AutoCloseFd init_world::connect() {
  kj::AutoCloseFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  must(::connect(socket, reinterpret_cast<const sockaddr*>(address_.data()),
                 static_cast<socklen_t>(address_.size()))
         == 0,
       "connect");
  return socket;
}

void init_world::settle() {
  scope.poll();
  reaper_->read_requests();
}

void init_world::come_to_rest() {
  // Processes, and the thread of a reclaim: their end is an event of the loop, which may begin
  // more.
  const auto at_work = [this] {
    return sandbox_->freeze.busy() || a_task_lives();
  };
  do {
    settle();
    ::sched_yield();
  } while (at_work() || (settle(), at_work()));
}

void init_world::pass(kj::Duration time) {
  timer_.advanceTo(timer_.now() + time);
  settle();
}

void init_world::write_counter(std::size_t which, std::string_view text) {
  write_file(payload_folder, counter_files[which % (sizeof counter_files / sizeof *counter_files)],
             text);
}

} // namespace dsec::fuzz
