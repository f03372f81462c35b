#include "backends/container/io_loop.hpp"
#include "backends/container/spawner_link.hpp"
#include "schemas/spawner.capnp.h"
#include "tests/state/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

using namespace dsec;

namespace {

/// What answers on a run directory as a spawner of another build would.
class other_spawner {
public:
  explicit other_spawner(const std::string& run_dir)
    : path_{run_dir + "/spawner.sock"},
      listener_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)} {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    BOOST_TEST_REQUIRE(
      ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    BOOST_TEST_REQUIRE(::listen(listener_, 1) == 0);
  }

  ~other_spawner() {
    ::close(listener_);
  }

  /// Takes one connection, says hello with these numbers, and leaves for good. True if it was asked
  /// to end.
  bool serve_once(std::uint32_t protocol, std::uint32_t slots_used, std::uint32_t sandboxes) {
    int caller = ::accept(listener_, nullptr, nullptr);
    auto sequence = receive(caller).second;
    capnp::MallocMessageBuilder message;
    auto reply = message.initRoot<wire::Reply>();
    reply.setSequence(sequence);
    auto hello = reply.initHello();
    hello.setVersion("another build");
    hello.setProtocol(protocol);
    hello.setSlots(4096);
    hello.setSlotsUsed(slots_used);
    hello.setSandboxes(sandboxes);
    auto words = capnp::messageToFlatArray(message);
    ::send(caller, words.begin(), words.asBytes().size(), MSG_NOSIGNAL);
    bool asked = receive(caller).first == wire::Request::SHUTDOWN;
    ::unlink(path_.c_str());
    ::close(caller);
    return asked;
  }

private:
  /// Nothing that anyone asks once the caller has gone.
  static std::pair<std::optional<wire::Request::Which>, std::uint64_t> receive(int caller) {
    std::vector<capnp::word> words(4096);
    auto got = ::recv(caller, words.data(), words.size() * sizeof(capnp::word), 0);
    if (got <= 0)
      return {};
    capnp::FlatArrayMessageReader reader{
      kj::arrayPtr(words.data(), static_cast<std::size_t>(got) / sizeof(capnp::word))};
    auto request = reader.getRoot<wire::Request>();
    return {request.which(), request.getSequence()};
  }

  std::string path_;
  int listener_;
};

struct meeting {
  temporary_folder folder;
  other_spawner spawner{folder.path().string()};
  io_loop loop;
  std::unique_ptr<spawner_link> link;

  ~meeting() {
    loop.run([&] { link.reset(); });
  }

  /// What the client learns. Its own spawner cannot start: a file is where its data would go.
  std::future<result<spawner_report>> hello() {
    auto answer = std::make_shared<std::promise<result<spawner_report>>>();
    loop.run([&] {
      link = std::make_unique<spawner_link>(loop, spawner_options{"/dev/null/data", folder.path(),
                                                                  DSEC_SPAWNER});
      link->hello([answer](auto report) { answer->set_value(std::move(report)); });
    });
    return answer->get_future();
  }
};

boost::test_tools::assertion_result is_root(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result answer{::geteuid() == 0};
  answer.message() << "only root may end a spawner and start another";
  return answer;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(spawner_link_to_another_build, meeting,
                         *boost::unit_test::precondition(is_root))

BOOST_AUTO_TEST_CASE(one_that_holds_blank_sandboxes_alone_is_asked_to_end) {
  auto answer = hello();
  BOOST_TEST(spawner.serve_once(wire::SPAWNER_PROTOCOL, 3, 0));
  auto report = answer.get();
  BOOST_TEST_REQUIRE(!report);
  BOOST_TEST(report.error().message.find("dsec-spawner") != std::string::npos,
             report.error().message);
}

BOOST_AUTO_TEST_CASE(
  one_with_sandboxes_that_speaks_otherwise_is_left_alone_and_the_caller_learns_how_many) {
  auto answer = hello();
  BOOST_TEST(!spawner.serve_once(wire::SPAWNER_PROTOCOL + 1, 5, 2));
  auto report = answer.get();
  BOOST_TEST_REQUIRE(!report);
  BOOST_TEST(report.error().message.find("2 sandboxes") != std::string::npos,
             report.error().message);
}

BOOST_AUTO_TEST_SUITE_END()
