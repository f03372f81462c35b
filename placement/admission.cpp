#include "placement/admission.hpp"

#include <fmt/format.h>

namespace dsec {

result<void> admit(const budget& of, std::uint64_t asked) {
  if (of.most == 0 || (of.used <= of.most && asked <= of.most - of.used))
    return {};
  return refuse(of, asked);
}

error refuse(const budget& of, std::uint64_t asked) {
  return {errc::exhausted, fmt::format("admit {} {} on {}: {} of {} are in use", asked, of.limit,
                                       of.scope, of.used, of.most)};
}

} // namespace dsec
