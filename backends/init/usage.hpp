#pragma once

#include <kj/io.h>

#include <cstdint>

namespace dsec::init {

/// Where the file system counts what the subvolume `directory` holds (its simple quota's folder in
/// sysfs). To be opened before the lockdown; none if it is no btrfs or counts nothing.
kj::AutoCloseFd open_disk_account(int directory);

/// What the sandbox holds on disk, from its account: what lies there and what is about to be
/// written. 0 without one.
std::uint64_t disk_bytes(int account);

/// What its processes have read from and written to block devices.
struct block_traffic {
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
};

/// From io.stat of a group of the unified hierarchy; zeros where that has no io controller.
block_traffic block_traffic_of(int group);

} // namespace dsec::init
