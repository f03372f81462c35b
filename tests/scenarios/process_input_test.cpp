// Standard input of a process, larger than any pipe.
#include "tests/scenarios/process_rig.hpp"

using namespace dsec;
using namespace dsec::test;
namespace utf = boost::unit_test;

namespace {

/// As sha256sum in the sandbox has it.
std::string digest_of(const sandbox& box, const std::string& path) {
  return value(box.exec(exec_spec{{"sha256sum", path}})).out.substr(0, 64);
}

} // namespace

BOOST_AUTO_TEST_SUITE(process_input, *utf::precondition(needs_root))

BOOST_FIXTURE_TEST_CASE(sixty_four_mebibytes_reach_a_process_whole, exec_rig) {
  auto roomy = at.environment();
  roomy.limits.disk_bytes = 256 << 20;
  auto box = create(roomy);
  const auto bytes = many_bytes(64 << 20);
  done(box.write("/room/bytes", bytes));
  const auto right = digest_of(box, "/room/bytes");

  process_spec given;
  given.command.argv = {"sha256sum"};
  given.command.stdin_bytes = bytes;
  auto whole = value(box.spawn(given));
  BOOST_TEST(value(whole.wait()).out.substr(0, 64) == right);

  // In pieces, to a reader that sleeps first.
  auto process = value(box.spawn(with_input("sleep 0.3; sha256sum")));
  std::vector<future<void>> written;
  const std::size_t piece = 16 << 20;
  for (std::size_t from = 0; from < bytes.size(); from += piece)
    written.push_back(process.write(bytes.substr(from, piece), from + piece == bytes.size()));
  for (auto& each : written)
    done(each);
  BOOST_TEST(value(process.wait()).out.substr(0, 64) == right);
}

BOOST_FIXTURE_TEST_CASE(a_reader_that_leaves_early_is_a_typed_answer_beside_its_exit_code,
                        exec_rig) {
  auto box = create();
  auto process = value(
    box.spawn(with_input("head -c 10 >/dev/null; exec <&-; echo left; while [ ! -e /room/go ]; "
                         "do sleep 0.02; done; exit 3")));
  auto seen = std::make_shared<watcher>();
  auto attached = process.attach(seen);
  auto refused = process.write(many_bytes(8 << 20));
  BOOST_TEST((error_of(refused).code == errc::invalid_state));
  BOOST_TEST((error_of(process.write("more")).code == errc::invalid_state));
  done(box.write("/room/go", ""));
  BOOST_TEST(value(process.wait()).outcome.code == 3);
  auto none = value(box.spawn(background("cat; echo end")));
  BOOST_TEST((error_of(none.write("x")).code == errc::invalid_state));
  BOOST_TEST(value(none.wait()).out == "end\n");
}

BOOST_FIXTURE_TEST_CASE(a_process_that_does_not_read_holds_its_writer_back_and_nobody_else,
                        exec_rig) {
  auto box = create();
  auto process = value(box.spawn(with_input("sleep 600")));
  auto held = process.write(many_bytes(1 << 20));
  BOOST_TEST(value(box.exec(exec_spec{{"true"}})).ok());
  BOOST_TEST(value(box.processes()).size() == 1u);
  BOOST_TEST(!held.ready());
  done(process.kill());
  BOOST_TEST((error_of(held).code == errc::invalid_state));
}

BOOST_AUTO_TEST_SUITE_END()
