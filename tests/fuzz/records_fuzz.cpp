// What a state directory may hold after years and crashes: any bytes decode to a record or to
// `corrupt`, and a record that was decoded is stored again as it was read.

#include "state/codec.hpp"
#include "state/crc32c.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/state/records.hpp"

using namespace dsec;

namespace {

/// The version and the checksum in front of a message, so that what lies behind them is reached.
std::string with_header(std::string_view message) {
  const auto sum = ~crc32c(~0u, message);
  std::string out(1, '\x01');
  for (int i = 0; i < 4; ++i)
    out += static_cast<char>(sum >> (8 * i) & 0xff);
  return out.append(message);
}

template <class Record>
void expect_stable(const result<Record>& read, result<Record> (*decode)(std::string_view)) {
  if (!read)
    return fuzz::claim(read.error().code == errc::corrupt, "a bad value is corrupt",
                       read.error().message);
  const auto bytes = encode(*read);
  const auto again = decode(bytes);
  fuzz::claim(bool{again}, "a record that was read can be stored and read");
  fuzz::claim(same(*again, *read), "a record is read back as it was");
  fuzz::claim(encode(*again) == bytes, "the same record is stored as the same bytes");
}

void read_all(std::string_view bytes) {
  expect_stable(decode_meta(bytes), decode_meta);
  expect_stable(decode_job(bytes), decode_job);
  expect_stable(decode_sandbox(bytes), decode_sandbox);
  expect_stable(decode_step(bytes), decode_step);
  expect_stable(decode_event(bytes), decode_event);
  step_record ended;
  ended.result.emplace();
  if (!decode_output(bytes, ended))
    return;
  step_record again;
  again.result.emplace();
  const auto output = encode_output(ended);
  fuzz::claim(output.empty() || decode_output(output, again), "an output can be stored and read");
  fuzz::claim(output.empty() || same(again, ended), "an output is read back as it was");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::input in{bytes, size};
  const auto kind = in.byte();
  if (kind < 128) {
    read_all(in.take_all());
    return 0;
  }
  // A whole record of some seed, then what befell its message.
  record_source source{kind};
  std::string whole[] = {encode(source.meta()),        encode(source.job()),
                         encode(source.sandbox()),     encode(source.step()),
                         encode_output(source.step()), encode(source.event())};
  std::string message = in.one_of(whole);
  message.erase(0, 5);
  if (message.empty())
    message = in.take_all();
  while (!in.empty()) {
    const auto at = in.number<std::uint16_t>() % (message.size() + 1);
    const auto replaced = in.text();
    message.replace(at, std::min(replaced.size(), message.size() - at), replaced);
    if (in.flag())
      message.resize(in.number<std::uint16_t>() % (message.size() + 1));
  }
  read_all(with_header(message));
  return 0;
}
