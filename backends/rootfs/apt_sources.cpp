#include "backends/rootfs/apt_sources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <optional>

namespace dsec {

namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == std::string_view::npos)
      break;
    auto end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    auto end = std::min(text.find('\n', at), text.size());
    auto line = text.substr(at, end - at);
    out.emplace_back(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
    at = end + 1;
  }
  return out;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string trimmed(std::string_view text) {
  auto from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos)
    return {};
  return std::string{text.substr(from, text.find_last_not_of(" \t") - from + 1)};
}

/// The deb822 field of an option of the one-line form.
std::string field_of(const std::string& option) {
  if (option == "arch")
    return "Architectures";
  if (option == "lang")
    return "Languages";
  if (option == "target")
    return "Targets";
  std::string out = option;
  bool start = true;
  for (auto& c : out) {
    if (start)
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    start = c == '-';
  }
  return out;
}

std::optional<apt_source> parse_line(std::string_view line) {
  auto text = std::string{line.substr(0, std::min(line.find('#'), line.size()))};
  apt_source out;
  if (auto open = text.find('['); open != std::string::npos) {
    auto close = text.find(']', open);
    if (close == std::string::npos)
      return std::nullopt;
    for (const auto& x : words(text.substr(open + 1, close - open - 1))) {
      auto equals = x.find('=');
      if (equals == std::string::npos)
        return std::nullopt;
      auto value = x.substr(equals + 1);
      std::replace(value.begin(), value.end(), ',', ' ');
      out.options.emplace_back(field_of(x.substr(0, equals)), value);
    }
    text.erase(open, close - open + 1);
  }
  auto parts = words(text);
  if (parts.size() < 3 || (parts[0] != "deb" && parts[0] != "deb-src"))
    return std::nullopt;
  out.types = {parts[0]};
  out.uris = {parts[1]};
  out.suites = {parts[2]};
  out.components.assign(parts.begin() + 3, parts.end());
  return out;
}

/// A stanza of fields; nothing if it is switched off or incomplete.
std::optional<apt_source>
to_source(const std::vector<std::pair<std::string, std::string>>& fields) {
  apt_source out;
  for (const auto& [name, value] : fields) {
    auto key = lower(name);
    if (key == "enabled") {
      auto x = lower(trimmed(value));
      if (x == "no" || x == "false" || x == "0" || x == "off")
        return std::nullopt;
    } else if (key == "types") {
      out.types = words(value);
    } else if (key == "uris") {
      out.uris = words(value);
    } else if (key == "suites") {
      out.suites = words(value);
    } else if (key == "components") {
      out.components = words(value);
    } else {
      out.options.emplace_back(name, value);
    }
  }
  if (out.types.empty() || out.uris.empty() || out.suites.empty())
    return std::nullopt;
  return out;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

bool has_binaries(const apt_source& x) {
  return std::find(x.types.begin(), x.types.end(), "deb") != x.types.end();
}

bool belongs_to(const std::string& offered, const std::string& suite) {
  return offered == suite || offered == suite + "-updates" || offered == suite + "-security"
         || offered == suite + "/updates";
}

} // namespace

std::vector<apt_source> parse_one_line_sources(std::string_view text) {
  std::vector<apt_source> out;
  for (const auto& line : lines(text))
    if (auto source = parse_line(line))
      out.push_back(*std::move(source));
  return out;
}

std::vector<apt_source> parse_deb822_sources(std::string_view text) {
  std::vector<apt_source> out;
  std::vector<std::pair<std::string, std::string>> fields;
  auto finish = [&] {
    if (auto source = to_source(fields))
      out.push_back(*std::move(source));
    fields.clear();
  };
  for (const auto& line : lines(text)) {
    if (line.starts_with('#'))
      continue;
    if (trimmed(line).empty()) {
      finish();
    } else if (line[0] == ' ' || line[0] == '\t') {
      if (!fields.empty())
        fields.back().second += "\n" + line;
    } else if (auto colon = line.find(':'); colon != std::string::npos) {
      fields.emplace_back(trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
    }
  }
  finish();
  return out;
}

std::vector<apt_source> read_apt_sources(const std::filesystem::path& folder) {
  auto out = parse_one_line_sources(read_text(folder / "sources.list"));
  std::vector<std::filesystem::path> files;
  std::error_code absent;
  for (const auto& x : std::filesystem::directory_iterator{folder / "sources.list.d", absent})
    files.push_back(x.path());
  std::sort(files.begin(), files.end());
  for (const auto& x : files) {
    std::vector<apt_source> more;
    if (x.extension() == ".list")
      more = parse_one_line_sources(read_text(x));
    else if (x.extension() == ".sources")
      more = parse_deb822_sources(read_text(x));
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

result<std::vector<apt_source>>
sources_for(const std::vector<apt_source>& sources, const std::string& suite) {
  std::vector<apt_source> out;
  bool complete = false;
  for (auto x : sources) {
    std::erase_if(x.suites, [&](const auto& y) { return !belongs_to(y, suite); });
    if (x.suites.empty() || !has_binaries(x))
      continue;
    complete |= std::find(x.suites.begin(), x.suites.end(), suite) != x.suites.end();
    x.types = {"deb"};
    out.push_back(std::move(x));
  }
  if (complete)
    return out;
  // The machine runs another suite; its mirror serves them all.
  for (auto x : sources) {
    bool plain = std::any_of(x.suites.begin(), x.suites.end(), [](const auto& y) {
      return y.find_first_of("-/") == std::string::npos;
    });
    bool debian = std::find(x.components.begin(), x.components.end(), "main") != x.components.end();
    if (!plain || !debian || !has_binaries(x))
      continue;
    x.types = {"deb"};
    x.suites = {suite};
    x.components = {"main"};
    return std::vector{x};
  }
  return error{errc::not_found,
               fmt::format("find a package source for {}: apt's configuration has none", suite)};
}

std::string to_deb822(const std::vector<apt_source>& sources) {
  std::string out;
  for (const auto& x : sources) {
    out += fmt::format("Types: {}\nURIs: {}\nSuites: {}\n", fmt::join(x.types, " "),
                       fmt::join(x.uris, " "), fmt::join(x.suites, " "));
    if (!x.components.empty())
      out += fmt::format("Components: {}\n", fmt::join(x.components, " "));
    for (const auto& [name, value] : x.options)
      out += fmt::format("{}: {}\n", name, value);
    out += "\n";
  }
  return out;
}

} // namespace dsec
