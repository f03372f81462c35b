#include "backends/rootfs/layer_store.hpp"

#include "backends/rootfs/building_folder.hpp"
#include "backends/rootfs/erofs_image.hpp"
#include "backends/rootfs/file_descriptor.hpp"
#include "backends/rootfs/tar_extract.hpp"
#include "backends/rootfs/tree_policy.hpp"
#include "state/printable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <map>
#include <unistd.h>

namespace dsec {

namespace fs = std::filesystem;

namespace {

constexpr const char* facts_file = "layer.json";
constexpr const char* names_folder = "refs";
constexpr std::size_t prefix_digits_min = 6;

result<void> write_durably(const fs::path& path, std::string_view text) {
  auto what = fmt::format("write {}", path.string());
  file_descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (!file)
    return errno_error(errno, what);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return errno_error(errno, what);
  if (::fsync(file.get()) != 0)
    return errno_error(errno, what);
  return {};
}

std::string read_text(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

std::uint64_t size_of(const fs::path& path) {
  std::error_code absent;
  auto size = fs::file_size(path, absent);
  return absent ? 0 : size;
}

result<void> validate_name(std::string_view name) {
  auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')
           || std::string_view{"._:+-"}.find(c) != std::string_view::npos;
  };
  if (name.empty() || name.size() > 64 || name[0] == '.' || name.starts_with("sha256-")
      || !std::all_of(name.begin(), name.end(), allowed))
    return error{errc::invalid_argument,
                 fmt::format("layer name is {}; 1 to 64 characters of A-Z a-z 0-9 . _ : + -, "
                             "not a digest, no dot first",
                             printable(name))};
  return {};
}

error no_such_layer(std::string_view attempt, std::string_view name) {
  return {errc::not_found, fmt::format("{} layer {}: there is none", attempt, printable(name))};
}

/// The digests that stand in the store.
std::vector<layer_digest> digests_in(const fs::path& directory) {
  std::vector<layer_digest> out;
  std::error_code absent;
  for (const auto& x : fs::directory_iterator{directory, absent})
    if (layer_digest digest{x.path().filename().string()}; validate(digest))
      out.push_back(std::move(digest));
  std::sort(out.begin(), out.end());
  return out;
}

/// Name -> digest, whether or not the layer exists.
std::map<std::string, layer_digest> names_in(const fs::path& directory) {
  std::map<std::string, layer_digest> out;
  std::error_code absent;
  for (const auto& x : fs::directory_iterator{directory / names_folder, absent}) {
    auto text = read_text(x.path());
    while (text.ends_with('\n'))
      text.pop_back();
    if (layer_digest digest{text}; validate(digest))
      out.emplace(x.path().filename().string(), digest);
  }
  return out;
}

} // namespace

layer_store::layer_store(fs::path directory) : directory_{std::move(directory)} {}

result<layer_digest> layer_store::import_directory(const fs::path& tree, std::string created_from) {
  std::error_code failure;
  auto real = fs::canonical(tree, failure);
  if (failure)
    return errno_error(failure.value(), fmt::format("import {}", tree.string()));
  if (!fs::is_directory(real, failure))
    return error{errc::invalid_argument, fmt::format("import {}: not a directory", tree.string())};
  auto building = building_folder::make(directory_);
  if (!building)
    return building.error();
  return publish(building->path(), real,
                 created_from.empty() ? real.string() : std::move(created_from));
}

result<layer_digest> layer_store::import_tar(const fs::path& archive) {
  file_descriptor file{::open(archive.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file)
    return errno_error(errno, fmt::format("import {}", archive.string()));
  return import_tar(file.get(), archive.string());
}

result<layer_digest> layer_store::import_tar(int archive, std::string created_from) {
  auto what = fmt::format("import {}", created_from);
  return import_made(std::move(created_from),
                     [&](const fs::path& tree) { return extract_tar(archive, tree, what); });
}

result<layer_digest>
layer_store::import_made(std::string created_from,
                         const std::function<result<void>(const fs::path&)>& fill) {
  auto building = building_folder::make(directory_);
  if (!building)
    return building.error();
  auto tree = building->path() / "tree";
  if (::mkdir(tree.c_str(), 0755) != 0)
    return errno_error(errno, fmt::format("import {}: make a folder", created_from));
  if (auto ok = fill(tree); !ok)
    return ok.error();
  return publish(building->path(), tree, std::move(created_from));
}

result<layer_digest>
layer_store::publish(const fs::path& building, const fs::path& tree, std::string created_from) {
  auto census = take_census(tree);
  if (!census)
    return census.error();
  auto layer = building / "layer";
  std::error_code failure;
  fs::create_directory(layer, failure);
  if (failure)
    return errno_error(failure.value(), fmt::format("import {}: make a folder", created_from));
  if (auto ok = write_erofs_image(tree, layer, census->devices); !ok)
    return ok.error();
  auto digest = digest_of_image(layer);
  if (!digest)
    return digest;

  nlohmann::json facts{{"size_bytes",
                        size_of(layer / layer_image_file) + size_of(layer / layer_blob_file)},
                       {"files", census->files},
                       {"created_from", created_from}};
  auto text = facts.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (auto ok = write_durably(layer / facts_file, text); !ok)
    return ok.error();
  if (auto ok = sync_folder(layer); !ok)
    return ok.error();
  auto place = directory_ / digest->str();
  // Somebody imported the same tree before, or meanwhile.
  if (::rename(layer.c_str(), place.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST)
    return errno_error(errno, fmt::format("rename {} to {}", layer.string(), place.string()));
  if (auto ok = sync_folder(directory_); !ok)
    return ok.error();
  return digest;
}

result<void> layer_store::name(std::string_view name, const layer_digest& digest) {
  if (auto ok = validate_name(name); !ok)
    return ok;
  if (auto ok = validate(digest); !ok)
    return ok;
  std::error_code failure;
  if (!fs::exists(directory_ / digest.str(), failure))
    return no_such_layer("name", digest.str());
  auto building = building_folder::make(directory_);
  if (!building)
    return building.error();
  auto fresh = building->path() / "ref";
  if (auto ok = write_durably(fresh, digest.str() + "\n"); !ok)
    return ok;
  auto folder = directory_ / names_folder;
  fs::create_directory(folder, failure);
  auto place = folder / name;
  if (::rename(fresh.c_str(), place.c_str()) != 0)
    return errno_error(errno, fmt::format("name layer {}: rename to {}", digest, place.string()));
  return sync_folder(folder);
}

result<std::vector<layer_info>> layer_store::list() const {
  auto names = names_in(directory_);
  std::vector<layer_info> out;
  for (auto& digest : digests_in(directory_)) {
    auto folder = directory_ / digest.str();
    auto facts = nlohmann::json::parse(read_text(folder / facts_file), nullptr, false);
    layer_info x;
    x.size_bytes = size_of(folder / layer_image_file) + size_of(folder / layer_blob_file);
    if (facts.is_object()) {
      if (auto i = facts.find("files"); i != facts.end() && i->is_number_unsigned())
        x.files = i->get<std::uint64_t>();
      if (auto i = facts.find("created_from"); i != facts.end() && i->is_string())
        x.created_from = i->get<std::string>();
    }
    for (const auto& [name, target] : names)
      if (target == digest)
        x.names.push_back(name);
    x.digest = std::move(digest);
    out.push_back(std::move(x));
  }
  return out;
}

result<layer_digest> layer_store::resolve(std::string_view name_or_prefix) const {
  auto digests = digests_in(directory_);
  auto names = names_in(directory_);
  if (auto i = names.find(std::string{name_or_prefix}); i != names.end()) {
    if (std::binary_search(digests.begin(), digests.end(), i->second))
      return i->second;
    return no_such_layer("find", name_or_prefix);
  }
  auto digits = name_or_prefix;
  if (digits.starts_with("sha256-"))
    digits.remove_prefix(7);
  std::vector<layer_digest> found;
  if (digits.size() >= prefix_digits_min)
    for (const auto& x : digests)
      if (std::string_view{x.str()}.substr(7).starts_with(digits))
        found.push_back(x);
  if (found.empty())
    return no_such_layer("find", name_or_prefix);
  if (found.size() > 1)
    return error{errc::invalid_argument,
                 fmt::format("find layer {}: {} begin like that: {}", printable(name_or_prefix),
                             found.size(), fmt::join(found, ", "))};
  return found[0];
}

result<void> layer_store::remove(const layer_digest& digest) {
  std::error_code failure;
  if (!validate(digest) || !fs::exists(directory_ / digest.str(), failure))
    return no_such_layer("remove", digest.str());
  auto building = building_folder::make(directory_);
  if (!building)
    return building.error();
  for (const auto& [name, target] : names_in(directory_))
    if (target == digest)
      fs::remove(directory_ / names_folder / name, failure);
  // Away in one step, so that nobody sees half of it.
  auto place = directory_ / digest.str();
  if (::rename(place.c_str(), (building->path() / "removed").c_str()) != 0)
    return errno_error(errno, fmt::format("remove layer {}", digest));
  return sync_folder(directory_);
}

result<void> layer_store::verify(const layer_digest& digest) const {
  std::error_code failure;
  if (!validate(digest) || !fs::exists(directory_ / digest.str(), failure))
    return no_such_layer("verify", digest.str());
  auto found = digest_of_image(directory_ / digest.str());
  if (!found)
    return found.error();
  if (*found != digest)
    return error{errc::corrupt, fmt::format("verify layer {}: its bytes are {}", digest, *found)};
  return {};
}

} // namespace dsec
