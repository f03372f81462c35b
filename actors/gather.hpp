#pragma once

#include "actors/protocol.hpp"

#include <caf/error.hpp>
#include <caf/none.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

/// One question to many, and one answer made of theirs.

namespace dsec {

/// Asks every one of `asked` for an `Answer` to `request`. `add(sum, answer)` and `miss(sum,
/// error)` take each reply into the sum that began as `start`; `done` gets it with the last of
/// them, at once if nobody is asked.
template <class Answer, class T, class Self, class Handle, class Request, class Add, class Miss>
void gather(Self self, const std::vector<Handle>& asked, const Request& request, T start, Add add,
            Miss miss, std::function<void(T)> done) {
  struct gathering {
    T sum;
    std::size_t open;
    std::function<void(T)> done;

    void answered() {
      if (--open == 0)
        done(std::move(sum));
    }
  };

  auto all =
    std::make_shared<gathering>(gathering{std::move(start), asked.size() + 1, std::move(done)});
  for (const auto& x : asked)
    self->request(x, caf::infinite, request)
      .then(
        [all, add](const Answer& part) {
          add(all->sum, part);
          all->answered();
        },
        [all, miss](caf::error& cause) {
          miss(all->sum, cause);
          all->answered();
        });
  all->answered();
}

/// The same of nodes, where one that fails fails the whole: then `failed` gets its error.
template <class Answer, class T, class Self, class Request, class Add>
void ask_nodes(Self self, const std::vector<join_node>& nodes, const Request& request, T start,
               Add add, std::function<void(T)> done, std::function<void(caf::error)> failed) {
  using sum = std::pair<T, caf::error>;
  std::vector<node_actor> asked;
  for (const auto& x : nodes)
    asked.push_back(x.node);
  gather<Answer>(
    self, asked, request, sum{std::move(start), caf::none},
    [add](sum& all, const Answer& part) { add(all.first, part); },
    [](sum& all, caf::error& cause) { all.second = std::move(cause); },
    std::function<void(sum)>{[done = std::move(done), failed = std::move(failed)](sum all) {
      if (all.second)
        failed(std::move(all.second));
      else
        done(std::move(all.first));
    }});
}

/// What every node lists, together.
template <class Self>
void inventory_of_nodes(Self self, const std::vector<join_node>& nodes,
                        const inventory_query& request, std::function<void(inventory_ptr)> done,
                        std::function<void(caf::error)> failed) {
  ask_nodes<inventory_ptr>(
    self, nodes, request, std::make_shared<inventory>(),
    [](std::shared_ptr<inventory>& sum, const inventory_ptr& part) {
      sum->sandboxes.insert(sum->sandboxes.end(), part->sandboxes.begin(), part->sandboxes.end());
    },
    std::function<void(std::shared_ptr<inventory>)>{
      [done = std::move(done)](std::shared_ptr<inventory> sum) {
        done(std::move(sum));
      }},
    std::move(failed));
}

} // namespace dsec
