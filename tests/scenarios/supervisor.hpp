#pragma once

#include "sdk/embed/runtime.hpp"
#include "tests/sdk/playground.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace dsec::test {

/// The pid of the sandbox's dsec-init, as its lock file says.
inline pid_t supervisor_of(const playground& at, const sandbox& box) {
  std::ifstream lock{at.run_dir / (box.id().str() + ".lock")};
  const std::string words{std::istreambuf_iterator<char>{lock}, {}};
  const auto pid = words.find("pid");
  BOOST_TEST_REQUIRE(pid != std::string::npos, words);
  return std::stoi(words.substr(words.find_first_of("0123456789", pid)));
}

/// How many descriptors a process has open.
inline std::size_t descriptors_of(pid_t pid) {
  const std::filesystem::directory_iterator all{"/proc/" + std::to_string(pid) + "/fd"};
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

} // namespace dsec::test
