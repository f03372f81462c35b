#include "state/file.hpp"

namespace dsec {

std::string_view to_string(file_type x) {
  switch (x) {
  case file_type::regular:
    return "regular";
  case file_type::directory:
    return "directory";
  case file_type::symlink:
    return "symlink";
  case file_type::other:
    return "other";
  }
  return "unknown";
}

} // namespace dsec
