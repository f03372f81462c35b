#pragma once

#include "state/store.hpp"

#include <string>
#include <vector>

namespace dsec {

/// Everything that must hold over what a store holds, whatever the moment of a crash: one sentence
/// for each thing that does not. Empty: all is well.
std::vector<std::string> violations(const loaded_state& state);

} // namespace dsec
