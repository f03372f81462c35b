// What a trainer types and a store holds: ids, digests, keys, environments, requests and the
// package sources of a machine. A text is valid in one spelling only and comes back as it was, or
// is refused with a message that can be shown.

#include "backends/rootfs/apt_sources.hpp"
#include "backends/rootfs/archive_paths.hpp"
#include "state/environment.hpp"
#include "state/exec.hpp"
#include "state/ids.hpp"
#include "state/keys.hpp"
#include "state/printable.hpp"
#include "tests/fuzz/input.hpp"

using namespace dsec;

namespace {

void expect_told(const result<void>& done) {
  if (done)
    return;
  fuzz::claim(done.error().code == errc::invalid_argument, "a bad text is invalid_argument");
  for (char c : done.error().message)
    fuzz::claim(c >= ' ' && c <= '~', "a refusal is printable", done.error().message);
}

void check_ids(const std::string& text) {
  expect_told(validate(node_id{text}));
  expect_told(validate(job_id{text}));
  expect_told(validate(layer_digest{text}));
  const sandbox_id sandbox{text};
  const auto valid = validate(sandbox);
  expect_told(valid);
  const auto node = node_of(sandbox);
  const auto sequence = sequence_of(sandbox);
  fuzz::claim(bool{valid} == bool{node} && bool{node} == bool{sequence}, "one opinion of an id");
  if (!valid)
    return;
  fuzz::claim(make_sandbox_id(*node, *sequence) == sandbox, "an id has one spelling", text);
  const auto key = step_key(sandbox, *sequence);
  fuzz::claim(key && key->starts_with(*step_prefix(sandbox)), "a step lies behind its prefix");
  fuzz::claim(*key < after_prefix(*step_prefix(sandbox)), "and before what follows it");
  fuzz::claim(*output_key(sandbox, 1) != *step_key(sandbox, 1), "an output is no step");
}

void check_specs(fuzz::input& in) {
  environment x;
  for (auto n = in.below(4); n > 0; --n)
    x.layers.emplace_back(in.flag() ? "sha256-" + std::string(64, 'a' + in.below(8)) : in.text());
  for (auto n = in.below(4); n > 0; --n)
    x.env.emplace_back(in.text(), in.text());
  x.user = in.text();
  x.cwd = in.text();
  x.limits = {in.number<std::uint64_t>(), in.number<std::uint32_t>(), in.number<std::uint32_t>(),
              in.number<std::uint64_t>()};
  expect_told(validate(x));
  exec_spec spec;
  for (auto n = in.below(4); n > 0; --n)
    spec.argv.push_back(in.text());
  spec.env = x.env;
  spec.cwd = x.cwd;
  spec.user = x.user;
  spec.deadline = std::chrono::milliseconds{in.number<std::int64_t>()};
  spec.spool_bytes = in.number<std::uint64_t>();
  if (in.flag())
    spec.stdin_bytes = in.text();
  if (in.flag())
    spec.step = in.number<std::uint64_t>();
  expect_told(validate(spec));
  // One byte moved from an argument to the next is another request.
  auto other = spec;
  if (spec.argv.size() > 1 && !spec.argv[0].empty()) {
    other.argv[1].insert(0, 1, other.argv[0].back());
    other.argv[0].pop_back();
    fuzz::claim(request_digest(other) != request_digest(spec), "another request, another digest");
  }
}

void check_paths(std::string_view name) {
  const auto path = archive_path(name);
  if (!path)
    return;
  fuzz::claim(archive_path(*path) == path, "a cleaned path stays as it is", *path);
  fuzz::claim(!path->starts_with('/') && ("/" + *path + "/").find("/../") == std::string::npos,
              "a path of an archive climbs nowhere", *path);
  const auto [folder, last] = split(*path);
  fuzz::claim((folder.empty() ? last : folder + '/' + last) == *path, "a path is its parts", *path);
}

void check_sources(std::string_view text) {
  for (const auto& list : {parse_one_line_sources(text), parse_deb822_sources(text)}) {
    for (const auto& x : list)
      fuzz::claim(!x.types.empty() && !x.uris.empty() && !x.suites.empty(), "a source is whole");
    const auto chosen = sources_for(list, "bookworm");
    if (!chosen)
      continue;
    const auto again = parse_deb822_sources(to_deb822(*chosen));
    fuzz::claim(again.size() == chosen->size(), "sources are read as they were written",
                to_deb822(*chosen));
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::input in{bytes, size};
  switch (in.below(4)) {
  case 0:
    check_ids(std::string{in.take_all()});
    break;
  case 1:
    check_specs(in);
    break;
  case 2:
    check_paths(in.take_all());
    break;
  default:
    check_sources(in.take_all());
  }
  return 0;
}
