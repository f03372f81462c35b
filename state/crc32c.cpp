#include "state/crc32c.hpp"

#include <array>
#include <cstddef>

namespace dsec {

namespace {

/// tables[k][b]: the register after byte b and k zero bytes, so that eight bytes go at once.
constexpr auto tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> out{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t x = b;
    for (int bit = 0; bit < 8; ++bit)
      x = (x >> 1) ^ ((x & 1) ? 0x82f63b78u : 0u);
    out[0][b] = x;
  }
  for (std::size_t k = 1; k < out.size(); ++k)
    for (std::size_t b = 0; b < 256; ++b)
      out[k][b] = (out[k - 1][b] >> 8) ^ out[0][out[k - 1][b] & 0xff];
  return out;
}();

} // namespace

std::uint32_t crc32c(std::uint32_t seed, std::string_view bytes) {
  auto at = [](std::string_view from, std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(from[i]));
  };
  std::uint32_t x = seed;
  while (bytes.size() >= 8) {
    x ^= at(bytes, 0) | at(bytes, 1) << 8 | at(bytes, 2) << 16 | at(bytes, 3) << 24;
    x = tables[7][x & 0xff] ^ tables[6][(x >> 8) & 0xff] ^ tables[5][(x >> 16) & 0xff]
        ^ tables[4][x >> 24] ^ tables[3][at(bytes, 4)] ^ tables[2][at(bytes, 5)]
        ^ tables[1][at(bytes, 6)] ^ tables[0][at(bytes, 7)];
    bytes.remove_prefix(8);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i)
    x = (x >> 8) ^ tables[0][(x ^ at(bytes, i)) & 0xff];
  return x;
}

} // namespace dsec
