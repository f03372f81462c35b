#include "actors/plane.hpp"

#include "actors/cluster.hpp"
#include "actors/errors.hpp"
#include "actors/journal.hpp"
#include "actors/plane_parts.hpp"

#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <fstream>
#include <utility>

namespace dsec {

namespace {

std::string kernel_boot_id() {
  std::string id;
  std::getline(std::ifstream{"/proc/sys/kernel/random/boot_id"}, id);
  return id;
}

result<std::uint32_t> drawn_number() {
  std::uint32_t x = 0;
  std::ifstream in{"/dev/urandom", std::ios::binary};
  if (!in.read(reinterpret_cast<char*>(&x), sizeof x))
    return error{errc::unavailable, "read /dev/urandom for a node id"};
  return x;
}

result<void> wait_recovered(caf::actor_system& system, const node_inside& node) {
  caf::scoped_actor self{system};
  result<void> done;
  self->request(node, caf::infinite, await_recovered{})
    .receive([](ack) {},
             [&](caf::error& cause) { done = from_caf(cause, "recovery of the node"); });
  return done;
}

} // namespace

std::int64_t wall_offset_now() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  auto wall = std::chrono::system_clock::now().time_since_epoch();
  auto steady = caf::actor_clock::clock_type::now().time_since_epoch();
  return duration_cast<milliseconds>(wall).count() - duration_cast<milliseconds>(steady).count();
}

void configure(caf::actor_system_config& config, unsigned workers) {
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", std::size_t{workers});
  config.set("scheduler.max-throughput", std::size_t{100});
  config.add_error_category(caf::atom("dsec"), [](std::uint8_t code, caf::atom_value,
                                                  const caf::message& context) {
    return fmt::format("{}{}", to_string(static_cast<errc>(code)), caf::to_string(context));
  });
  if (!spdlog::get("dsec")) {
    auto log = spdlog::stderr_color_mt("dsec");
    log->set_level(spdlog::level::warn);
    spdlog::set_default_logger(std::move(log));
  }
}

result<plane_seed> load_seed(store& durable, const plane_options& options) {
  auto loaded = durable.load(steps_of::live);
  if (!loaded)
    return loaded.error();
  plane_seed seed;
  auto& meta = seed.node.meta;
  meta = std::move(loaded->meta);
  auto boot_id = options.boot_id.empty() ? kernel_boot_id() : options.boot_id;
  if (meta.node.empty()) {
    auto number =
      options.node_number ? result<std::uint32_t>{*options.node_number} : drawn_number();
    if (!number)
      return number.error();
    meta.node = make_node_id(*number);
  } else {
    seed.node.rebooted = meta.boot_id != boot_id;
  }
  meta.boot_id = std::move(boot_id);
  ++meta.epoch;
  seed.node.sandboxes = std::move(loaded->sandboxes);
  seed.node.steps = std::move(loaded->steps);
  seed.node.steps_of_ended = std::move(loaded->steps_left_out);
  seed.jobs = std::move(loaded->jobs);
  return seed;
}

write_batch_ptr opening_write(const plane_seed& seed) {
  auto batch = std::make_shared<write_batch>();
  batch->meta.push_back(seed.node.meta);
  return batch;
}

result<plane>
start_plane(caf::actor_system& system, store& durable, backend& kernel, plane_options options) {
  auto seed = load_seed(durable, options);
  if (!seed)
    return seed.error();
  if (auto ok = durable.commit({opening_write(*seed)}); !ok)
    return ok.error();
  plane parts;
  auto wall_offset_ms = options.wall_offset_ms;
  parts.node = seed->node.meta.node;
  parts.journal = system.spawn<caf::detached>(journal, &durable);
  auto served = system.spawn(node, std::move(seed->node),
                             node_services{parts.journal, effects{kernel}}, std::move(options));
  parts.node_handle = served;
  if (auto ok = wait_recovered(system, served); !ok) {
    caf::anon_send_exit(served, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(parts.journal, caf::exit_reason::user_shutdown);
    return ok.error();
  }
  parts.cluster = system.spawn(cluster, std::move(seed->jobs), parts.journal, wall_offset_ms);
  caf::anon_send(parts.cluster, join_node{parts.node, parts.node_handle});
  return parts;
}

void stop_plane(const plane& target) {
  caf::anon_send_exit(target.cluster, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(target.node_handle, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(target.journal, caf::exit_reason::user_shutdown);
}

void deliver_ended(const plane& target, const sandbox_id& id, const sandbox_end& end) {
  caf::anon_send(caf::actor_cast<caf::actor>(target.node_handle), ended_notice{id, end});
}

} // namespace dsec
