#define BOOST_TEST_MODULE rootfs

#include "backends/rootfs/apt_sources.hpp"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

using namespace dsec;

namespace {

constexpr auto modern = R"(# a mirror
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
)";

constexpr auto classic = R"(
# deb http://off.example/debian bookworm main
deb [arch=amd64,i386 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib # comment
deb-src http://mirror.example/debian bookworm main
deb http://flat.example/repo ./
nonsense
)";

} // namespace

BOOST_AUTO_TEST_SUITE(apt_sources)

BOOST_AUTO_TEST_CASE(the_deb822_form_is_read_with_comments_keys_and_switched_off_stanzas) {
  auto all = parse_deb822_sources(modern);
  BOOST_TEST_REQUIRE(all.size() == 2u);
  BOOST_TEST(all[0].uris[0] == "http://mirror.example/debian");
  BOOST_TEST(all[0].suites.size() == 2u);
  BOOST_TEST(all[0].components.size() == 2u);
  BOOST_TEST(all[1].options[0].second == "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc");
}

BOOST_AUTO_TEST_CASE(the_one_line_form_is_read_with_options_and_comments) {
  auto all = parse_one_line_sources(classic);
  BOOST_TEST_REQUIRE(all.size() == 3u);
  BOOST_TEST(all[0].components.size() == 2u);
  BOOST_TEST(all[0].options[0].first == "Architectures");
  BOOST_TEST(all[0].options[0].second == "amd64 i386");
  BOOST_TEST(all[0].options[1].first == "Signed-By");
  BOOST_TEST(all[1].types[0] == "deb-src");
  BOOST_TEST(all[2].components.empty());
}

BOOST_AUTO_TEST_CASE(what_is_written_in_deb822_reads_back_equal) {
  auto all = parse_deb822_sources(modern);
  BOOST_TEST((parse_deb822_sources(to_deb822(all)) == all));
}

BOOST_AUTO_TEST_CASE(a_suite_brings_its_updates_and_security_fixes) {
  auto found = sources_for(parse_deb822_sources(modern), "bookworm");
  BOOST_TEST_REQUIRE(bool{found});
  BOOST_TEST_REQUIRE(found->size() == 2u);
  BOOST_TEST((*found)[0].types.size() == 1u);
  BOOST_TEST((*found)[1].suites[0] == "bookworm-security");
}

BOOST_AUTO_TEST_CASE(another_suite_is_asked_of_the_machines_mirror) {
  auto found = sources_for(parse_deb822_sources(modern), "trixie");
  BOOST_TEST_REQUIRE(bool{found});
  BOOST_TEST_REQUIRE(found->size() == 1u);
  BOOST_TEST((*found)[0].uris[0] == "http://mirror.example/debian");
  BOOST_TEST((*found)[0].suites[0] == "trixie");
}

BOOST_AUTO_TEST_CASE(a_machine_without_sources_says_so) {
  auto found = sources_for({}, "bookworm");
  BOOST_TEST_REQUIRE(!found);
  BOOST_TEST((found.error().code == errc::not_found));
  BOOST_TEST(found.error().message.find("bookworm") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(all_files_of_apt_are_read_and_no_others) {
  temporary_folder folder;
  std::filesystem::create_directory(folder.path() / "sources.list.d");
  std::ofstream{folder.path() / "sources.list"} << "deb http://a.example x main\n";
  std::ofstream{folder.path() / "sources.list.d" / "c.sources"} << modern;
  std::ofstream{folder.path() / "sources.list.d" / "b.list"} << "deb http://b.example x main\n";
  std::ofstream{folder.path() / "sources.list.d" / "d.list.off"} << "deb http://d.example x main\n";
  auto all = read_apt_sources(folder.path());
  BOOST_TEST_REQUIRE(all.size() == 4u);
  BOOST_TEST(all[0].uris[0] == "http://a.example");
  BOOST_TEST(all[1].uris[0] == "http://b.example");
  BOOST_TEST(all[2].uris[0] == "http://mirror.example/debian");
}

BOOST_AUTO_TEST_SUITE_END()
