#include "actors/errors.hpp"

#include <caf/atom.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>
#include <fmt/format.h>

namespace dsec {

namespace {

constexpr auto category = caf::atom("dsec");

} // namespace

caf::error to_caf(const error& x) {
  return caf::error{static_cast<std::uint8_t>(x.code), category, caf::make_message(x.message)};
}

error from_caf(const caf::error& x, std::string_view asked) {
  if (x.category() == category) {
    auto text = x.context().match_elements<std::string>() ? x.context().get_as<std::string>(0)
                                                          : std::string{};
    return {static_cast<errc>(x.code()), std::move(text)};
  }
  if (x == caf::sec::request_receiver_down)
    return {errc::unavailable, fmt::format("{}: its actor is gone; ask again", asked)};
  return {errc::unavailable, fmt::format("{} did not answer: {}", asked, to_string(x))};
}

} // namespace dsec
