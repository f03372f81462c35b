#include "bench/demo/sources.hpp"

#include "backends/rootfs/apt_sources.hpp"
#include "backends/rootfs/child_process.hpp"

#include <fstream>

namespace dsec::demo {

namespace fs = std::filesystem;

source_packages::source_packages(fs::path directory, std::string suite)
  : directory_{std::move(directory)},
    suite_{std::move(suite)} {}

result<void>
source_packages::apt_get(const fs::path& folder, std::vector<std::string> arguments) const {
  std::vector<std::string> argv = {"env", "-C", folder.string(), "apt-get", "-q"};
  for (const auto& option :
       {"Dir::Etc::SourceList=/dev/null", "APT::Sandbox::User=root", "Acquire::Retries=4"})
    argv.insert(argv.end(), {"-o", option});
  for (const auto* name :
       {"Dir::Etc::SourceParts=parts", "Dir::State::Lists=lists", "Dir::Cache=cache"}) {
    std::string text{name};
    auto split = text.find('=') + 1;
    argv.insert(argv.end(),
                {"-o", text.substr(0, split) + (directory_ / text.substr(split)).string()});
  }
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run({argv, {}, log()});
}

result<void> source_packages::refresh() {
  if (fresh_)
    return {};
  std::error_code ec;
  for (const auto* folder : {"parts", "lists/partial", "cache/archives/partial"})
    if (!ec)
      fs::create_directories(directory_ / folder, ec);
  if (ec)
    return errno_error(ec.value(), "creating folders in " + directory_.string());
  auto sources = sources_for(read_apt_sources("/etc/apt"), suite_);
  if (!sources)
    return sources.error();
  for (auto& source : *sources)
    source.types = {"deb-src"};
  std::ofstream{directory_ / "parts/mirror.sources"} << to_deb822(*sources);
  auto updated = apt_get(directory_, {"update"});
  fresh_ = static_cast<bool>(updated);
  return updated;
}

result<void> source_packages::unpack(const std::string& package, const fs::path& target) {
  if (auto ready = refresh(); !ready)
    return ready;
  auto folder = directory_ / package;
  std::error_code ec;
  fs::remove_all(folder, ec);
  fs::create_directories(folder, ec);
  if (ec)
    return errno_error(ec.value(), "creating " + folder.string());
  // The upstream tree alone: a distribution's own patches change with every update of it.
  if (auto got = apt_get(folder, {"source", "--download-only", "--tar-only", package}); !got)
    return got;
  fs::create_directory(target, ec);
  if (ec)
    return errno_error(ec.value(), "creating " + target.string());
  for (const auto& entry : fs::directory_iterator{folder})
    if (entry.path().filename().string().find(".tar.") != std::string::npos)
      return run({{"tar", "-C", target.string(), "--strip-components=1", "--no-same-owner", "-xf",
                   entry.path().string()},
                  {},
                  log()});
  return error{errc::unavailable, "unpacking " + package + ": apt brought no tar archive"};
}

} // namespace dsec::demo
