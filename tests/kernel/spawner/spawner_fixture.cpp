#include "tests/kernel/spawner/spawner_fixture.hpp"

#include "bench/waits.hpp"
#include "schemas/spawner.capnp.h"

#include <boost/test/unit_test.hpp>
#include <capnp/serialize.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unistd.h>

namespace fs = std::filesystem;

namespace dsec::test {

namespace {

constexpr const char* own_files[] = {"spawner.sock", "spawner.lock", "spawner.log",
                                     "layers",       "scratch",      "dev"};

std::string read_file(const fs::path& path) {
  // What goes while it is read (a process, a control group) reads as far as it came.
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void run(const std::string& command) {
  int status = std::system((command + " >/dev/null 2>&1").c_str());
  BOOST_REQUIRE_MESSAGE(status == 0, command << ": status " << status);
}

/// Roots of the spawner in all hierarchies, found as an outsider would.
std::vector<fs::path> group_roots(const std::string& name) {
  std::vector<fs::path> roots;
  std::ifstream mounts{"/proc/self/mounts"};
  for (std::string line; std::getline(mounts, line);) {
    std::string source, point, type;
    std::stringstream{line} >> source >> point >> type;
    if ((type == "cgroup" || type == "cgroup2") && fs::exists(fs::path{point} / name))
      roots.push_back(fs::path{point} / name);
  }
  return roots;
}

std::string cgroup_root_of(const std::string& run_dir) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : run_dir)
    hash = (hash ^ c) * 0x100000001b3u;
  char text[32];
  std::snprintf(text, sizeof text, "dsec-%08x", static_cast<unsigned>(hash >> 32));
  return text;
}

} // namespace

spawner_client::spawner_client(const std::string& run_dir)
  : socket_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)} {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (run_dir + "/spawner.sock").c_str(), sizeof address.sun_path - 1);
  BOOST_TEST_REQUIRE(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address)
                     == 0);
}

spawner_client::~spawner_client() {
  ::close(socket_);
}

bool spawner_client::send_bytes(const std::string& bytes) {
  return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL)
         == static_cast<ssize_t>(bytes.size());
}

template <class Fill>
std::uint64_t spawner_client::send(Fill fill) {
  capnp::MallocMessageBuilder message;
  auto request = message.initRoot<wire::Request>();
  request.setSequence(next_);
  fill(request);
  auto words = capnp::messageToFlatArray(message);
  auto bytes = words.asBytes();
  send_bytes({reinterpret_cast<const char*>(bytes.begin()), bytes.size()});
  return next_++;
}

std::optional<answer> spawner_client::wait_for(std::uint64_t sequence) {
  while (true) {
    if (auto found = early_.find(sequence); found != early_.end()) {
      auto result = found->second;
      early_.erase(found);
      return result;
    }
    std::vector<capnp::word> words(1 << 18);
    auto size = ::recv(socket_, words.data(), words.size() * sizeof(capnp::word), 0);
    if (size <= 0)
      return std::nullopt;
    capnp::FlatArrayMessageReader reader{
      kj::arrayPtr(words.data(), static_cast<std::size_t>(size) / sizeof(capnp::word))};
    auto reply = reader.getRoot<wire::Reply>();
    answer a;
    a.code = reply.getError().getCode();
    a.message = reply.getError().getMessage().cStr();
    if (reply.isList())
      for (auto live : reply.getList())
        a.pids[live.getSandboxId().cStr()] = live.getEnding() ? 0 : live.getInitPid();
    if (reply.isHello()) {
      a.cgroup_root = reply.getHello().getCgroupRoot().cStr();
      a.version = reply.getHello().getVersion().cStr();
      a.slots_used = reply.getHello().getSlotsUsed();
      a.sandboxes = reply.getHello().getSandboxes();
    }
    early_[reply.getSequence()] = a;
  }
}

std::uint64_t spawner_client::send_create(const create_fields& fields) {
  return send([&](wire::Request::Builder request) {
    auto create = request.initCreate();
    create.setSandboxId(fields.id);
    auto layers = create.initLayers(static_cast<unsigned>(fields.layers.size()));
    for (unsigned i = 0; i < layers.size(); ++i)
      layers.set(i, fields.layers[i].c_str());
    create.setMemoryBytes(fields.memory_bytes);
    create.setProcesses(fields.processes);
    create.setCpuMilli(fields.cpu_milli);
    create.setDiskBytes(fields.disk_bytes);
    create.setHostname(fields.hostname);
  });
}

std::uint64_t spawner_client::send_destroy(const std::string& id) {
  return send([&](wire::Request::Builder request) { request.setDestroy(id); });
}

std::optional<answer> spawner_client::create(const create_fields& fields) {
  return wait_for(send_create(fields));
}

std::optional<answer> spawner_client::destroy(const std::string& id) {
  return wait_for(send_destroy(id));
}

std::optional<answer> spawner_client::list() {
  return wait_for(send([](wire::Request::Builder request) { request.setList(); }));
}

std::optional<answer> spawner_client::hello() {
  return wait_for(send([](wire::Request::Builder request) { request.setHello(); }));
}

std::optional<answer> spawner_client::warm(std::uint32_t count) {
  return wait_for(send([&](wire::Request::Builder request) { request.setWarm(count); }));
}

std::optional<answer> spawner_client::shutdown() {
  return wait_for(send([](wire::Request::Builder request) { request.setShutdown(); }));
}

std::string traces::text() const {
  std::string all;
  for (auto* part : {&files, &subvolumes, &groups, &processes})
    for (auto& name : *part)
      all += name + ' ';
  return all;
}

spawner_fixture::spawner_fixture() {
  std::string pattern = fs::temp_directory_path() / "dsec-spawner-XXXXXX";
  BOOST_TEST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  folder = pattern;
  run_dir = folder / "run";
  data_dir = folder / "data";
  layer = "sha256-" + std::string(64, 'a');
  auto tree = folder / "tree";
  fs::create_directories(tree / "bin");
  for (auto* name : {"proc", "dev", "tmp", "etc"})
    fs::create_directories(tree / name);
  fs::copy_file("/bin/busybox", tree / "bin/busybox");
  fs::create_symlink("busybox", tree / "bin/sh");
  std::ofstream{tree / "etc/passwd"} << "root:x:0:0:root:/:/bin/sh\n";
  auto store = fs::path{data_dir} / "store" / layer;
  fs::create_directories(store);
  run("mkfs.erofs -T0 " + (store / "layer.erofs").string() + ' ' + tree.string());
}

spawner_fixture::~spawner_fixture() {
  // A new spawner adopts and removes whatever a test left, in whatever state.
  kill_spawner();
  if (start() == 0) {
    spawner_client client{run_dir};
    if (auto live = client.list())
      for (auto& [id, pid] : live->pids)
        client.destroy(id);
    auto ended = client.shutdown();
    BOOST_CHECK_MESSAGE(ended && ended->code == 0,
                        "shutdown: " << (ended ? ended->message : "no answer"));
    eventually([&] { return groups_of(run_dir).empty(); });
  }
  BOOST_CHECK(look().none());
  BOOST_CHECK(read_file("/proc/self/mountinfo").find(folder.string()) == std::string::npos);
  BOOST_CHECK(read_file("/proc/swaps").find(folder.string()) == std::string::npos);
  fs::remove_all(folder);
}

int spawner_fixture::start(const std::vector<std::string>& more, const std::string& kill_at) {
  int pipe[2];
  BOOST_TEST_REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  auto pid = ::fork();
  if (pid == 0) {
    ::dup2(pipe[1], 2);
    if (!kill_at.empty())
      ::setenv("DSEC_KILL_AT", ("spawner:" + kill_at + ':' + (folder / "marker").string()).c_str(),
               1);
    std::vector<std::string> words{DSEC_SPAWNER, "--data-dir",   data_dir, "--run-dir",
                                   run_dir,      "--swap-bytes", "0",      "--scratch-bytes",
                                   "536870912",  "--warm",       "4",      "--blanks",
                                   "0"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (auto& word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execv(DSEC_SPAWNER, arguments.data());
    ::_exit(127);
  }
  ::close(pipe[1]);
  said.clear();
  char bytes[512];
  for (ssize_t size; (size = ::read(pipe[0], bytes, sizeof bytes)) > 0;)
    said.append(bytes, static_cast<std::size_t>(size));
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

pid_t spawner_fixture::spawner_pid() const {
  auto text = read_file(fs::path{run_dir} / "spawner.lock");
  return text.empty() ? 0 : std::atoi(text.c_str());
}

void spawner_fixture::kill_spawner() {
  auto pid = spawner_pid();
  // The number may be old: only a process that was started on our directory is ours.
  if (pid <= 0
      || read_file("/proc/" + std::to_string(pid) + "/cmdline").find(run_dir) == std::string::npos)
    return;
  ::kill(pid, SIGKILL);
  bench::wait_for_end(pid, bench::within(std::chrono::seconds{20}));
}

create_fields spawner_fixture::fields(const std::string& id) const {
  create_fields f;
  f.id = id;
  f.layers = {layer};
  return f;
}

traces spawner_fixture::look() const {
  traces found;
  std::error_code none;
  for (auto& entry : fs::directory_iterator{run_dir, none}) {
    auto name = entry.path().filename().string();
    if (std::find(std::begin(own_files), std::end(own_files), name) == std::end(own_files))
      found.files.insert(name);
  }
  for (auto& entry : fs::directory_iterator{fs::path{run_dir} / "scratch", none})
    found.subvolumes.insert(entry.path().filename());
  // Groups may go while they are read.
  for (auto& root : groups_of(run_dir))
    for (fs::recursive_directory_iterator at{root, none}, end; at != end; at.increment(none)) {
      auto path = at->path().string();
      if (path.find("/_spawner") != std::string::npos)
        continue;
      if (at->is_directory(none))
        found.groups.insert(path);
      else if (at->path().filename() == "cgroup.procs")
        for (std::stringstream lines{read_file(path)}; lines;)
          if (std::string pid; lines >> pid)
            found.processes.insert(pid);
    }
  return found;
}

std::vector<fs::path> spawner_fixture::groups_of(const std::string& run_dir) {
  return group_roots(cgroup_root_of(run_dir));
}

bool spawner_fixture::eventually(const std::function<bool()>& reached) {
  return bench::ask_until(bench::within(std::chrono::seconds{20}), std::chrono::milliseconds{2},
                          reached);
}

int reaper_of(int init_pid) {
  auto task = "/proc/" + std::to_string(init_pid);
  return std::atoi(read_file(task + "/task/" + std::to_string(init_pid) + "/children").c_str());
}

std::string inside(int init_pid, const std::string& path) {
  return "/proc/" + std::to_string(reaper_of(init_pid)) + "/root" + path;
}

} // namespace dsec::test
