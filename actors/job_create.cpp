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

/// How many nodes one item is tried on.
constexpr std::size_t tries_max = 8;

/// A creation under way: what each item got, and where it is tried next.
struct creating {
  std::vector<create_item> items;
  std::vector<std::uint64_t> indices;
  std::vector<result<sandbox_id>> replies;
  std::vector<std::size_t> wanted; ///< Items that are to be sent to a node.
  std::vector<join_node> nodes;    ///< Ranked first, then the others.
  std::vector<std::size_t> first;  ///< Of each item, where in `nodes` it began.
  std::size_t tries = 0;
  std::size_t open = 0;
  std::vector<std::size_t> refused; ///< Items worth another node.
  open_answers::answer<create_reply_ptr> answer;
};

using creating_ptr = std::shared_ptr<creating>;

void send_round(self_pointer self, const creating_ptr& all, const std::vector<std::size_t>& items);

/// Answers, and lets those go on that have waited for its keys.
template <class Answer>
void finish(self_pointer self, const creating_ptr& all, Answer answer) {
  auto& data = self->state;
  for (const auto& x : all->items)
    data.creating.erase(x.idempotency_key);
  all->answer.deliver(std::move(answer));
  for (auto& next : std::exchange(data.waiting, {}))
    next();
}

void end_round(self_pointer self, const creating_ptr& all) {
  if (--all->open > 0)
    return;
  ++all->tries;
  if (!all->refused.empty() && all->tries < std::min(all->nodes.size(), tries_max))
    return send_round(self, all, std::exchange(all->refused, {}));
  auto reply = std::make_shared<create_reply>();
  reply->sandboxes = std::move(all->replies);
  finish(self, all, create_reply_ptr{std::move(reply)});
}

/// `unknown`: the node may have made it, so that another one would make it twice.
void refuse(creating& all, std::size_t item, error why, bool unknown) {
  bool movable = !unknown || all.items[item].idempotency_key.empty();
  if (!movable)
    why.message += "; whether it was made is unknown, send its key again";
  else if (why.code == errc::exhausted || why.code == errc::unavailable)
    all.refused.push_back(item);
  all.replies[item] = std::move(why);
}

/// Sends each of `items` to the node whose turn it is. What a node refuses is tried on the next.
void send_round(self_pointer self, const creating_ptr& all, const std::vector<std::size_t>& items) {
  auto& data = self->state;
  std::map<std::size_t, std::vector<std::size_t>> by_node;
  for (auto item : items)
    by_node[(all->first[item] + all->tries) % all->nodes.size()].push_back(item);
  all->open = by_node.size();
  for (auto& [at, sent] : by_node) {
    const auto& node = all->nodes[at];
    create_request request{data.record.id, data.record.lease, {}, {}};
    for (auto item : sent) {
      request.items.push_back(all->items[item]);
      request.indices.push_back(all->indices[item]);
    }
    self->request(node.node, caf::infinite, std::move(request))
      .then(
        [self, all, sent = sent, id = node.id](const create_reply_ptr& reply) {
          for (std::size_t i = 0; i < sent.size(); ++i) {
            if (!reply->sandboxes[i]) {
              refuse(*all, sent[i], reply->sandboxes[i].error(), false);
              continue;
            }
            all->replies[sent[i]] = *reply->sandboxes[i];
            if (const auto& key = all->items[sent[i]].idempotency_key; !key.empty())
              self->state.placed[key] = id;
          }
          end_round(self, all);
        },
        [self, all, sent = sent, id = node.id](caf::error& cause) {
          doubt(self->state, id);
          for (auto item : sent)
            refuse(*all, item, from_caf(cause, fmt::format("node {}", id)), true);
          end_round(self, all);
        });
  }
}

/// Keys that were seen go where they went; the rest is spread evenly over the ranked nodes.
void first_round(self_pointer self, const creating_ptr& all, std::vector<join_node> ranked) {
  auto& data = self->state;
  all->nodes = ranked;
  for (const auto& x : data.nodes)
    if (std::ranges::find(ranked, x.id, &join_node::id) == ranked.end())
      all->nodes.push_back(x);
  auto share = (all->wanted.size() + ranked.size() - 1) / ranked.size();
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < all->wanted.size(); ++i) {
    auto item = all->wanted[i];
    const auto& key = all->items[item].idempotency_key;
    auto known = data.placed.find(key);
    auto home = known == data.placed.end()
                  ? all->nodes.end()
                  : std::ranges::find(all->nodes, known->second, &join_node::id);
    auto at =
      home == all->nodes.end() ? i / share : static_cast<std::size_t>(home - all->nodes.begin());
    all->first[item] = key.empty() ? at : seen.try_emplace(key, at).first->second;
  }
  send_round(self, all, all->wanted);
}

void place(self_pointer self, const creating_ptr& all) {
  std::uint64_t memory = 0;
  for (const auto& x : all->items)
    memory = std::max(memory, x.environment.limits.memory_bytes);
  self
    ->request(self->state.services.placement, caf::infinite,
              place_request{all->items.size(), memory})
    .then([self, all](const placement_reply& x) { first_round(self, all, x.ranked); },
          [self, all](caf::error& cause) {
            // A node has the last word, and knows keys that it has seen.
            auto nodes = self->state.nodes;
            if (nodes.empty())
              return finish(self, all, std::move(cause));
            first_round(self, all, std::move(nodes));
          });
}

/// Refuses the items whose key might name something on a node that does not say so.
void place_known(self_pointer self, const creating_ptr& all, const error& why) {
  const auto& placed = self->state.placed;
  std::erase_if(all->wanted, [&](std::size_t item) {
    const auto& key = all->items[item].idempotency_key;
    if (key.empty() || placed.contains(key))
      return false;
    all->replies[item] = error{errc::unavailable, fmt::format("create in job {}: {}",
                                                              self->state.record.id, why.message)};
    return true;
  });
  if (!all->wanted.empty())
    return place(self, all);
  all->open = 1;
  end_round(self, all);
}

/// Creations that share a key take turns: the later one finds what the earlier one has made.
void take_turn(self_pointer self, const creating_ptr& all) {
  auto& data = self->state;
  bool unknown = false;
  for (const auto& x : all->items) {
    if (data.creating.contains(x.idempotency_key))
      return data.waiting.push_back([self, all] { take_turn(self, all); });
    unknown |= !x.idempotency_key.empty() && !data.placed.contains(x.idempotency_key);
  }
  for (const auto& x : all->items)
    if (!x.idempotency_key.empty())
      data.creating.insert(x.idempotency_key);
  if (!unknown)
    return place(self, all);
  learn_keys(
    self, [self, all] { place(self, all); },
    [self, all](const error& why) { place_known(self, all, why); });
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
  auto all = std::make_shared<creating>(creating{.answer = data.owed.owe<create_reply_ptr>(self)});
  all->items = x.items;
  all->first.resize(x.items.size());
  for (std::size_t i = 0; i < x.items.size(); ++i) {
    all->indices.push_back(data.next_index++);
    all->replies.emplace_back(error{errc::unavailable, "create: no node has answered"});
    all->wanted.push_back(i);
  }
  auto answer = all->answer;
  if (data.next_index <= data.record.next_index) {
    take_turn(self, all);
    return answer;
  }
  data.record.next_index = data.next_index + index_block;
  persist(
    self, [self, all] { take_turn(self, all); },
    [all](caf::error cause) { all->answer.deliver(std::move(cause)); });
  return answer;
}

} // namespace dsec::job_parts
