#include "sdk/cli/process_commands.hpp"

#include "backends/container/wire.hpp"
#include "sdk/cli/command_io.hpp"
#include "sdk/cli/list.hpp"
#include "sdk/cli/own_terminal.hpp"
#include "sdk/cli/session_io.hpp"
#include "sdk/front/convert.hpp"
#include "state/format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace dsec {

namespace {

/// Of a session: much may pass while a terminal draws.
constexpr std::uint64_t session_spool_bytes = 8 << 20;

struct found_process {
  wire::ProcessHandle::Client handle;
  process_info info;
};

result<wire::Sandbox::Client> find_sandbox(client& at, const std::string& id) {
  auto find = at.dsec.sandboxRequest();
  find.setId(id.c_str());
  auto found = wait(at, find.send());
  if (!found)
    return found.error();
  return wire::Sandbox::Client{found->getSandbox()};
}

result<found_process>
find(client& at, wire::Sandbox::Client in, exec_id id, const std::string& name) {
  auto request = in.processRequest();
  request.setId(id);
  request.setName(name.c_str());
  auto found = wait(at, request.send());
  if (!found)
    return found.error();
  return found_process{found->getProcess(), wire::read(found->getInfo())};
}

/// By its name, else by its id.
result<found_process>
find_process(client& at, const std::string& sandbox, const std::string& process) {
  auto in = find_sandbox(at, sandbox);
  if (!in)
    return in.error();
  auto named = find(at, *in, 0, process);
  exec_id id = 0;
  const auto* end = process.data() + process.size();
  if (named || named.error().code != errc::not_found
      || std::from_chars(process.data(), end, id).ptr != end)
    return named;
  return find(at, *in, id, {});
}

std::string state_of(const process_info& x) {
  if (!x.outcome)
    return "running";
  const auto& o = *x.outcome;
  if (o.kind == outcome_kind::exited || o.kind == outcome_kind::signalled)
    return fmt::format("{} {}", o.kind, o.code);
  return std::string{to_string(o.kind)};
}

std::string command_of(const process_info& x) {
  std::string text;
  for (const auto& word : x.argv)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

/// A number, or a name with or without "SIG"; 0: neither.
int signal_of(const std::string& text) {
  int number = 0;
  const auto* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number).ptr == end)
    return number;
  const auto name = text.starts_with("SIG") ? text.substr(3) : text;
  for (int i = 1; i <= 64; ++i)
    if (const auto* known = ::sigabbrev_np(i); known && name == known)
      return i;
  return 0;
}

void add_attach(CLI::App& app, cli_options& options) {
  auto* attach = app.add_subcommand(
    "attach",
    "Show the output of a process, and send it this program's input if it has a terminal");
  attach->footer("Ctrl-p ctrl-q leaves a terminal session, which goes on; so does any process if "
                 "dsec is ended.\n"
                 + std::string{exit_codes_help});
  auto sandbox = std::make_shared<std::string>();
  auto process = std::make_shared<std::string>();
  auto tail = std::make_shared<bool>(false);
  auto interactive = std::make_shared<bool>(false);
  attach->add_option("sandbox", *sandbox, "Its id")->required();
  attach->add_option("process", *process, "Its name or id")->required();
  attach->add_flag("--tail", *tail, "From now on, not from the oldest output that is kept");
  attach->add_flag("--interactive,-i", *interactive, "Pass standard input on, terminal or not");
  attach->callback([&options, sandbox, process, tail, interactive] {
    options.with_client([&](client& at) -> result<void> {
      auto found = find_process(at, *sandbox, *process);
      if (!found)
        return found.error();
      session_options wanted;
      wanted.terminal = found->info.has_terminal && !found->info.outcome;
      wanted.input = *interactive || wanted.terminal;
      wanted.from = *tail ? attach_from::tail : attach_from::start;
      auto done = run_session(at, found->handle, wanted);
      if (!done)
        return done.error();
      if (*done)
        options.exit_code = exit_code_of(**done);
      return {};
    });
  });
}

void add_kill(CLI::App& app, cli_options& options) {
  auto* kill = app.add_subcommand("kill", "Kill a process with its whole tree, or signal it");
  auto sandbox = std::make_shared<std::string>();
  auto process = std::make_shared<std::string>();
  auto signal = std::make_shared<std::string>();
  auto tree = std::make_shared<bool>(false);
  kill->add_option("sandbox", *sandbox, "Its id")->required();
  kill->add_option("process", *process, "Its name or id")->required();
  kill->add_option("--signal,-s", *signal, "Send this (TERM, SIGHUP, 10) to its main process");
  kill->add_flag("--tree", *tree, "Send it to every process of the tree");
  kill->callback([&options, sandbox, process, signal, tree] {
    options.with_client([&](client& at) -> result<void> {
      const int number = signal_of(*signal);
      if (!signal->empty() && (number < 1 || number > 64))
        return error{errc::invalid_argument,
                     fmt::format("--signal is '{}'; a name like TERM, or 1 to 64", *signal)};
      auto found = find_process(at, *sandbox, *process);
      if (!found)
        return found.error();
      if (signal->empty()) {
        auto done = wait(at, found->handle.killRequest().send());
        return done ? result<void>{} : result<void>{done.error()};
      }
      auto request = found->handle.signalRequest();
      request.setNumber(number);
      request.setTree(*tree);
      auto done = wait(at, request.send());
      return done ? result<void>{} : result<void>{done.error()};
    });
  });
}

void add_remove(CLI::App& app, cli_options& options) {
  auto* remove = app.add_subcommand("rm", "Drop what is kept of processes that have ended");
  auto sandbox = std::make_shared<std::string>();
  auto names = std::make_shared<std::vector<std::string>>();
  remove->add_option("sandbox", *sandbox, "Its id")->required();
  remove->add_option("process", *names, "Names or ids")->required();
  remove->callback([&options, sandbox, names] {
    options.with_client([&](client& at) -> result<void> {
      for (const auto& name : *names) {
        auto found = find_process(at, *sandbox, name);
        if (!found)
          return found.error();
        if (auto done = wait(at, found->handle.removeRequest().send()); !done)
          return done.error();
      }
      return {};
    });
  });
}

} // namespace

result<void> run_process(cli_options& options, client& at, wire::Sandbox::Client in, exec_spec spec,
                         const process_options& how) {
  process_spec wanted;
  wanted.name = how.name;
  wanted.open_input = how.input;
  if (how.terminal) {
    wanted.terminal = own_terminal_size().value_or(terminal_size{});
    const auto* kind = std::getenv("TERM");
    if (std::ranges::find(spec.env, "TERM", &std::pair<std::string, std::string>::first)
        == spec.env.end())
      spec.env.emplace_back("TERM", kind && *kind ? kind : "xterm");
    spec.spool_bytes = session_spool_bytes;
  }
  wanted.command = std::move(spec);
  if (auto valid = validate(wanted); !valid)
    return valid;
  auto call = in.spawnRequest();
  wire::write(wanted.command, call.initRequest());
  call.setOpenInput(wanted.open_input);
  auto terms = call.initTerms();
  terms.setName(wanted.name.c_str());
  if (wanted.terminal) {
    terms.setTerminal(true);
    terms.setRows(wanted.terminal->rows);
    terms.setColumns(wanted.terminal->columns);
  }
  auto started = wait(at, call.send());
  if (!started) {
    options.fail(started.error(), exit_code_of(started.error()));
    return {};
  }
  auto handle = started->getProcess();
  if (how.background) {
    fmt::print("{}\n", started->getId());
    return {};
  }
  auto done = run_session(at, handle, {how.input, how.terminal, attach_from::start});
  if (!done)
    return done.error();
  if (!*done) {
    fmt::print(stderr, "dsec: it goes on as process {}\n", started->getId());
    return {};
  }
  options.exit_code = exit_code_of(**done);
  // Its whole output was shown.
  (void)wait(at, handle.removeRequest().send());
  return {};
}

result<void> print_processes(client& at, const std::string& sandbox, bool json) {
  auto in = find_sandbox(at, sandbox);
  if (!in)
    return in.error();
  auto found = wait(at, in->processesRequest().send());
  if (!found)
    return found.error();
  auto list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{
    {"PROCESS", "NAME", "STATE", "AGE", "OUT", "ERR", "COMMAND"}};
  for (auto one : found->getProcesses()) {
    auto x = wire::read(one);
    rows.push_back({std::to_string(x.id), x.name, state_of(x), age(x.started_ms),
                    std::to_string(x.out_bytes), std::to_string(x.err_bytes), command_of(x)});
    nlohmann::json line{{"id", x.id},
                        {"name", x.name},
                        {"argv", x.argv},
                        {"terminal", x.has_terminal},
                        {"started_ms", x.started_ms},
                        {"ended_ms", x.ended_ms},
                        {"out_bytes", x.out_bytes},
                        {"err_bytes", x.err_bytes}};
    if (x.outcome)
      line.update({{"outcome", std::string{to_string(x.outcome->kind)}},
                   {"code", x.outcome->code},
                   {"cause", x.outcome->cause}});
    list.push_back(std::move(line));
  }
  if (json)
    fmt::print("{}\n", list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    print_table(rows);
  return {};
}

void add_process_commands(CLI::App& app, cli_options& options) {
  add_attach(app, options);
  add_kill(app, options);
  add_remove(app, options);
}

} // namespace dsec
