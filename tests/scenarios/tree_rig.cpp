#include "tests/scenarios/tree_rig.hpp"

#include "state/digest.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace dsec::test {

namespace fs = std::filesystem;

namespace {

/// 0: it has ended.
pid_t parent_of(pid_t pid) {
  std::ifstream in{fmt::format("/proc/{}/status", pid)};
  for (std::string word; in >> word;)
    if (word == "PPid:") {
      in >> pid;
      return pid;
    }
  return 0;
}

std::string content_of(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

std::string line_of(const fs::path& path, const std::string& name, bool with_times,
                    std::map<ino_t, std::string>& first_names) {
  struct stat s {};

  BOOST_TEST_REQUIRE(::lstat(path.c_str(), &s) == 0, path.native());
  auto line = fmt::format("{} mode {:o} owner {}:{}", name, s.st_mode, s.st_uid, s.st_gid);
  if (with_times)
    line += fmt::format(" time {}.{:09}", s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
  if (S_ISLNK(s.st_mode))
    line += " to " + fs::read_symlink(path).native();
  if (S_ISREG(s.st_mode)) {
    sha256 sum;
    sum.add(content_of(path));
    line += fmt::format(" size {} sha256 {}", s.st_size, std::move(sum).hex());
    if (s.st_nlink > 1)
      line += fmt::format(" is {}", first_names.emplace(s.st_ino, name).first->second);
  }
  return line;
}

std::string octal(std::uint64_t number, int digits) {
  return fmt::format("{:0{}o}", number, digits) + '\0';
}

} // namespace

void tree_rig::run(const std::string& script) const {
  auto x = value(box.exec(exec_spec::shell(script)));
  BOOST_TEST(x.ok(), x.err);
}

std::vector<std::string> describe_tree(const fs::path& root, bool with_times) {
  std::vector<std::string> names;
  for (const auto& each : fs::recursive_directory_iterator{root})
    names.push_back(each.path().native().substr(root.native().size() + 1));
  std::sort(names.begin(), names.end());
  std::map<ino_t, std::string> first_names;
  std::vector<std::string> lines;
  for (const auto& name : names)
    lines.push_back(line_of(root / name, name, with_times, first_names));
  return lines;
}

std::string differences(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> only_a, only_b;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only_a));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(only_b));
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(only_a.size(), 5); ++i)
    text += "- " + only_a[i] + "\n";
  for (std::size_t i = 0; i < std::min<std::size_t>(only_b.size(), 5); ++i)
    text += "+ " + only_b[i] + "\n";
  return text;
}

std::uint64_t allocated_bytes(const fs::path& root) {
  std::uint64_t sum = 0;
  for (const auto& each : fs::recursive_directory_iterator{root}) {
    struct stat s {};

    if (::lstat(each.path().c_str(), &s) == 0 && S_ISREG(s.st_mode))
      sum += static_cast<std::uint64_t>(s.st_blocks) * 512;
  }
  return sum;
}

void put_file(const fs::path& path, const std::string& bytes, mode_t mode) {
  fs::create_directories(path.parent_path());
  std::ofstream{path, std::ios::binary} << bytes;
  BOOST_TEST_REQUIRE(::chmod(path.c_str(), mode) == 0, path.native());
}

crafted_archive& crafted_archive::add(char type, const std::string& name, const std::string& bytes,
                                      const std::string& link, unsigned mode) {
  std::string head(512, '\0');
  auto put = [&](std::size_t at, const std::string& text) {
    head.replace(at, text.size(), text);
  };
  put(0, name.substr(0, 100));
  put(100, octal(mode, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(bytes.size(), 11));
  put(136, octal(1'000'000'000, 11));
  put(148, "        ");
  head[156] = type;
  put(157, link.substr(0, 100));
  put(257, std::string{"ustar\0"
                       "00",
                       8});
  put(329, octal(1, 7));
  put(337, octal(3, 7));
  unsigned sum = 0;
  for (unsigned char c : head)
    sum += c;
  put(148, octal(sum, 6) + " ");
  bytes_ += head + bytes;
  bytes_.resize((bytes_.size() + 511) / 512 * 512);
  return *this;
}

std::string crafted_archive::bytes() const {
  return bytes_ + std::string(1024, '\0');
}

std::shared_ptr<input_source> source_of(std::string bytes) {
  struct pieces final : input_source {
    std::string rest;

    void read(std::function<void(std::string)> next) override {
      auto piece = rest.substr(0, 100'000);
      rest.erase(0, piece.size());
      next(std::move(piece));
    }
  };

  auto x = std::make_shared<pieces>();
  x->rest = std::move(bytes);
  return x;
}

void memory_archive::write(std::string bytes, std::function<void()> ready) {
  {
    std::scoped_lock lock{mutex_};
    bytes_ += bytes;
  }
  ready();
}

std::string memory_archive::bytes() const {
  std::scoped_lock lock{mutex_};
  return bytes_;
}

std::map<std::string, std::string> refusals_of(const tree_report& x) {
  std::map<std::string, std::string> all;
  for (const auto& each : x.refused)
    all[each.path] = each.why;
  return all;
}

std::set<pid_t> tree_tasks() {
  const pid_t spawner = demo::spawner_pid(installation_of(machine()));
  auto is_ours = [&](pid_t task) {
    auto parent = parent_of(task);
    if (parent == 1)
      return true;
    while (parent > 1 && parent != spawner)
      parent = parent_of(parent);
    return parent == spawner;
  };
  std::set<pid_t> found;
  for (const auto& each : fs::directory_iterator{"/proc"}) {
    auto name = each.path().filename().native();
    if (name.find_first_not_of("0123456789") != std::string::npos)
      continue;
    std::ifstream in{each.path() / "comm"};
    std::string comm;
    if (std::getline(in, comm) && comm == "dsec-tree" && is_ours(std::stoi(name)))
      found.insert(std::stoi(name));
  }
  return found;
}

bool tree_tasks_end() {
  return bench::ask_until(bench::within(10s), 10ms, [] { return tree_tasks().empty(); });
}

} // namespace dsec::test
