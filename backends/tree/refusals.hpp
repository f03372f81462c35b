#pragma once

#include "state/file.hpp"

#include <string_view>

namespace dsec {

/// Adds to the report what was left out: the first `refusals_told_max`, and at most 1 MiB of text.
class refusals {
public:
  explicit refusals(tree_report& to) : to_{to} {}

  void add(std::string_view path, std::string_view why) {
    constexpr std::size_t text_bytes_max = 1 << 20;
    ++to_.refused_total;
    bytes_ += path.size() + why.size();
    if (to_.refused.size() < refusals_told_max && bytes_ <= text_bytes_max)
      to_.refused.push_back({std::string{path}, std::string{why}});
  }

private:
  tree_report& to_;
  std::size_t bytes_ = 0;
};

} // namespace dsec
