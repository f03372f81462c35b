#include "placement/placement.hpp"

#include "placement/admission.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace dsec {

namespace {

struct candidate {
  const node_view* node = nullptr;
  double load = 0;
};

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::numeric_limits<std::uint64_t>::max() : out;
}

std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::numeric_limits<std::uint64_t>::max() : out;
}

double share(std::uint64_t used, std::uint64_t most) {
  return most == 0 ? 0.0 : static_cast<double>(used) / static_cast<double>(most);
}

/// A node as it is once all that is on its way has arrived.
struct filled_node {
  filled_node(const node_view& x, const in_flight& coming)
    : node{x},
      live{sum(x.live, coming.sandboxes)},
      memory_bytes{sum(x.memory_committed_bytes, coming.memory_bytes)} {}

  double load() const {
    return std::max(share(live, node.capacity), share(memory_bytes, node.memory_capacity_bytes));
  }

  std::uint64_t room() const {
    return node.capacity > live ? node.capacity - live : 0;
  }

  bool takes(const placement_request& x) const {
    auto memory_room =
      node.memory_capacity_bytes - std::min(memory_bytes, node.memory_capacity_bytes);
    return x.sandboxes <= room()
           && (node.memory_capacity_bytes == 0
               || product(x.sandboxes, x.memory_bytes) <= memory_room);
  }

  /// Why it does not take `x`.
  error refusal(const placement_request& x) const {
    auto scope = fmt::format("node {}", node.id);
    if (x.sandboxes > room())
      return refuse({"sandboxes", scope, live, node.capacity}, x.sandboxes);
    return refuse({"memory_bytes", scope, memory_bytes, node.memory_capacity_bytes},
                  product(x.sandboxes, x.memory_bytes));
  }

  const node_view& node;
  std::uint64_t live;
  std::uint64_t memory_bytes;
};

/// The first `count` of `from` become a uniform sample of all.
void draw(std::vector<candidate>& from, std::size_t count, std::mt19937_64& chance) {
  for (std::size_t i = 0; i < count; ++i) {
    // std::uniform_int_distribution differs between libraries, and a replay must not.
    auto j = i + chance() % (from.size() - i);
    std::swap(from[i], from[j]);
  }
  from.resize(count);
}

} // namespace

result<std::vector<node_id>> place(const cluster_view& view, const placement_overlay& overlay,
                                   const placement_request& request,
                                   const placement_options& options, std::mt19937_64& chance) {
  std::vector<candidate> fitting;
  std::optional<filled_node> closest;
  for (const auto& node : view.nodes) {
    if (node.age > options.age_max)
      continue;
    auto i = overlay.find(node.id);
    filled_node filled{node, i == overlay.end() ? in_flight{} : i->second};
    if (filled.takes(request))
      fitting.push_back({&node, filled.load()});
    else if (!closest || filled.room() > closest->room())
      closest.emplace(filled);
  }
  if (fitting.empty() && closest)
    return error{errc::exhausted,
                 fmt::format("place {} sandboxes: no node has room; closest: {}", request.sandboxes,
                             closest->refusal(request).message)};
  if (fitting.empty())
    return error{errc::unavailable,
                 fmt::format("place {} sandboxes: none of {} nodes was heard of within {} ms",
                             request.sandboxes, view.nodes.size(), options.age_max.count())};

  draw(fitting, std::min(std::max<std::size_t>(1, options.choices), fitting.size()), chance);
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const auto& a, const auto& b) { return a.load < b.load; });
  std::vector<node_id> out;
  for (const auto& x : fitting)
    out.push_back(x.node->id);
  return out;
}

} // namespace dsec
