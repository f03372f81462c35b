// /etc/passwd and /etc/group of a sandbox are the agent's: whatever they hold, a user resolves to
// ids of the sandbox or to an error that names it, and the numbers of root stay root's.

#include "backends/init/reaper_protocol.hpp"
#include "backends/init/users.hpp"
#include "tests/fuzz/input.hpp"

using namespace dsec;
using namespace dsec::init;

namespace {

constexpr std::uint32_t id_max = 65535;

void check(const std::string& user, std::string_view passwd, std::string_view group) {
  const auto found = resolve_user(user, passwd, group);
  if (!found) {
    const auto& why = found.error();
    fuzz::claim(why.code == errc::not_found || why.code == errc::invalid_argument,
                "a user that is not there is said to be so", why.message);
    return;
  }
  fuzz::claim(found->uid <= id_max && found->gid <= id_max, "ids of the sandbox", user);
  fuzz::claim(found->groups.size() <= reaper::groups_max, "as many groups as PID 1 takes", user);
  for (auto gid : found->groups)
    fuzz::claim(gid <= id_max, "groups of the sandbox", user);
  const auto number = user_by_number(user);
  if (number)
    fuzz::claim(number->uid <= id_max && number->gid <= id_max && number->groups.empty(),
                "numbers are ids of the sandbox", user);
  // A file of nothing, and one without its last line's end.
  const auto alone = resolve_user(user, {}, {});
  if (user.find_first_not_of("0123456789:") == std::string::npos && !user.empty()
      && user.find(':') != std::string::npos && number)
    fuzz::claim(alone && alone->uid == number->uid && alone->gid == number->gid,
                "numbers do not need the files", user);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::input in{bytes, size};
  static const char* const users[] = {"",      "root",        "0",       "agent",
                                      "1000",  "agent:wheel", "0:0",     ":",
                                      "root:", "1000:10",     ":10",     "70000",
                                      "1:-1",  "x:y:z",       "65536:0", "4294967295"};
  const auto which = in.below(2 * sizeof users / sizeof *users);
  const auto user = which < sizeof users / sizeof *users ? std::string{users[which]} : in.text();
  const auto all = in.take_all();
  const auto cut = all.find('\0');
  check(user, all.substr(0, cut), cut == all.npos ? std::string_view{} : all.substr(cut + 1));
  return 0;
}
