#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace dsec::bench {

/// What one life of the node process is given. The driver writes the files, the node process reads
/// them when it starts.
struct soak_terms {
  std::filesystem::path state_dir, data_dir, run_dir;
  std::string base;              ///< Digest of the base layer.
  std::filesystem::path notices; ///< One line a thing that the driver knows: see soak_notices.
  unsigned sandboxes = 200;
  unsigned seconds = 10; ///< How long it works; 0: it closes the job and ends.
  std::uint64_t seed = 1;
};

/// Body of the node process: recovers, judges what it finds, brings the sandboxes up to their
/// number and uses them until its time is over. Tells the driver, one line each on standard output:
///
///     ack <sandbox> <step>    a recorded step was acknowledged
///     did <n>                 so many verbs since the last such line
///     wrong <text>            something was not as it must be
///
/// Returns the exit code.
int run_soak_node(const soak_terms& terms);

} // namespace dsec::bench
