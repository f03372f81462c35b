#pragma once

#include "bench/kernel_calls.hpp"
#include "bench/place.hpp"
#include "bench/report.hpp"
#include "state/environment.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace dsec::bench {

/// One root file system, mounted once, as OCI runtimes see it: in a mount namespace of its own,
/// where the unified cgroup folder is covered by an empty tmpfs, because crun 1.8 refuses hybrid
/// cgroups.
class peer_root {
public:
  /// Mounts the stack of `layers` (folders of the store, base first) below `folder`, with `upper`
  /// and `work` on `scratch`.
  peer_root(const std::vector<std::string>& layers, const std::filesystem::path& folder,
            const std::filesystem::path& scratch);

  const std::filesystem::path& path() const {
    return path_;
  }

  const fd& mount_namespace() const {
    return mount_namespace_;
  }

private:
  std::filesystem::path path_;
  fd mount_namespace_;
};

/// A container runtime with an OCI command line (crun, runc), asked for what a sandbox has: the
/// same root, namespaces and limits.
class oci_peer {
public:
  /// Bundles and its state go below `folder`. Throws if it cannot run `true`.
  oci_peer(std::string program, const peer_root& root, const sandbox_limits& limits,
           std::filesystem::path folder);

  oci_peer(const oci_peer&) = delete;
  oci_peer& operator=(const oci_peer&) = delete;

  ~oci_peer();

  /// Milliseconds of a whole `run` of /bin/true.
  double run();

  /// Milliseconds of an `exec` of /bin/true in a container that is running. The first call starts
  /// it.
  double exec();

private:
  void call(std::vector<std::string> words);

  std::string program_;
  const peer_root& root_;
  std::filesystem::path folder_;
  std::string name_;
  bool holds_ = false;
};

/// Null, with a note in `found`, if this machine does not have it or it cannot run here.
std::unique_ptr<oci_peer> open_peer(const std::string& program, const peer_root& root,
                                    const sandbox_limits& limits, const place& where,
                                    report& found);

} // namespace dsec::bench
