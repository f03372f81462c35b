#include "state/record_store.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

namespace dsec {

namespace {

class memory_values final : public key_values {
public:
  result<void> write(const std::vector<key_write>& writes, write_mode) override {
    for (const auto& x : writes) {
      auto& keys = of(x.family);
      switch (x.what) {
      case key_write::kind::put:
        keys.insert_or_assign(x.key, x.value);
        break;
      case key_write::kind::erase:
        keys.erase(x.key);
        break;
      case key_write::kind::erase_range:
        keys.erase(keys.lower_bound(x.key), keys.lower_bound(x.value));
        break;
      }
    }
    return {};
  }

  result<std::optional<std::string>> get(family in, std::string_view key) override {
    const auto& keys = of(in);
    auto i = keys.find(key);
    if (i == keys.end())
      return std::optional<std::string>{};
    return std::optional{i->second};
  }

  result<void>
  scan(family in, std::string_view prefix, std::string_view from, const visitor& visit) override {
    const auto& keys = of(in);
    for (auto i = keys.lower_bound(std::max(prefix, from));
         i != keys.end() && i->first.starts_with(prefix); ++i) {
      auto go = visit(i->first, i->second);
      if (!go)
        return go.error();
      if (*go == then::stop)
        break;
    }
    return {};
  }

  result<std::optional<std::string>> last_key(family in, std::string_view prefix) override {
    const auto& keys = of(in);
    auto after = keys.lower_bound(after_prefix(std::string{prefix}));
    if (after == keys.begin() || !std::prev(after)->first.starts_with(prefix))
      return std::optional<std::string>{};
    return std::optional{std::prev(after)->first};
  }

private:
  using ordered_bytes = std::map<std::string, std::string, std::less<>>;

  ordered_bytes& of(family x) {
    return values_[static_cast<std::size_t>(x)];
  }

  std::array<ordered_bytes, families.size()> values_;
};

} // namespace

std::unique_ptr<store> make_memory_store() {
  return make_record_store(std::make_unique<memory_values>());
}

} // namespace dsec
