#include "sdk/cli/standard_output.hpp"

#include "sdk/cli/own_output.hpp"
#include "sdk/cli/shown.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <unistd.h>
#include <vector>

namespace dsec {

namespace {

template <class Json>
bool is_text(const Json& x) {
  if (!x.is_string())
    return true;
  try {
    (void)x.dump();
    return true;
  } catch (const typename Json::type_error&) {
    return false;
  }
}

template <class Json>
void spell(Json& x);

/// Whether `x` had to be spelled otherwise; if it is an array, all its strings are.
template <class Json>
bool spell_value(Json& x) {
  const bool list = x.is_array();
  if (is_text(x) && !(list && !std::ranges::all_of(x, is_text<Json>))) {
    spell(x);
    return false;
  }
  auto respell = [](Json& text) {
    if (text.is_string())
      text = shown(text.template get_ref<const std::string&>());
    else
      spell(text);
  };
  if (list)
    std::ranges::for_each(x, respell);
  else
    respell(x);
  return true;
}

template <class Json>
void spell(Json& x) {
  if (x.is_array())
    std::ranges::for_each(x, [](Json& each) { spell(each); });
  if (!x.is_object())
    return;
  std::vector<std::string> escaped;
  for (auto at = x.begin(); at != x.end(); ++at)
    if (spell_value(at.value()))
      escaped.push_back(at.key());
  if (!escaped.empty())
    x["escaped"] = escaped;
}

} // namespace

result<void> print(std::string_view text) {
  if (int number = write_all(STDOUT_FILENO, text.data(), text.size()); number != 0)
    return errno_error(number, "write standard output");
  return {};
}

std::string json_text(nlohmann::json x, int indent) {
  spell(x);
  return x.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

result<void> print_json(nlohmann::json x, int indent) {
  return print(std::string_view{json_text(std::move(x), indent) + "\n"});
}

result<void> print_json(nlohmann::ordered_json x) {
  spell(x);
  return print(std::string_view{
    x.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"});
}

void complain(std::string_view message) {
  auto line = "dsec: " + shown_message(message) + "\n";
  (void)write_all(STDERR_FILENO, line.data(), line.size());
}

std::string shown_message(std::string_view message) {
  std::string all;
  for (;;) {
    auto end = message.find('\\');
    all += shown(message.substr(0, end));
    if (end == std::string_view::npos)
      return all;
    all += '\\';
    message.remove_prefix(end + 1);
  }
}

} // namespace dsec
