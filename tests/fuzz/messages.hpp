#pragma once

#include "tests/fuzz/input.hpp"

#include <capnp/dynamic.h>

#include <functional>

namespace dsec::fuzz {

/// Gives a capability of that kind, or nothing.
using capability_source =
  std::function<kj::Maybe<capnp::DynamicCapability::Client>(capnp::InterfaceSchema wanted,
                                                            input& in)>;

/// Sets the fields of a message of any schema to what the input chooses: a method or field that is
/// added to a schema is covered without a word here. Messages within messages go `depth` deep.
void fill(capnp::DynamicStruct::Builder to, input& in, const capability_source& capabilities,
          int depth);

} // namespace dsec::fuzz
