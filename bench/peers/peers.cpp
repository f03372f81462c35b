// What the same thing takes elsewhere: a whole container that runs `true`.

#include "bench/benches.hpp"
#include "bench/limit/limit_process.hpp"
#include "bench/peers/oci_peer.hpp"

namespace dsec::bench {

report run_peers(const bench_options& options) {
  report found{"peers"};
  testbed bed{options};
  const auto& limits = bed.environment().limits;
  const auto scratch = bed.place().mount_scratch("scratch");
  const peer_root root{bed.layers(), bed.place().folder("rootfs"), scratch};
  limit_process limit{scratch, limits, bed.layers()};
  std::map<std::string, std::unique_ptr<oci_peer>> peers;
  std::map<std::string, series> ms;
  for (const auto* name : {"crun", "runc"})
    if (auto peer = open_peer(name, root, limits, bed.place(), found))
      peers.emplace(name, std::move(peer));

  const int rounds = options.quick ? 50 : 300;
  for (int i = 0; i < rounds; ++i) {
    go_on();
    for (const auto& [name, peer] : peers)
      ms[name].add(peer->run());
    ms["limit"].add(limit.run());
    ms["ours"].add(create_and_exec(bed));
  }
  for (const auto& [name, values] : ms)
    found.metric(name + "_create_true_p50_ms", values.median());
  return found;
}

} // namespace dsec::bench
