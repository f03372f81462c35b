#define BOOST_TEST_MODULE state

#include "schemas/records.capnp.h"
#include "state/codec.hpp"
#include "state/crc32c.hpp"
#include "state/format.hpp"
#include "state/invariants.hpp"
#include "tests/state/records.hpp"

#include <boost/test/unit_test.hpp>
#include <capnp/schema.h>

#include <functional>
#include <vector>

using namespace dsec;

namespace {

std::uint32_t checksum(std::string_view bytes) {
  return ~crc32c(~0u, bytes);
}

/// A value whose header is right, whatever the message.
std::string with_header(std::string message) {
  auto sum = checksum(message);
  std::string out(1, '\x01');
  for (int i = 0; i < 4; ++i)
    out += static_cast<char>(sum >> (8 * i) & 0xff);
  return out + message;
}

/// Every decoder on the same bytes; true if one takes them.
bool any_decodes(std::string_view bytes) {
  step_record ended;
  ended.result.emplace();
  bool taken = false;
  for (const auto& e : {decode_meta(bytes) ? errc{} : decode_meta(bytes).error().code,
                        decode_job(bytes) ? errc{} : decode_job(bytes).error().code,
                        decode_sandbox(bytes) ? errc{} : decode_sandbox(bytes).error().code,
                        decode_step(bytes) ? errc{} : decode_step(bytes).error().code,
                        decode_event(bytes) ? errc{} : decode_event(bytes).error().code}) {
    taken |= e == errc{};
    BOOST_TEST((e == errc{} || e == errc::corrupt));
  }
  return taken | bool{decode_output(bytes, ended)};
}

std::vector<std::string> samples(record_source& source) {
  return {encode(source.meta()), encode(source.job()), encode(source.sandbox()),
          encode(source.step()), encode(source.event())};
}

std::string camel(std::string_view snake) {
  std::string out;
  for (std::size_t i = 0; i < snake.size(); ++i)
    if (snake[i] == '_')
      out += static_cast<char>(std::toupper(snake[++i]));
    else
      out += snake[i];
  return out;
}

template <class Wire, class Enum>
void expect_same_names(Enum last) {
  auto enumerants = capnp::Schema::from<Wire>().getEnumerants();
  BOOST_TEST_REQUIRE(enumerants.size() == static_cast<unsigned>(last) + 1);
  for (unsigned i = 0; i < enumerants.size(); ++i)
    BOOST_TEST(std::string{enumerants[i].getProto().getName().cStr()}
               == camel(to_string(static_cast<Enum>(i))));
}

} // namespace

BOOST_AUTO_TEST_SUITE(codec)

BOOST_AUTO_TEST_CASE(the_checksum_is_crc32c) {
  BOOST_TEST(checksum("123456789") == 0xe3069283u);
  BOOST_TEST(checksum("") == 0u);
}

BOOST_AUTO_TEST_CASE(records_survive_a_round_trip) {
  record_source source{test_seed()};
  for (int i = 0; i < 500; ++i) {
    auto meta = source.meta();
    BOOST_TEST(same(*decode_meta(encode(meta)), meta));
    auto job = source.job();
    BOOST_TEST(same(*decode_job(encode(job)), job));
    auto sandbox = source.sandbox();
    BOOST_TEST(same(*decode_sandbox(encode(sandbox)), sandbox));
    auto step = source.step();
    auto decoded = *decode_step(encode(step));
    if (auto output = encode_output(step); !output.empty())
      BOOST_TEST(bool{decode_output(output, decoded)});
    BOOST_TEST(same(decoded, step));
    auto event = source.event();
    BOOST_TEST(same(*decode_event(encode(event)), event));
  }
}

BOOST_AUTO_TEST_CASE(a_step_is_encoded_without_its_output) {
  record_source source{1};
  auto step = source.step();
  while (!step.result)
    step = source.step();
  step.result->out = std::string(1'000'000, 'x');
  BOOST_TEST(encode(step).size() < 1000u);
  BOOST_TEST(decode_step(encode(step))->result->out.empty());
}

BOOST_AUTO_TEST_CASE(a_large_environment_survives) {
  record_source source{2};
  auto x = source.sandbox();
  x.environment.layers.assign(200, layer_digest{"sha256-" + std::string(64, 'f')});
  x.environment.env.assign(1000, {"NAME", std::string(900, 'v')});
  BOOST_TEST(same(*decode_sandbox(encode(x)), x));
}

BOOST_AUTO_TEST_CASE(a_truncated_value_is_corrupt_at_every_length) {
  record_source source{test_seed()};
  for (const auto& whole : samples(source))
    for (std::size_t size = 0; size < whole.size(); ++size)
      BOOST_TEST(!any_decodes(std::string_view{whole}.substr(0, size)));
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_is_corrupt_wherever_it_is) {
  record_source source{test_seed()};
  for (const auto& whole : samples(source))
    for (std::size_t i = 0; i < whole.size(); ++i) {
      auto torn = whole;
      torn[i] = static_cast<char>(torn[i] ^ 1 << source.number(8));
      BOOST_TEST(!any_decodes(torn));
    }
}

BOOST_AUTO_TEST_CASE(any_message_behind_a_right_checksum_is_a_record_or_corrupt) {
  record_source source{test_seed()};
  for (int i = 0; i < 300; ++i)
    any_decodes(with_header(source.bytes(200)));
  for (int i = 0; i < 30; ++i)
    for (const auto& whole : samples(source)) {
      auto message = whole.substr(5);
      for (auto flips = 1 + source.number(6); flips > 0; --flips) {
        auto at = source.number(message.size());
        message[at] = static_cast<char>(message[at] ^ 1 << source.number(8));
      }
      any_decodes(with_header(message));
    }
}

BOOST_AUTO_TEST_CASE(a_version_of_the_future_is_told) {
  record_source source{3};
  auto value = encode(source.meta());
  value[0] = 2;
  auto decoded = decode_meta(value);
  BOOST_TEST_REQUIRE(!decoded);
  BOOST_TEST((decoded.error().code == errc::corrupt));
  BOOST_TEST(decoded.error().message.find("version 2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(output_belongs_to_a_step_that_ended) {
  record_source source{4};
  auto step = source.step();
  step.result.emplace().out = "x";
  auto output = encode_output(step);
  step.result.reset();
  auto done = decode_output(output, step);
  BOOST_TEST_REQUIRE(!done);
  BOOST_TEST((done.error().code == errc::invalid_argument));
}

BOOST_AUTO_TEST_CASE(the_schema_names_every_enumerator_in_the_same_order) {
  expect_same_names<wire::SandboxRecord::State>(sandbox_state::lost);
  expect_same_names<wire::SandboxRecord::Cause>(end_cause_last);
  expect_same_names<wire::JobRecord::State>(job_state::closed);
  expect_same_names<wire::JobRecord::PreemptMode>(preempt_mode::until_resume);
  expect_same_names<wire::Outcome::Kind>(outcome_kind_last);
  expect_same_names<wire::EventRecord::Kind>(event_kind_last);
}

BOOST_AUTO_TEST_SUITE_END()
