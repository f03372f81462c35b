#include "backends/rootfs/base_builder.hpp"

#include "backends/rootfs/apt_sources.hpp"
#include "backends/rootfs/base_cleanup.hpp"
#include "backends/rootfs/child_process.hpp"
#include "state/printable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <unistd.h>

namespace dsec {

namespace fs = std::filesystem;

namespace {

/// As Debian policy spells a package; no word that apt or a shell would read otherwise.
bool is_package(std::string_view name) {
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')
           || std::string_view{"+-.:"}.find(c) != std::string_view::npos;
  };
  return name.size() >= 2 && name.size() <= 128 && name[0] != '-' && name[0] != '+'
         && std::all_of(name.begin(), name.end(), allowed);
}

result<void> validate(const base_options& x) {
  if (!is_package(x.suite) || x.suite.find(':') != std::string::npos)
    return error{errc::invalid_argument,
                 fmt::format("suite is {}; as bookworm", printable(x.suite))};
  for (const auto& package : x.include)
    if (!is_package(package))
      return error{errc::invalid_argument,
                   fmt::format("include has {}; a package name of a-z 0-9 + - . :",
                               printable(package))};
  if (::geteuid() != 0)
    return error{errc::unavailable, "build a base layer: it needs root"};
  return {};
}

result<void> write_private(const fs::path& path, std::string_view text) {
  std::ofstream out{path, std::ios::binary};
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  out << text;
  out.close();
  if (!out)
    return errno_error(errno, fmt::format("write {}", path.string()));
  return {};
}

/// How this machine's apt reaches its sources: proxies, certificates, checks. mmdebstrap's apt
/// reads nothing of /etc/apt.
result<std::string> transport_of_apt(const fs::path& work) {
  auto dump = work / "apt-config";
  if (auto ok = run({{"apt-config", "dump"}, {{"LC_ALL", "C"}}, dump}); !ok)
    return ok.error();
  static constexpr std::array wanted{"Acquire::http",   "Acquire::https",   "Acquire::ftp",
                                     "Acquire::Check-", "Acquire::Retries", "Acquire::ForceIPv",
                                     "Acquire::Proxy"};
  std::string out;
  std::ifstream in{dump};
  for (std::string line; std::getline(in, line);)
    if (std::any_of(wanted.begin(), wanted.end(),
                    [&](std::string_view x) { return line.starts_with(x); }))
      out += line + "\n";
  return out;
}

child_command mmdebstrap(const base_options& options, const fs::path& work, const fs::path& tree) {
  child_command out;
  out.argv = {"mmdebstrap",
              "--variant=essential",
              "--mode=root",
              "--format=directory",
              "--aptopt=" + (work / "apt.conf").string(),
              "--aptopt=APT::Install-Recommends \"false\"",
              "--dpkgopt=path-exclude=/usr/share/doc/*",
              "--dpkgopt=path-exclude=/usr/share/info/*",
              "--dpkgopt=path-exclude=/usr/share/lintian/*",
              "--dpkgopt=path-exclude=/usr/share/locale/*",
              "--dpkgopt=path-exclude=/usr/share/man/*"};
  if (!options.include.empty())
    out.argv.push_back(fmt::format("--include={}", fmt::join(options.include, ",")));
  out.argv.push_back(options.suite);
  out.argv.push_back(tree.string());
  out.argv.push_back((work / "base.sources").string());
  return out;
}

child_command
debootstrap(const base_options& options, const apt_source& from, const fs::path& tree) {
  child_command out;
  out.argv = {"debootstrap", "--variant=minbase"};
  if (!options.include.empty())
    out.argv.push_back(fmt::format("--include={}", fmt::join(options.include, ",")));
  for (const auto& [name, value] : from.options)
    if (name == "Signed-By" && value.starts_with('/'))
      out.argv.push_back("--keyring=" + value);
  out.argv.push_back(options.suite);
  out.argv.push_back(tree.string());
  out.argv.push_back(from.uris.front());
  return out;
}

result<void> install(const base_options& options, const fs::path& work, const fs::path& tree) {
  auto sources = sources_for(read_apt_sources(options.apt_folder), options.suite);
  if (!sources)
    return sources.error();
  child_command command;
  if (!find_program("mmdebstrap").empty()) {
    auto transport = transport_of_apt(work);
    if (!transport)
      return transport.error();
    if (auto ok = write_private(work / "apt.conf", *transport); !ok)
      return ok;
    if (auto ok = write_private(work / "base.sources", to_deb822(*sources)); !ok)
      return ok;
    command = mmdebstrap(options, work, tree);
  } else {
    command = debootstrap(options, sources->front(), tree);
  }
  command.env = {{"LC_ALL", "C.UTF-8"},
                 {"DEBIAN_FRONTEND", "noninteractive"},
                 {"SOURCE_DATE_EPOCH", std::to_string(options.source_date_epoch)},
                 {"TMPDIR", work.string()}};
  command.log = options.log;
  command.private_mounts = true;
  return run(command);
}

} // namespace

result<layer_digest> build_base(layer_store& store, const base_options& options) {
  if (auto ok = validate(options); !ok)
    return ok.error();
  auto packages = options.include;
  std::sort(packages.begin(), packages.end());
  auto from = fmt::format("debian {}: {}", options.suite, fmt::join(packages, ","));
  return store.import_made(from, [&](const fs::path& tree) -> result<void> {
    auto work = tree.parent_path() / "work";
    std::error_code failure;
    fs::create_directory(work, failure);
    if (failure)
      return errno_error(failure.value(), fmt::format("make {}", work.string()));
    if (auto ok = install(options, work, tree); !ok)
      return ok;
    return clean_base(tree, options.source_date_epoch);
  });
}

} // namespace dsec
