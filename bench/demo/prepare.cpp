#include "bench/demo/prepare.hpp"

#include "backends/rootfs/base_builder.hpp"
#include "backends/rootfs/child_process.hpp"
#include "backends/rootfs/layer_store.hpp"
#include "bench/demo/sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

namespace dsec::demo {

namespace {

namespace fs = std::filesystem;

/// FNV-1a over what a layer is made from, so that a changed task gets a new layer under a new name.
class fingerprint {
public:
  fingerprint& add(std::string_view bytes) {
    for (unsigned char c : bytes)
      sum_ = (sum_ ^ c) * 1099511628211ull;
    sum_ = (sum_ ^ bytes.size()) * 1099511628211ull;
    return *this;
  }

  fingerprint& add_file(const fs::path& path) {
    std::ifstream in{path, std::ios::binary};
    std::ostringstream text;
    text << in.rdbuf();
    return add(text.str());
  }

  std::string text() const {
    return fmt::format("{:016x}", sum_);
  }

private:
  std::uint64_t sum_ = 14695981039346656037ull;
};

std::string base_name(const task_set& tasks) {
  fingerprint sum;
  sum.add(tasks.suite);
  for (const auto& package : tasks.include)
    sum.add(package);
  return "demo-base-" + sum.text();
}

std::string toolkit_name(const task_set& tasks) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator{tasks.toolkit})
    if (entry.is_regular_file())
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  fingerprint sum;
  for (const auto& file : files)
    sum.add(fs::relative(file, tasks.toolkit).string()).add_file(file);
  return "demo-toolkit-" + sum.text();
}

std::string task_name(const task_set& tasks, const task& x) {
  return "demo-task-"
         + fingerprint{}.add("upstream tree").add(tasks.suite).add(x.source).add_file(x.bug).text();
}

fs::path store_of(const fs::path& data_dir) {
  return data_dir / "store";
}

/// Makes the layer `name` with `make` unless the store has it.
template <class Make>
result<void>
ensure(layer_store& store, const std::string& name, const std::string& what, Make make) {
  if (store.resolve(name))
    return {};
  fmt::print(stderr, "prepare: {}\n", what);
  result<layer_digest> digest = make();
  return digest ? store.name(name, *digest) : digest.error();
}

result<void> copy_tree(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  fs::create_directories(to.parent_path(), ec);
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks, ec);
  if (ec)
    return errno_error(ec.value(), fmt::format("copying {} to {}", from.string(), to.string()));
  return {};
}

result<layer_digest> make_task_layer(layer_store& store, source_packages& sources, const task& x) {
  return store.import_made(
    fmt::format("source package {} with {}", x.source, x.bug.filename().string()),
    [&](const fs::path& tree) -> result<void> {
      auto workspace = tree / workspace_of(x).substr(1);
      std::error_code ec;
      fs::create_directories(workspace.parent_path(), ec);
      if (auto unpacked = sources.unpack(x.source, workspace); !unpacked)
        return unpacked;
      return run(
        {{"patch", "-p1", "--batch", "-d", workspace.string(), "-i", fs::absolute(x.bug).string()},
         {},
         sources.log()});
    });
}

} // namespace

result<void> prepare(const fs::path& data_dir, const task_set& tasks) {
  layer_store store{store_of(data_dir)};
  auto scratch = data_dir / "sources";
  std::error_code ec;
  fs::create_directories(scratch, ec);
  if (ec)
    return errno_error(ec.value(), "creating " + scratch.string());
  auto done = ensure(
    store, base_name(tasks),
    fmt::format("base layer: Debian {} with {}", tasks.suite, fmt::join(tasks.include, ", ")), [&] {
      return build_base(store, {tasks.suite, tasks.include, scratch / "log"});
    });
  if (!done)
    return done;
  done = ensure(store, toolkit_name(tasks), "toolkit layer", [&] {
    return store.import_made("demo toolkit", [&](const fs::path& tree) {
      return copy_tree(tasks.toolkit, tree / "opt/toolkit");
    });
  });
  if (!done)
    return done;
  source_packages sources{scratch, tasks.suite};
  for (const auto& x : tasks.tasks) {
    done = ensure(store, task_name(tasks, x), "task layer: " + x.name,
                  [&] { return make_task_layer(store, sources, x); });
    if (!done)
      return done;
  }
  return {};
}

result<std::map<std::string, dsec::environment>>
prepared_environments(const fs::path& data_dir, const task_set& tasks) {
  layer_store store{store_of(data_dir)};
  std::map<std::string, dsec::environment> environments;
  for (const auto& x : tasks.tasks) {
    auto environment = tasks.defaults;
    for (const auto& name : {base_name(tasks), toolkit_name(tasks), task_name(tasks, x)}) {
      auto digest = store.resolve(name);
      if (!digest)
        return error{errc::not_found,
                     fmt::format("finding the layers of task {} (dsec-demo prepare "
                                 "makes them): {}",
                                 x.name, digest.error().message)};
      environment.layers.push_back(*digest);
    }
    environment.cwd = workspace_of(x);
    environments[x.name] = std::move(environment);
  }
  return environments;
}

} // namespace dsec::demo
