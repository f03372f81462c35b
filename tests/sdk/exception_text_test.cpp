#define BOOST_TEST_MODULE exception_text
#include "backends/container/wire.hpp"
#include "backends/exception_text.hpp"

#include <boost/test/unit_test.hpp>
#include <kj/debug.h>

#include <functional>
#include <unistd.h>

using namespace dsec;

namespace {

/// What KJ says of what `fails` throws.
std::string described(const std::function<void()>& fails) {
  std::string text;
  KJ_IF_MAYBE (e, kj::runCatchingExceptions([&] { fails(); }))
    text = e->getDescription().cStr();
  return text;
}

} // namespace

BOOST_AUTO_TEST_CASE(source_text_and_variables_of_an_exception_are_not_told) {
  bool closed = true;
  int number = 65534;
  std::string why = "read only";
  auto required = described([&] { KJ_REQUIRE(!closed, "the archive has ended", number); });
  // Otherwise this would show nothing.
  BOOST_TEST(required.find("!closed") != std::string::npos, required);
  BOOST_TEST(dsec::exception_text(required) == "the archive has ended");
  BOOST_TEST(dsec::exception_text(described([&] { KJ_REQUIRE(!closed); })) == "");
  auto failed = described(
    [&] { kj::throwFatalException(KJ_EXCEPTION(FAILED, "it is not written", why.c_str())); });
  BOOST_TEST(failed.find("why.c_str() = ") != std::string::npos, failed);
  BOOST_TEST(dsec::exception_text(failed) == "it is not written");
  auto call = described([&] { KJ_SYSCALL(::close(-1), number); });
  BOOST_TEST(call.find("close(") != std::string::npos, call);
  BOOST_TEST(dsec::exception_text(call) == "Bad file descriptor");
  ssize_t n = 0;
  auto assigned = described([&] { KJ_SYSCALL(n = ::write(-1, "", 1)); });
  BOOST_TEST(dsec::exception_text(assigned) == "Bad file descriptor");
}

BOOST_AUTO_TEST_CASE(a_plain_text_stays_as_it_is_however_often_it_was_passed_on) {
  BOOST_TEST(dsec::exception_text("Peer disconnected.") == "Peer disconnected");
  BOOST_TEST(dsec::exception_text("remote exception: remote exception: refused: for two reasons; "
                                  "this is one (of two): no")
             == "refused: for two reasons; this is one (of two): no");
  BOOST_TEST(dsec::exception_text("") == "");
}

BOOST_AUTO_TEST_CASE(a_broken_connection_always_has_a_reason) {
  auto e = wire::broken("talk to the runtime", KJ_EXCEPTION(DISCONNECTED, ""));
  BOOST_TEST(e.message == "talk to the runtime: the connection is broken");
  BOOST_TEST((e.code == errc::unavailable));
}
