// Links that the agent plants lead nowhere outside its own root, also while it swaps them.
#include "tests/scenarios/sizes.hpp"
#include "tests/sdk/answers.hpp"
#include "tests/sdk/root_only.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <set>

using namespace dsec;
using namespace dsec::test;
namespace fs = std::filesystem;
namespace utf = boost::unit_test;

namespace {

/// A sandbox, and a folder of the host that nothing inside may reach.
struct planted {
  playground& at = machine();
  std::unique_ptr<runtime> rt = at.open(at.new_state());
  sandbox box = playground::one_sandbox(*rt, at.environment());
  fs::path outside = at.root / "outside";

  planted() {
    fs::remove_all(outside);
    fs::create_directories(outside);
    std::ofstream{outside / "canary"} << "of the host";
  }

  ~planted() {
    BOOST_TEST(canary() == "of the host");
    BOOST_TEST(std::distance(fs::directory_iterator{outside}, {}) == 1);
  }

  std::string canary() const {
    std::ifstream in{outside / "canary"};
    return {std::istreambuf_iterator<char>{in}, {}};
  }

  void run(const std::string& script) {
    auto x = value(box.exec(exec_spec::shell(script)));
    BOOST_TEST(x.ok(), x.err);
  }

  /// Starts an endless loop of the agent's and returns once it turns.
  running_exec turn(const std::string& body) {
    run("mkfifo /room/turning");
    auto loop = box.start(exec_spec::shell(
      fmt::format("{0}\necho > /room/turning\nwhile :; do {0}\ndone 2>/dev/null", body)));
    run("read x < /room/turning; rm /room/turning");
    return loop;
  }
};

/// What a file operation that raced with the agent may say: it happened, or a typed reason that is
/// the agent's doing. Never that dsec is broken.
template <class T>
bool fair(const result<T>& x) {
  if (x)
    return true;
  BOOST_TEST(!x.error().message.empty());
  auto code = x.error().code;
  bool agents = code == errc::not_found || code == errc::invalid_argument
                || code == errc::invalid_state || code == errc::exhausted;
  BOOST_TEST(agents, to_string(code) << ": " << x.error().message);
  return agents;
}

} // namespace

BOOST_AUTO_TEST_SUITE(file_links, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(planted_links_lead_to_the_sandboxs_own_files_and_never_to_the_hosts,
                        planted) {
  auto target = (outside / "canary").string();
  run(fmt::format("mkdir -p /room/up && cd /room/up && ln -s {0} absolute"
                  " && ln -s ../../../../../../../../../..{0} climbing && ln -s {1} folder"
                  " && ln -s / root && ln -s /etc/passwd passwd"
                  " && ln -s /proc/1/root{0} magic && ln -s /proc/self/cwd cwd",
                  target, outside.string()));
  for (auto* link : {"absolute", "climbing", "magic"}) {
    auto read = box.read(fmt::format("/room/up/{}", link)).get();
    BOOST_TEST((!read || *read != canary()), link);
  }
  auto in_folder = box.read("/room/up/folder/canary").get();
  BOOST_TEST(!in_folder);

  // Names of links are listed as links, and what is listed through one is the sandbox's.
  std::set<std::string> links;
  for (const auto& entry : value(box.list("/room/up")))
    if (entry.status.type == file_type::symlink)
      links.insert(entry.name);
  BOOST_TEST(
    (links
     == std::set<std::string>{"absolute", "climbing", "folder", "root", "passwd", "magic", "cwd"}));
  std::set<std::string> root;
  for (const auto& entry : value(box.list("/room/up/root")))
    root.insert(entry.name);
  BOOST_TEST(root.contains("room"));
  BOOST_TEST(!root.contains("work"));

  // Uploads through them: the sandbox's own file, made where the path leads inside, or a reason.
  std::ifstream host_passwd{"/etc/passwd"};
  std::string before{std::istreambuf_iterator<char>{host_passwd}, {}};
  for (auto* link : {"absolute", "climbing", "folder/new", "root/room/through", "passwd", "magic"})
    fair(box.write(fmt::format("/room/up/{}", link), "from outside").get());
  std::ifstream again{"/etc/passwd"};
  BOOST_TEST((before == std::string{std::istreambuf_iterator<char>{again}, {}}));
  BOOST_TEST(value(box.read("/etc/passwd")) == "from outside");
  BOOST_TEST(value(box.read("/room/through")) == "from outside");
}

BOOST_FIXTURE_TEST_CASE(a_folder_that_turns_into_a_link_during_uploads_lets_nothing_out, planted) {
  auto loop =
    turn(fmt::format("rm -rf /room/up; ln -s {0} /room/up; rm -f /room/up; mkdir -p /room/up/in;"
                     " mv /room/up/in /room/up/gone; ln -s {0} /room/up/in; rm -f /room/up/in",
                     outside.string()));
  std::size_t written = 0;
  for (std::size_t i = 0; i < at_size(150, 1000); ++i) {
    auto upload = box.write("/room/up/in/canary", "from outside").get();
    auto listing = box.list("/room/up").get();
    auto read = box.read("/room/up/in/canary").get();
    BOOST_TEST_REQUIRE((fair(upload) && fair(listing) && fair(read)));
    BOOST_TEST_REQUIRE((!read || *read != canary()));
    written += bool(upload);
  }
  BOOST_TEST_MESSAGE(written << " uploads found their folder");
  loop.cancel();
  value(loop.result());
  run("rm -rf /room/up");
  done(box.write("/room/up/in/canary", "quiet again"));
  BOOST_TEST(value(box.read("/room/up/in/canary")) == "quiet again");
}

BOOST_FIXTURE_TEST_CASE(paths_that_climb_while_their_folders_move_are_never_our_fault, planted) {
  run("mkdir -p /room/a/b/c /room/x");
  auto loop = turn("mv /room/a/b /room/x/b; mv /room/x/b /room/a/b");
  std::size_t written = 0;
  for (std::size_t i = 0; i < at_size(300, 2000); ++i) {
    auto upload = box.write("/room/a/b/c/../../../a/b/../b/c/../file", "climbed").get();
    auto listing = box.list("/room/a/b/c/../../..").get();
    BOOST_TEST_REQUIRE((fair(upload) && fair(listing)));
    written += bool(upload);
  }
  BOOST_TEST_MESSAGE(written << " uploads found their way");
  loop.cancel();
  value(loop.result());
}

BOOST_AUTO_TEST_SUITE_END()
