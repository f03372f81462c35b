#include "sdk/cli/process_commands.hpp"

#include "backends/container/wire.hpp"
#include "sdk/cli/command_io.hpp"
#include "sdk/cli/list.hpp"
#include "sdk/cli/numbers.hpp"
#include "sdk/cli/own_input.hpp"
#include "sdk/cli/own_terminal.hpp"
#include "sdk/cli/session_io.hpp"
#include "sdk/front/convert.hpp"
#include "state/format.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>

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

/// By its id, which is digits alone, or by its name, which is not.
result<found_process>
find_process(client& at, const std::string& sandbox, const std::string& process) {
  auto in = find_sandbox(at, sandbox);
  if (!in)
    return in.error();
  if (process.empty() || process.find_first_not_of("0123456789") != std::string::npos)
    return find(at, *in, 0, process);
  auto id = parse_whole("process", process, 1, std::numeric_limits<exec_id>::max());
  if (!id)
    return id.error();
  return find(at, *in, *id, {});
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

constexpr auto attach_help =
  "A session with a terminal gets what standard input says; if that is a terminal itself, key by\n"
  "key, and ctrl-p ctrl-q leaves. Another process gets it with -i alone, and only if its input\n"
  "is open, as after `exec -di`. When dsec is left or ended by a signal, the process goes on.\n"
  "Of one that has ended, what is kept of its output is shown, as often as asked, until `dsec\n"
  "rm` or the end of its sandbox; of one that `exec -t` itself saw to its end nothing is kept.\n"
  "The exit code is 0 if it was left; else:\n";

/// That the process takes input, whatever that is.
result<void> check_that_it_is_taken(client& at, wire::ProcessHandle::Client by) {
  auto nothing = by.inputRequest();
  nothing.setEnd(false);
  auto answer = wait(at, nothing.send());
  if (!answer)
    return error{answer.error().code, "--interactive: " + answer.error().message};
  return {};
}

void add_attach(CLI::App& app, cli_options& options) {
  auto* attach =
    app.add_subcommand("attach", "Show the output of a session or background process "
                                 "until it ends, and be at a session's terminal again");
  attach->footer(std::string{attach_help} + exit_codes_help);
  auto sandbox = std::make_shared<std::string>();
  auto process = std::make_shared<std::string>();
  auto tail = std::make_shared<bool>(false);
  auto interactive = std::make_shared<bool>(false);
  attach->add_option("sandbox", *sandbox, "Its id")->required();
  attach->add_option("process", *process, "Its name or id")->required();
  attach->add_flag("--tail", *tail, "From now on, not from the oldest output that is kept");
  attach->add_flag("--interactive,-i", *interactive,
                   "Pass standard input on to a process without a terminal");
  attach->callback([&options, sandbox, process, tail, interactive] {
    options.with_client([&](client& at) -> result<void> {
      auto found = find_process(at, *sandbox, *process);
      if (!found)
        return found.error();
      session_options wanted;
      wanted.terminal = found->info.has_terminal && !found->info.outcome;
      wanted.input = *interactive || wanted.terminal;
      wanted.from = *tail ? attach_from::tail : attach_from::start;
      if (auto readable = wanted.input ? check_input() : result<void>{}; !readable)
        return readable;
      if (*interactive)
        if (auto taken = check_that_it_is_taken(at, found->handle); !taken)
          return taken;
      auto done = run_session(at, found->handle, wanted);
      if (!done)
        options.fail(done.error(), exit_code_of(done.error()));
      else if (*done)
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

/// Of a process whose id nobody got.
error untold(client& at, exec_id id, wire::ProcessHandle::Client started, const error& why) {
  auto killed = wait(at, started.killRequest().send());
  if (!killed)
    return {why.code, fmt::format("{}; process {} goes on, it could not be killed: {}", why.message,
                                  id, killed.error().message)};
  (void)wait(at, started.waitRequest().send());
  (void)wait(at, started.removeRequest().send());
  return {why.code, fmt::format("{}; process {} was killed", why.message, id)};
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
  const auto id = started->getId();
  if (how.background) {
    auto told = print("{}\n", id);
    return told ? told : untold(at, id, handle, told.error());
  }
  auto done = run_session(at, handle, {how.input, how.terminal, attach_from::start});
  if (!done) {
    options.fail(done.error(), exit_code_of(done.error()));
    return {};
  }
  if (!*done) {
    complain("it goes on as process {}", id);
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
    // As text: it needs more bits than a JSON number is sure to keep.
    nlohmann::json line{{"id", std::to_string(x.id)},
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
  return json ? print_json(std::move(list)) : print_table(rows);
}

void add_process_commands(CLI::App& app, cli_options& options) {
  add_attach(app, options);
  add_kill(app, options);
  add_remove(app, options);
}

} // namespace dsec
