#include "backends/init/users.hpp"

#include "backends/init/reaper_protocol.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unistd.h>

namespace dsec::init {

namespace {

constexpr std::size_t database_bytes_max = 1 << 20;

/// Of a line of passwd.
constexpr std::size_t fields_max = 7;

/// As many ids are mapped. One beyond must not reach the kernel: -1 means "leave it as it is"
/// there, which is root.
constexpr std::uint32_t id_max = 65535;

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t value = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || text.empty())
    return {};
  return value;
}

std::string_view take(std::string_view& rest, char separator) {
  const auto at = rest.find(separator);
  auto taken = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
  return taken;
}

/// Calls `use` with the fields of every line until it answers true.
template <class F>
void each_line(std::string_view text, F use) {
  while (!text.empty()) {
    auto line = take(text, '\n');
    // The agent's file: a line of colons alone must not become a million fields.
    std::vector<std::string_view> fields;
    while (!line.empty() && fields.size() < fields_max)
      fields.push_back(take(line, ':'));
    if (fields.size() >= 3 && use(fields))
      return;
  }
}

kj::Promise<std::string> content_inside(file_errands& files, std::string path) {
  file_request request;
  request.path = std::move(path);
  return files.run(std::move(request)).then([](result<file_answer>&& answer) {
    std::string text;
    if (!answer || answer->status.number != 0)
      return text;
    text.resize(std::min<std::size_t>(answer->status.size, database_bytes_max));
    const ssize_t n = ::pread(answer->file, text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
  });
}

result<identity> entry_of(std::string_view user, std::string_view passwd, std::string_view group) {
  identity found;
  auto group_part = user;
  const auto user_part = take(group_part, ':');
  const auto uid = number_in(user_part);
  std::string name;
  bool known = false;
  each_line(passwd, [&](const auto& f) {
    if (f.size() < 4 || !(f[0] == user_part || (uid && number_in(f[2]) == uid)))
      return false;
    const auto its_uid = number_in(f[2]), its_gid = number_in(f[3]);
    // A damaged line is none.
    if (!its_uid || !its_gid)
      return false;
    name = f[0];
    found.uid = *its_uid;
    found.gid = *its_gid;
    return known = true;
  });
  if (!known && user_part != "" && user_part != "root") {
    if (!uid)
      return error{errc::not_found, "run as user '" + std::string(user_part)
                                      + "': no such user in the sandbox's /etc/passwd"};
    found.uid = *uid;
    found.gid = 0;
  }
  if (!group_part.empty()) {
    auto gid = number_in(group_part);
    each_line(group, [&](const auto& f) {
      if (gid || f[0] != group_part)
        return false;
      gid = number_in(f[2]);
      return true;
    });
    if (!gid)
      return error{errc::not_found, "run as group '" + std::string(group_part)
                                      + "': no such group in the sandbox's /etc/group"};
    found.gid = *gid;
    return found;
  }
  each_line(group, [&](const auto& f) {
    if (f.size() < 4 || name.empty())
      return false;
    // Once, however often the agent's file names him: PID 1 takes no more than so many.
    bool member = false;
    for (auto members = f[3]; !members.empty() && !member;)
      member = take(members, ',') == name;
    if (const auto gid = number_in(f[2]); gid && member)
      found.groups.push_back(*gid);
    return found.groups.size() >= reaper::groups_max;
  });
  return found;
}

} // namespace

result<identity>
resolve_user(std::string_view user, std::string_view passwd, std::string_view group) {
  auto found = entry_of(user, passwd, group);
  const auto too_large = [](std::uint32_t id) {
    return id > id_max;
  };
  if (found
      && (too_large(found->uid) || too_large(found->gid)
          || std::any_of(found->groups.begin(), found->groups.end(), too_large)))
    return error{errc::invalid_argument, "run as user '" + std::string(user)
                                           + "': not an id of this sandbox (0 to "
                                           + std::to_string(id_max) + ")"};
  return found;
}

std::optional<identity> user_by_number(std::string_view user) {
  if (user.empty() || user == "root" || user == "0")
    return identity{};
  const auto uid = number_in(take(user, ':'));
  const auto gid = number_in(user);
  if (uid && gid && *uid <= id_max && *gid <= id_max)
    return identity{*uid, *gid, {}};
  return {};
}

kj::Promise<result<identity>> resolve_user_inside(file_errands& files, std::string user) {
  return content_inside(files, "/etc/passwd")
    .then([&files, user = std::move(user)](std::string&& passwd) mutable {
      return content_inside(files, "/etc/group")
        .then([user = std::move(user), passwd = std::move(passwd)](std::string&& group) {
          return resolve_user(user, passwd, group);
        });
    });
}

} // namespace dsec::init
