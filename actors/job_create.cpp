#include "actors/errors.hpp"
#include "actors/job_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace dsec::job_parts {

namespace {

/// Indices are reserved in blocks, so that most creations write no job record.
constexpr std::uint64_t index_block = 1024;

/// A creation under way: which items still want a node, and what the others got.
struct creating {
  std::vector<create_item> items;
  std::vector<std::uint64_t> indices;
  std::vector<result<sandbox_id>> replies;
  std::vector<join_node> ranked;
  std::size_t open = 0;
  std::vector<std::size_t> refused; ///< Worth another node.
  bool second_round = false;
  caf::typed_response_promise<create_reply_ptr> promise;
};

using creating_ptr = std::shared_ptr<creating>;

void send_round(self_pointer self, const creating_ptr& all,
                const std::map<std::size_t, std::vector<std::size_t>>& by_node);

void finish(const creating_ptr& all) {
  auto reply = std::make_shared<create_reply>();
  reply->sandboxes = std::move(all->replies);
  all->promise.deliver(create_reply_ptr{std::move(reply)});
}

/// What its first node refused is tried on the next ranked one, once.
void second_round(self_pointer self, const creating_ptr& all,
                  const std::map<std::size_t, std::size_t>& tried) {
  std::map<std::size_t, std::vector<std::size_t>> by_node;
  for (auto item : std::exchange(all->refused, {}))
    by_node[(tried.at(item) + 1) % all->ranked.size()].push_back(item);
  all->second_round = true;
  send_round(self, all, by_node);
}

void send_round(self_pointer self, const creating_ptr& all,
                const std::map<std::size_t, std::vector<std::size_t>>& by_node) {
  auto& data = self->state;
  all->open = by_node.size();
  auto tried = std::make_shared<std::map<std::size_t, std::size_t>>();
  for (const auto& [node, items] : by_node)
    for (auto item : items)
      (*tried)[item] = node;
  auto answered = [self, all, tried] {
    if (--all->open > 0)
      return;
    if (!all->refused.empty() && !all->second_round && all->ranked.size() > 1)
      second_round(self, all, *tried);
    else
      finish(all);
  };
  auto refuse = [all](std::size_t item, error why) {
    bool elsewhere = why.code == errc::exhausted || why.code == errc::unavailable;
    all->replies[item] = std::move(why);
    if (elsewhere)
      all->refused.push_back(item);
  };
  for (const auto& [at, items] : by_node) {
    const auto& node = all->ranked[at];
    create_request request{data.record.id, data.record.lease, {}, {}};
    for (auto item : items) {
      request.items.push_back(all->items[item]);
      request.indices.push_back(all->indices[item]);
      if (const auto& key = all->items[item].idempotency_key; !key.empty())
        data.placed[key] = node.id;
    }
    self->request(node.node, caf::infinite, std::move(request))
      .then(
        [all, items = items, answered, refuse](const create_reply_ptr& reply) {
          for (std::size_t i = 0; i < items.size(); ++i) {
            if (reply->sandboxes[i])
              all->replies[items[i]] = *reply->sandboxes[i];
            else
              refuse(items[i], reply->sandboxes[i].error());
          }
          answered();
        },
        [items = items, answered, refuse](caf::error& cause) {
          for (auto item : items)
            refuse(item, from_caf(cause, "the node"));
          answered();
        });
  }
}

/// Keys that were seen go where they went; the rest is spread evenly over the ranked nodes.
void first_round(self_pointer self, const creating_ptr& all) {
  auto& data = self->state;
  std::map<std::size_t, std::vector<std::size_t>> by_node;
  std::vector<std::size_t> fresh;
  for (std::size_t i = 0; i < all->items.size(); ++i) {
    auto known = data.placed.find(all->items[i].idempotency_key);
    if (known == data.placed.end()) {
      fresh.push_back(i);
      continue;
    }
    auto at = std::ranges::find(all->ranked, known->second, &join_node::id);
    if (at == all->ranked.end()) {
      auto home = std::ranges::find(data.nodes, known->second, &join_node::id);
      at = home == data.nodes.end() ? all->ranked.begin() : all->ranked.insert(at, *home);
    }
    by_node[static_cast<std::size_t>(at - all->ranked.begin())].push_back(i);
  }
  auto share = (fresh.size() + all->ranked.size() - 1) / all->ranked.size();
  for (std::size_t i = 0; i < fresh.size(); ++i)
    by_node[i / share].push_back(fresh[i]);
  send_round(self, all, by_node);
}

void place(self_pointer self, const creating_ptr& all) {
  std::uint64_t memory = 0;
  for (const auto& x : all->items)
    memory = std::max(memory, x.environment.limits.memory_bytes);
  self
    ->request(self->state.services.placement, caf::infinite,
              place_request{all->items.size(), memory})
    .then(
      [self, all](const placement_reply& x) {
        all->ranked = x.ranked;
        first_round(self, all);
      },
      [self, all](caf::error& cause) {
        // A node has the last word, and knows keys that it has seen.
        all->ranked = self->state.nodes;
        if (all->ranked.empty())
          return static_cast<void>(all->promise.deliver(std::move(cause)));
        first_round(self, all);
      });
}

std::optional<error> refusal(const job_record& x) {
  if (x.state == job_state::closed)
    return error{errc::invalid_state, fmt::format("create in job {}: it is closed", x.id)};
  if (x.state == job_state::preempted && x.preempted_until == preempt_mode::until_resume)
    return error{errc::preempted,
                 fmt::format("create in job {}: it is preempted until it is resumed", x.id)};
  return std::nullopt;
}

} // namespace

caf::result<create_reply_ptr> create(self_pointer self, const create_batch& x) {
  auto& data = self->state;
  if (auto why = refusal(data.record))
    return to_caf(*why);
  if (x.items.empty())
    return create_reply_ptr{std::make_shared<const create_reply>()};
  auto all = std::make_shared<creating>();
  all->items = x.items;
  for (std::size_t i = 0; i < x.items.size(); ++i) {
    all->indices.push_back(data.next_index++);
    all->replies.emplace_back(error{errc::unavailable, "create: no node has answered"});
  }
  all->promise = self->make_response_promise<create_reply_ptr>();
  if (data.next_index <= data.record.next_index) {
    place(self, all);
    return all->promise;
  }
  data.record.next_index = data.next_index + index_block;
  persist(
    self, [self, all] { place(self, all); },
    [all](caf::error& cause) { all->promise.deliver(std::move(cause)); });
  return all->promise;
}

} // namespace dsec::job_parts
