#pragma once

#include "state/error.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dsec {

/// One source of packages, as apt's configuration says it.
struct apt_source {
  std::vector<std::string> types; ///< "deb", "deb-src".
  std::vector<std::string> uris;
  std::vector<std::string> suites;
  std::vector<std::string> components;
  /// All other fields by their deb822 names, lines of a value joined as they stand.
  std::vector<std::pair<std::string, std::string>> options;

  friend bool operator==(const apt_source&, const apt_source&) = default;
};

/// Sources that are switched on, from text in the one-line form and in the deb822 form. Lines that
/// are neither are left out, as apt leaves out files it does not know.
std::vector<apt_source> parse_one_line_sources(std::string_view text);
std::vector<apt_source> parse_deb822_sources(std::string_view text);

/// Everything below `folder` (/etc/apt): sources.list, sources.list.d/*.list and *.sources, in
/// apt's order.
std::vector<apt_source> read_apt_sources(const std::filesystem::path& folder);

/// What serves `suite` with its updates and security fixes: those of `sources` that name it; else
/// the first that serves a plain suite, asked for `suite` instead. not_found if there is none.
result<std::vector<apt_source>>
sources_for(const std::vector<apt_source>& sources, const std::string& suite);

/// As text in the deb822 form.
std::string to_deb822(const std::vector<apt_source>& sources);

} // namespace dsec
