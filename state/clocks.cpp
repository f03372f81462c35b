#include "state/clocks.hpp"

#include <fmt/format.h>

#include <utility>

namespace dsec {

std::string_view to_string(idle_action x) {
  switch (x) {
  case idle_action::reclaim:
    return "reclaim";
  case idle_action::stop:
    return "stop";
  }
  return "unknown";
}

result<void> validate(const sandbox_clocks& x) {
  for (auto [name, value] :
       {std::pair{"time_to_live", x.time_to_live}, std::pair{"rollout_budget", x.rollout_budget},
        std::pair{"idle_timeout", x.idle_timeout}})
    if (value < std::chrono::milliseconds{0} || value > clock_max)
      return error{errc::invalid_argument, fmt::format("clocks: {} is {} ms; 0 to {}", name,
                                                       value.count(), clock_max.count())};
  return {};
}

} // namespace dsec
