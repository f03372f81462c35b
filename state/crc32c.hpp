#pragma once

#include <cstdint>
#include <string_view>

namespace dsec {

/// CRC-32C (Castagnoli, reflected) without the inversions at both ends: `seed` is the register
/// before, the result the register after. The usual checksum is ~crc32c(~0u, bytes).
std::uint32_t crc32c(std::uint32_t seed, std::string_view bytes);

} // namespace dsec
