#include "sdk/cli/options.hpp"
#include "sdk/cli/shown.hpp"
#include "sdk/cli/standard_output.hpp"
#include "sdk/cli/tree_copy.hpp"

namespace dsec {

namespace {

constexpr int exit_refused = 1;

constexpr auto copy_help =
  "One of SRC and DST is SANDBOX:PATH, with an absolute path. Copies files and whole directories "
  "as\n"
  "cp -a does: into a directory that exists, or that a DST ending in / names, under SRC's name, "
  "else\n"
  "as DST; SRC/. is the content of SRC. Symbolic links are copied as links and never followed on "
  "the\n"
  "way. The copy belongs to root inside, and to you outside. \"-\" as SRC is a tar archive (plain "
  "or\n"
  "compressed) on standard input, which is unpacked in the directory DST; \"-\" as DST is a tar\n"
  "archive on standard output. Whatever is left out (devices, sockets, FIFOs, set-user-ID bits,\n"
  "names that lead outside) is told on standard error. A file is replaced when the new one is "
  "complete:\n"
  "whatever ends the copy before, the old one stays; until then the disk holds both. Of a file "
  "that "
  "says\n"
  "it has no bytes (in /proc, /sys), what it contains is copied, at most 32 MiB. For files of any "
  "size:\n"
  "what other verbs read through dsec serve is limited to 4 MiB.\n"
  "Exit code: 0 all is copied; 1 something was left out; 125 it failed.";

/// SANDBOX:PATH, or a path of ours.
struct place {
  std::string sandbox;
  std::string path;
};

place parse(const std::string& text) {
  auto colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.find('/') < colon)
    return {"", text};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

result<tree_report> copy(client& at, wire::Sandbox::Client in, const place& from, const place& to) {
  if (to.sandbox.empty())
    return to.path == "-" ? pack_to_output(at, std::move(in), from.path)
                          : copy_out(at, std::move(in), from.path, to.path);
  return from.path == "-" ? unpack_from_input(at, std::move(in), to.path)
                          : copy_in(at, std::move(in), from.path, to.path);
}

/// Returns the exit code.
int tell(const tree_report& done) {
  for (const auto& x : done.refused)
    complain("{}: {}", shown(x.path), x.why);
  if (done.refused_total > done.refused.size())
    complain("and {} more", done.refused_total - done.refused.size());
  return done.refused_total == 0 ? 0 : exit_refused;
}

} // namespace

void add_copy_command(CLI::App& app, cli_options& options) {
  auto* command = app.add_subcommand("cp", "Copy files and directories into or out of a sandbox");
  command->footer(copy_help);
  auto from = std::make_shared<std::string>();
  auto to = std::make_shared<std::string>();
  command->add_option("source", *from, "SANDBOX:PATH, a path, or -")->required();
  command->add_option("destination", *to, "SANDBOX:PATH, a path, or -")->required();
  command->callback([&options, from, to] {
    auto source = parse(*from);
    auto target = parse(*to);
    if (source.sandbox.empty() == target.sandbox.empty())
      return options.fail(
        {errc::invalid_argument,
         fmt::format("cp {} {}: one of them, and one alone, is SANDBOX:PATH", *from, *to)});
    options.with_client([&](client& at) -> result<void> {
      auto find = at.dsec.sandboxRequest();
      find.setId((source.sandbox + target.sandbox).c_str());
      auto found = wait(at, find.send());
      if (!found)
        return found.error();
      auto done = copy(at, found->getSandbox(), source, target);
      if (!done)
        return done.error();
      options.exit_code = tell(*done);
      return {};
    });
  });
}

} // namespace dsec
