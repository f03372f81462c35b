#pragma once

#include "state/key_values.hpp"
#include "state/store.hpp"

#include <memory>

namespace dsec {

/// The meaning of a store (which keys a record takes, what `forgotten` removes) over any
/// key_values.
std::unique_ptr<store> make_record_store(std::unique_ptr<key_values> bytes);

} // namespace dsec
