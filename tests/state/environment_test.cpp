#include "state/environment.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

using namespace dsec;

namespace {

environment good() {
  environment x;
  x.layers = {layer_digest{"sha256-" + std::string(64, '0')}};
  return x;
}

std::string refusal(const environment& x) {
  auto verdict = validate(x);
  if (verdict)
    return "accepted";
  return verdict.error().code == errc::invalid_argument ? verdict.error().message : "other code";
}

bool says(const std::string& message, std::initializer_list<std::string_view> parts) {
  for (auto part : parts)
    if (message.find(part) == std::string::npos) {
      BOOST_TEST_MESSAGE(message);
      return false;
    }
  return true;
}

} // namespace

BOOST_AUTO_TEST_SUITE(environment_limits)

BOOST_AUTO_TEST_CASE(one_layer_and_defaults_are_enough) {
  BOOST_TEST(bool{validate(good())});
}

BOOST_AUTO_TEST_CASE(it_has_1_to_200_layers) {
  auto x = good();
  for (int i = 1; i < 200; ++i)
    x.layers.emplace_back(fmt::format("sha256-{:064x}", i));
  BOOST_TEST(bool{validate(x)});
  x.layers.emplace_back(fmt::format("sha256-{:064x}", 200));
  BOOST_TEST(says(refusal(x), {"layers", "201", "1 to 200"}));
  x.layers.clear();
  BOOST_TEST(says(refusal(x), {"layers", "0", "1 to 200"}));
}

BOOST_AUTO_TEST_CASE(layers_are_named_by_digest) {
  auto x = good();
  x.layers.emplace_back("../etc");
  BOOST_TEST(says(refusal(x), {"layers[1]", "../etc", "sha256-"}));
}

BOOST_AUTO_TEST_CASE(a_layer_stands_in_it_once) {
  auto x = good();
  x.layers.emplace_back(fmt::format("sha256-{:064x}", 1));
  x.layers.push_back(x.layers[0]);
  BOOST_TEST(says(refusal(x), {"layers[2]", "layers[0]", x.layers[0].str()}));
}

BOOST_AUTO_TEST_CASE(limits_have_bounds) {
  struct row {
    std::string_view field;
    void (*set)(sandbox_limits&, std::uint64_t);
    std::uint64_t least, most;
  };

  const row rows[] = {
    {"memory_bytes", [](auto& x, auto v) { x.memory_bytes = v; }, 8u << 20, 1ull << 50},
    {"processes", [](auto& x, auto v) { x.processes = static_cast<std::uint32_t>(v); }, 4, 30'000},
    {"cpu_milli", [](auto& x, auto v) { x.cpu_milli = static_cast<std::uint32_t>(v); }, 10,
     4'096'000},
    {"disk_bytes", [](auto& x, auto v) { x.disk_bytes = v; }, 1u << 20, 1ull << 50},
  };
  for (const auto& row : rows) {
    BOOST_TEST_CONTEXT(row.field) {
      auto x = good();
      row.set(x.limits, row.least);
      BOOST_TEST(bool{validate(x)});
      row.set(x.limits, row.most);
      BOOST_TEST(bool{validate(x)});
      for (auto bad : {row.least - 1, row.most + 1}) {
        row.set(x.limits, bad);
        BOOST_TEST(says(refusal(x), {row.field, std::to_string(bad), std::to_string(row.least),
                                     std::to_string(row.most)}));
      }
    }
  }
  auto x = good();
  x.limits.cpu_milli = 0;
  BOOST_TEST(bool{validate(x)});
}

BOOST_AUTO_TEST_CASE(variables_user_and_directory_are_checked) {
  auto x = good();
  x.env = {{"A=B", ""}};
  BOOST_TEST(says(refusal(x), {"env[0]", "A=B"}));
  x = good();
  x.env.assign(9, {"A", std::string(131'000, 'x')});
  BOOST_TEST(says(refusal(x), {"env", "1048576"}));
  x = good();
  x.cwd = "work";
  BOOST_TEST(says(refusal(x), {"cwd", "work", "absolute"}));
  x.cwd = "";
  BOOST_TEST(says(refusal(x), {"cwd"}));
  x = good();
  x.user = std::string{"a\0b", 3};
  BOOST_TEST(says(refusal(x), {"user", "NUL"}));
}

BOOST_AUTO_TEST_SUITE_END()
