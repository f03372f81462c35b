// Commands depend on nothing of the image but themselves, whatever the image is and whatever the
// agent made of it.
#include "backends/rootfs/layer_store.hpp"
#include "tests/scenarios/exec_rig.hpp"

#include <elf.h>
#include <fstream>
#include <iterator>

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;
namespace fs = std::filesystem;

namespace {

/// A layer of the given files, each a copy of one of this machine's.
layer_digest
image(const std::string& name, const std::vector<std::pair<fs::path, fs::path>>& files) {
  auto tree = machine().root / name;
  fs::create_directories(tree);
  for (const auto& [from, to] : files) {
    fs::create_directories(tree / to.parent_path());
    fs::copy_file(from, tree / to);
  }
  layer_store store{machine().data_dir / "store"};
  auto made = store.import_directory(tree, name);
  BOOST_TEST_REQUIRE(bool(made), (made ? "" : made.error().message));
  return *made;
}

struct image_rig : exec_rig {
  sandbox of(const std::string& name, const std::vector<std::pair<fs::path, fs::path>>& files) {
    auto from = at.environment();
    from.layers = {image(name, files)};
    return create(from);
  }

  static error refusal(const sandbox& box, exec_spec spec) {
    auto x = box.exec(std::move(spec)).get();
    BOOST_TEST_REQUIRE(!x);
    return x.error();
  }
};

bool says(const error& e, const std::string& text) {
  return e.message.find(text) != std::string::npos;
}

std::string content(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

/// Names an interpreter, as everything dynamic does.
bool is_dynamic(const std::string& elf) {
  const auto& head = *reinterpret_cast<const Elf64_Ehdr*>(elf.data());
  for (int i = 0; i < head.e_phnum; ++i)
    if (reinterpret_cast<const Elf64_Phdr*>(elf.data() + head.e_phoff)[i].p_type == PT_INTERP)
      return true;
  return false;
}

} // namespace

BOOST_AUTO_TEST_SUITE(exec_image, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(an_image_of_one_static_program_runs_it_and_says_that_it_has_no_shell,
                        image_rig) {
  auto box = of("scratch", {{"/bin/busybox", "busybox"}});
  BOOST_TEST(value(box.exec(exec_spec{{"/busybox", "echo", "hi"}})).out == "hi\n");
  BOOST_TEST(value(box.exec(exec_spec{{"/busybox", "id", "-u"}})).out == "0\n");
  auto none = refusal(box, exec_spec::shell("echo hi"));
  BOOST_TEST((none.code == errc::no_program));
  BOOST_TEST(says(none, "'/bin/sh': no such program"), none.message);
  // Neither PATH nor a passwd nor a directory to write to is needed.
  exec_spec as_agent{{"/busybox", "id", "-u"}};
  as_agent.user = "1000";
  BOOST_TEST(value(box.exec(as_agent)).out == "1000\n");
  as_agent.user = "agent";
  BOOST_TEST((refusal(box, as_agent).code == errc::not_found));
  done(box.write("/made/by/upload", "text"));
  BOOST_TEST(value(box.exec(exec_spec{{"/busybox", "cat", "/made/by/upload"}})).out == "text");
}

BOOST_FIXTURE_TEST_CASE(a_shell_that_lies_elsewhere_is_used_by_its_own_name, image_rig) {
  auto box = of("nix", {{"/bin/busybox", "nix/store/abc-shell/bin/sh"},
                        {"/bin/busybox", "nix/store/abc-shell/bin/echo"}});
  exec_spec spec{{"sh", "-c", "echo from the store"}};
  BOOST_TEST((refusal(box, spec).code == errc::no_program));
  spec.env = {{"PATH", "/nix/store/abc-shell/bin"}};
  BOOST_TEST(value(box.exec(spec)).out == "from the store\n");
  BOOST_TEST(value(box.exec(exec_spec{{"/nix/store/abc-shell/bin/sh", "-c", "echo by path"}})).out
             == "by path\n");
}

BOOST_FIXTURE_TEST_CASE(a_program_whose_interpreter_is_missing_is_told_apart_from_a_missing_one,
                        image_rig) {
  // This very test program needs a dynamic linker.
  auto box = of("unlinked", {{"/bin/busybox", "bin/sh"}, {"/usr/bin/env", "bin/dynamic"}});
  BOOST_TEST_REQUIRE(is_dynamic(content("/usr/bin/env")));
  for (auto* name : {"/bin/dynamic", "dynamic"}) {
    auto e = refusal(box, exec_spec{{name}});
    BOOST_TEST((e.code == errc::not_executable), e.message);
    BOOST_TEST(says(e, "dynamic linker"), e.message);
  }
  done(box.write("/script", "#!/bin/bash\necho hi\n", {0755}));
  auto e = refusal(box, exec_spec{{"/script"}});
  BOOST_TEST((e.code == errc::not_executable), e.message);
  BOOST_TEST(says(e, "interpreter"), e.message);
  BOOST_TEST((refusal(box, exec_spec{{"/bin/none"}}).code == errc::no_program));
  BOOST_TEST((refusal(box, exec_spec{{"none"}}).code == errc::no_program));
}

BOOST_FIXTURE_TEST_CASE(what_we_bring_along_needs_no_library, image_rig) {
  BOOST_TEST(!is_dynamic(content(at.programs / "dsec-spawner")));
  // The reaper is the one program of ours inside.
  auto box = create();
  BOOST_TEST(value(box.exec(exec_spec::shell("cat /proc/1/comm"))).out == "dsec-reaper\n");
  BOOST_TEST(value(box.exec(exec_spec::shell("readlink /proc/1/exe; true"))).out == "");
}

BOOST_FIXTURE_TEST_CASE(commands_run_without_tmp_and_with_a_root_that_nobody_may_enter, image_rig) {
  auto box = create();
  auto hi = [&] {
    return value(box.exec(exec_spec::shell("echo hi"))).out;
  };
  value(box.exec(exec_spec::shell("rm -rf /tmp /var /root /etc /home")));
  BOOST_TEST(hi() == "hi\n");
  exec_spec input{{"cat"}};
  input.stdin_bytes = "through\n";
  BOOST_TEST(value(box.exec(input)).out == "through\n");
  value(box.exec(exec_spec::shell("chmod 000 /")));
  BOOST_TEST(hi() == "hi\n");
  auto as_agent = exec_spec::shell("echo hi");
  as_agent.user = "1000";
  BOOST_TEST((refusal(box, as_agent).code == errc::not_executable));
  value(box.exec(exec_spec::shell("chmod 755 /")));
  BOOST_TEST(value(box.exec(as_agent)).out == "hi\n");
  value(box.exec(exec_spec::shell("mount -o remount,ro / || true")));
  BOOST_TEST(hi() == "hi\n");
}

BOOST_FIXTURE_TEST_CASE(commands_run_on_a_full_disk, image_rig) {
  auto box = create();
  value(box.exec(exec_spec::shell("dd if=/dev/zero of=/room/fill bs=1M 2>/dev/null; "
                                  "while echo x; do :; done >> /room/rest 2>/dev/null; true")));
  BOOST_TEST(value(box.exec(exec_spec::shell("echo hi"))).out == "hi\n");
  exec_spec input{{"wc", "-c"}};
  input.stdin_bytes = std::string(1 << 20, 'x');
  BOOST_TEST(value(box.exec(input)).out == "1048576\n");
  // Longer than what travels with the request, so it needs a file somewhere.
  exec_spec many{{"/bin/sh", "-c", "echo $#", "sh"}};
  many.argv.resize(1000, std::string(100, 'x'));
  BOOST_TEST(value(box.exec(many)).out == "996\n");
  BOOST_TEST(value(box.read("/etc/group")).find("root") == 0u);
  BOOST_TEST(value(box.exec(exec_spec::shell("rm /room/fill; echo x > /room/new"))).ok());
}

BOOST_FIXTURE_TEST_CASE(an_agent_that_removed_everything_can_be_given_a_program_again, image_rig) {
  auto box = create();
  value(box.exec(exec_spec::shell("rm -rf /* 2>/dev/null; true")));
  BOOST_TEST((refusal(box, exec_spec::shell("echo hi")).code == errc::no_program));
  done(box.write("/busybox", content("/bin/busybox"), {0755}));
  BOOST_TEST(value(box.exec(exec_spec{{"/busybox", "echo", "back"}})).out == "back\n");
  done(box.stop());
}

BOOST_AUTO_TEST_SUITE_END()
