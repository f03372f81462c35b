#include "bench/demo/grade.hpp"

#include <regex>
#include <string>

namespace dsec::demo {

std::optional<score> parse_score(std::string_view output) {
  static const std::regex line{R"((\d{1,9}) passed, (\d{1,9}) failed)"};
  std::optional<score> last;
  while (!output.empty()) {
    auto end = output.find('\n');
    std::string text{output.substr(0, end)};
    output.remove_prefix(end == std::string_view::npos ? output.size() : end + 1);
    std::smatch match;
    if (std::regex_match(text, match, line))
      last = score{std::stoull(match[1]), std::stoull(match[2])};
  }
  return last;
}

double reward_of(const task& x, const std::optional<score>& got) {
  return got && got->failed == 0 && got->passed >= x.grade_tests ? 1.0 : 0.0;
}

} // namespace dsec::demo
