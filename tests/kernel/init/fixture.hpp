#pragma once

#include "tests/kernel/init/init_client.hpp"
#include "tests/kernel/init/private_sandbox.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>

// Where the generated enums really live.
namespace capnp::schemas {

inline std::ostream& operator<<(std::ostream& out, dsec::wire::Outcome::Kind kind) {
  return out << "outcome kind " << static_cast<int>(kind);
}

inline std::ostream& operator<<(std::ostream& out, dsec::wire::FileStatus::Type type) {
  return out << "file type " << static_cast<int>(type);
}

} // namespace capnp::schemas

namespace dsec::test {

using kind = wire::Outcome::Kind;

/// Precondition of every test here: what a sandbox is built from.
inline boost::test_tools::assertion_result possible(boost::unit_test::test_unit_id) {
  const auto why = private_sandbox::missing();
  boost::test_tools::assertion_result answer{why.empty()};
  answer.message() << "skipped: " << why;
  return answer;
}

/// A sandbox and a node's connection to it.
struct fixture {
  explicit fixture(private_sandbox_options options = {})
    : sandbox{options},
      io{kj::setupAsyncIo()},
      client{io, sandbox.socket_path()} {}

  /// What `f` throws as dsec::error.
  template <class F>
  error error_of(F f) {
    try {
      f();
    } catch (const error& e) {
      return e;
    }
    BOOST_ERROR("no error was answered");
    return {};
  }

  private_sandbox sandbox;
  kj::AsyncIoContext io;
  init_client client;
};

} // namespace dsec::test
