#include "state/record_store.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace dsec {

namespace {

class memory_values final : public key_values {
public:
  result<void> write(const std::vector<key_write>& writes) override {
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

  result<void> scan(family in, std::string_view prefix, const visitor& visit) override {
    const auto& keys = of(in);
    for (auto i = keys.lower_bound(prefix); i != keys.end() && i->first.starts_with(prefix); ++i)
      if (auto ok = visit(i->first, i->second); !ok)
        return ok;
    return {};
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
