#pragma once

#include "schemas/error.capnp.h"
#include "state/error.hpp"

#include <string>

namespace dsec::init {

/// `to` becomes what `from` says.
inline void fill(wire::Error::Builder to, const error& from) {
  to.setCode(static_cast<std::uint8_t>(from.code));
  to.setMessage(from.message.c_str());
}

inline std::string string_of(capnp::Data::Reader bytes) {
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

inline capnp::Data::Reader data_of(const std::string& bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

} // namespace dsec::init
