#pragma once

#include "state/error.hpp"
#include "state/file.hpp"

#include <functional>
#include <string>

namespace dsec {

/// Where a copy goes.
struct landing {
  std::string folder; ///< Made if it is missing.
  std::string top;    ///< The copy's name in it; empty: its content goes into the folder.
};

/// lstat on the side that is copied to.
using look = std::function<result<file_status>(const std::string& path)>;

/// True for a source that stands for a directory's content: "/", "a/.", "..".
bool is_content(const std::string& from);

/// What cp does: a directory at `to`, or a `to` that ends in '/' or '/.', takes the source in under
/// its own name; otherwise the source becomes `to`. Content goes into `to`. invalid_argument if a
/// directory would replace something else or the other way round.
result<landing>
land(const std::string& from, bool from_is_directory, const std::string& to, const look& there);

/// lstat of this process's own file system.
result<file_status> look_here(const std::string& path);

} // namespace dsec
