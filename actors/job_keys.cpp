#include "actors/errors.hpp"
#include "actors/gather.hpp"
#include "actors/job_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace dsec::job_parts {

void learn_keys(self_pointer self, std::function<void()> known,
                std::function<void(error)> unknown) {
  auto& data = self->state;
  std::vector<node_actor> asked;
  for (const auto& x : data.nodes)
    if (!data.learnt.try_emplace(x.id, data.fresh).first->second)
      asked.push_back(x.node);
  if (asked.empty())
    return known();
  gather<keys_reply>(
    self, asked, keys_request{data.record.id}, std::optional<error>{},
    [self](std::optional<error>&, const keys_reply& x) {
      for (const auto& key : x.keys)
        self->state.placed.try_emplace(key, x.node);
      self->state.learnt[x.node] = true;
    },
    [](std::optional<error>& failure, caf::error& cause) {
      failure = from_caf(cause, "a node that may have its key");
    },
    std::function<void(std::optional<error>)>{
      [known = std::move(known), unknown = std::move(unknown)](std::optional<error> failure) {
        failure ? unknown(*std::move(failure)) : known();
      }});
}

void doubt(job_data& data, const node_id& node) {
  data.learnt[node] = false;
}

} // namespace dsec::job_parts
