#include "state/error.hpp"

#include <cerrno>
#include <cstring>

namespace dsec {

std::string_view to_string(errc code) {
  switch (code) {
  case errc::invalid_argument:
    return "invalid_argument";
  case errc::not_found:
    return "not_found";
  case errc::invalid_state:
    return "invalid_state";
  case errc::exhausted:
    return "exhausted";
  case errc::unavailable:
    return "unavailable";
  case errc::corrupt:
    return "corrupt";
  case errc::preempted:
    return "preempted";
  case errc::state_in_use:
    return "state_in_use";
  case errc::diverged:
    return "diverged";
  case errc::no_program:
    return "no_program";
  case errc::not_executable:
    return "not_executable";
  case errc::expired:
    return "expired";
  }
  return "unknown";
}

namespace {

errc code_of(int number) {
  switch (number) {
  case ENOENT:
  case ENOTDIR:
    return errc::not_found;
  case EDQUOT:
  case ENOSPC:
  case ENOMEM:
  case EMFILE:
  case ENFILE:
    return errc::exhausted;
  case EINVAL:
  case ENAMETOOLONG:
  case EISDIR:
    return errc::invalid_argument;
  default:
    return errc::unavailable;
  }
}

} // namespace

error errno_error(int number, std::string what) {
  return {code_of(number), std::move(what) + ": " + std::strerror(number)};
}

} // namespace dsec
