#include "backends/container/tombstone.hpp"

#include <fstream>
#include <iterator>

namespace dsec {

std::optional<sandbox_end>
read_tombstone(const std::filesystem::path& run_dir, const sandbox_id& id) {
  std::ifstream file{run_dir / (id.str() + ".end")};
  if (!file)
    return std::nullopt;
  std::string cause;
  std::getline(file, cause);
  sandbox_end end;
  end.detail.assign(std::istreambuf_iterator<char>{file}, {});
  while (!end.detail.empty() && end.detail.back() == '\n')
    end.detail.pop_back();
  for (auto known : {end_cause::lease_expired, end_cause::time_to_live, end_cause::rollout_budget,
                     end_cause::self_inflicted, end_cause::stopped})
    if (cause == to_string(known))
      end.cause = known;
  return end;
}

} // namespace dsec
