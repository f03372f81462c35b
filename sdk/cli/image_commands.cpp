#include "sdk/cli/image_commands.hpp"

#include "backends/rootfs/base_builder.hpp"
#include "backends/rootfs/layer_store.hpp"
#include "sdk/cli/list.hpp"
#include "sdk/cli/standard_output.hpp"
#include "state/format.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace dsec {

namespace {

constexpr int own_failure = 125;

struct image_context {
  std::filesystem::path& data_dir;
  int& exit_code;

  layer_store store() const {
    return layer_store{data_dir / "store"};
  }

  void fail(const error& e) const {
    complain("{}: {}", e.code, e.message);
    exit_code = own_failure;
  }

  /// What was to be printed was, or not.
  void finish(const result<void>& told) const {
    if (!told)
      return fail(told.error());
    exit_code = 0;
  }

  /// Names the layer if a name was given, and prints its digest.
  void
  finish(layer_store& store, const result<layer_digest>& digest, const std::string& name) const {
    if (!digest)
      return fail(digest.error());
    if (!name.empty())
      if (auto ok = store.name(name, *digest); !ok)
        return fail(ok.error());
    finish(print("{}\n", *digest));
  }
};

/// "345.1 MiB".
std::string size_text(std::uint64_t bytes) {
  auto size = static_cast<double>(bytes);
  for (auto unit : {"B", "KiB", "MiB", "GiB"}) {
    if (size < 1024)
      return fmt::format("{:.{}f} {}", size, *unit == 'B' ? 0 : 1, unit);
    size /= 1024;
  }
  return fmt::format("{:.1f} TiB", size);
}

void add_build_base(CLI::App& image, const std::shared_ptr<image_context>& context) {
  struct arguments {
    std::string distribution;
    std::string name;
    base_options options;
  };

  auto x = std::make_shared<arguments>();
  x->options.suite = "bookworm";
  auto* command = image.add_subcommand("build-base", "Install a distribution into a base layer");
  command->add_option("distribution", x->distribution, "debian")
    ->required()
    ->check(CLI::IsMember({"debian"}));
  command->add_option("--suite", x->options.suite, "Release")->capture_default_str();
  command->add_option("--include", x->options.include, "Packages, separated by commas")
    ->delimiter(',');
  command->add_option("--name", x->name, "A name for the layer");
  command->add_option("--log", x->options.log,
                      "The builder's output (default: build-base.log in the data directory)");
  command->callback([x, context] {
    if (x->options.log.empty())
      x->options.log = context->data_dir / "build-base.log";
    std::error_code ignored;
    std::filesystem::create_directories(x->options.log.parent_path(), ignored);
    complain("building {} {} with {} more packages, log in {}", x->distribution, x->options.suite,
             x->options.include.size(), x->options.log.string());
    auto store = context->store();
    context->finish(store, build_base(store, x->options), x->name);
  });
}

void add_import(CLI::App& image, const std::shared_ptr<image_context>& context) {
  struct arguments {
    std::filesystem::path from;
    std::string name;
  };

  auto x = std::make_shared<arguments>();
  auto* command = image.add_subcommand("import", "Make a layer of a directory or tar archive");
  command->add_option("source", x->from, "Directory, tar archive (compressed or not), or -")
    ->required();
  command->add_option("--name", x->name, "A name for the layer");
  command->callback([x, context] {
    auto store = context->store();
    complain("importing {}", x->from.string());
    std::error_code absent;
    auto digest = x->from == "-" ? store.import_tar(STDIN_FILENO, "standard input")
                  : std::filesystem::is_directory(x->from, absent) ? store.import_directory(x->from)
                                                                   : store.import_tar(x->from);
    context->finish(store, digest, x->name);
  });
}

result<void> print_as_json(const std::vector<layer_info>& layers) {
  auto out = nlohmann::json::array();
  for (const auto& x : layers)
    out.push_back({{"digest", x.digest.str()},
                   {"size_bytes", x.size_bytes},
                   {"files", x.files},
                   {"created_from", x.created_from},
                   {"names", x.names}});
  return print_json(std::move(out), 2);
}

result<void> print_text(const std::vector<layer_info>& layers) {
  std::vector<std::vector<std::string>> rows{{"DIGEST", "SIZE", "FILES", "NAMES", "FROM"}};
  for (const auto& x : layers)
    rows.push_back({x.digest.str().substr(0, 19), size_text(x.size_bytes), std::to_string(x.files),
                    fmt::format("{}", fmt::join(x.names, ",")), x.created_from});
  return print_table(rows);
}

void add_ls(CLI::App& image, const std::shared_ptr<image_context>& context) {
  auto json = std::make_shared<bool>(false);
  auto* command = image.add_subcommand("ls", "List layers");
  command->add_flag("--json", *json, "As JSON, with whole digests");
  command->callback([json, context] {
    auto layers = context->store().list();
    if (!layers)
      return context->fail(layers.error());
    context->finish(*json ? print_as_json(*layers) : print_text(*layers));
  });
}

void add_rm(CLI::App& image, const std::shared_ptr<image_context>& context) {
  auto which = std::make_shared<std::string>();
  auto* command = image.add_subcommand("rm", "Remove a layer and its names");
  command->add_option("layer", *which, "Digest, its beginning, or a name")->required();
  command->callback([which, context] {
    auto store = context->store();
    auto digest = store.resolve(*which);
    if (!digest)
      return context->fail(digest.error());
    if (auto ok = store.remove(*digest); !ok)
      return context->fail(ok.error());
    context->finish(print("{}\n", *digest));
  });
}

} // namespace

void add_image_commands(CLI::App& parent, std::filesystem::path& data_dir, int& exit_code) {
  auto context = std::make_shared<image_context>(image_context{data_dir, exit_code});
  auto* image = parent.add_subcommand("image", "Layers that sandboxes start from");
  image->require_subcommand(1);
  add_build_base(*image, context);
  add_import(*image, context);
  add_ls(*image, context);
  add_rm(*image, context);
}

} // namespace dsec
