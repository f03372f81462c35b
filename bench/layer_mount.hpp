#pragma once

#include "bench/kernel_calls.hpp"

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace dsec::bench {

/// Ids 0 to 65535 of whatever the benches build by hand stand for these on the machine.
inline constexpr unsigned first_uid = 1'000'000'000;

/// Gives the user namespace of `child` its ids.
void map_ids(pid_t child);

/// Never-attached mounts of layers, each a folder of dsec's store, seen with the ids of
/// `first_uid`.
std::vector<fd> mount_layers(const std::vector<std::string>& folders);

/// A never-attached overlay of `layers`, base first. `upper` and `work` belong to `first_uid`.
fd mount_overlay(const std::vector<fd>& layers, const std::string& upper, const std::string& work);

} // namespace dsec::bench
