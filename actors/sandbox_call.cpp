#include "actors/sandbox_parts.hpp"

#include <algorithm>
#include <cctype>

namespace dsec::sandbox_parts {

namespace {

constexpr auto default_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

using variables = std::vector<std::pair<std::string, std::string>>;

void put(variables& into, const std::string& name, const std::string& value) {
  auto known = std::ranges::find(into, name, &variables::value_type::first);
  if (known != into.end())
    known->second = value;
  else
    into.emplace_back(name, value);
}

/// The sandbox's own passwd is not read here; a named user's home is where Debian puts it.
std::string home_of(const std::string& user) {
  auto name = user.substr(0, user.find(':'));
  if (name.empty() || name == "root" || name == "0")
    return "/root";
  if (std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; }))
    return "/";
  return "/home/" + name;
}

} // namespace

exec_spec complete(const environment& from, exec_spec spec) {
  if (spec.user.empty())
    spec.user = from.user;
  if (spec.cwd.empty())
    spec.cwd = from.cwd;
  variables all{{"PATH", default_path}, {"HOME", home_of(spec.user)}};
  for (const auto& [name, value] : from.env)
    put(all, name, value);
  for (const auto& [name, value] : spec.env)
    put(all, name, value);
  spec.env = std::move(all);
  return spec;
}

} // namespace dsec::sandbox_parts
