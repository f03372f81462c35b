#include "bench/soak/notices.hpp"

#include <fstream>

namespace dsec::bench {

soak_notices soak_notices::read(const std::filesystem::path& file) {
  soak_notices x;
  std::ifstream in{file};
  for (std::string word, box; in >> word;) {
    std::uint64_t step = 0;
    if (word == "acked" && in >> box >> step)
      x.acked[box].insert(step);
    else if (word == "killed" && in >> box)
      x.killed.insert(box);
    else if (word == "spawner")
      x.spawner = true;
  }
  return x;
}

void soak_notices::write(const std::filesystem::path& file) const {
  std::ofstream out{file, std::ios::trunc};
  for (const auto& [box, steps] : acked)
    for (auto step : steps)
      out << "acked " << box << ' ' << step << '\n';
  for (const auto& box : killed)
    out << "killed " << box << '\n';
  if (spawner)
    out << "spawner\n";
}

} // namespace dsec::bench
