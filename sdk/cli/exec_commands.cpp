#include "sdk/cli/command_io.hpp"
#include "sdk/cli/command_words.hpp"
#include "sdk/cli/environment_options.hpp"
#include "sdk/cli/numbers.hpp"
#include "sdk/cli/options.hpp"
#include "sdk/cli/own_input.hpp"
#include "sdk/cli/process_commands.hpp"

#include <chrono>
#include <functional>

namespace dsec {

namespace {

/// A step's input is part of what is recorded, and of one message.
constexpr std::size_t step_input_bytes_max = 4 << 20;

/// Of a sandbox that `run` made and that nobody uses any more: the runtime and this program are
/// gone, or it would have been stopped.
constexpr std::chrono::seconds abandoned_after{60};

constexpr auto run_help =
  "The sandbox ends with dsec, also if that is killed. If the runtime is killed at the same\n"
  "time, its idle clock ends it, 60 s after the last command, unless --idle or --on-idle say\n"
  "otherwise.\n";

constexpr auto exec_help =
  "With -t, keys go to the session's terminal; ctrl-p ctrl-q leaves it. It goes on then, as it\n"
  "does when dsec or the runtime is killed, and `dsec attach` takes it up again. With -di, the\n"
  "input of the process stays open for `dsec attach -i`. Else, and without --detached and\n"
  "--step, the command ends with dsec.\n";

/// What `exec` and `run` take to describe a command.
struct command_options {
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd;
  std::string user;
  std::chrono::milliseconds deadline{0};
  std::optional<std::uint64_t> step;
  bool interactive = false;
  bool detached = false;

  void add_to(CLI::App& command) {
    command.add_option("--env,-e", env, "NAME=value, or NAME to pass on your own")
      ->allow_extra_args(false);
    command.add_option("--cwd,-w", cwd, "Working directory inside");
    command.add_option("--user,-u", user, "name, uid, name:group or uid:gid");
    add_seconds(command, "--deadline", deadline, "Of running time; 0: no limit");
    add_whole(command, "--step", step, "Record as this step: it runs exactly once", step_max);
    command.add_flag("--interactive,-i", interactive, "Pass standard input on");
    command.add_option("command", argv, "The command and its arguments")
      ->required()
      ->expected(1, 1 << 20);
    // From the first word that is no option of ours on, all is the command's.
    command.positionals_at_end(true);
  }

  result<exec_spec> resolve() const {
    exec_spec x;
    for (const auto& word : argv)
      x.argv.push_back(as_typed(word));
    // The old way to tell where the command begins.
    if (x.argv.size() > 1 && x.argv.front() == "--")
      x.argv.erase(x.argv.begin());
    for (const auto& text : env)
      x.env.push_back(parse_variable(text));
    x.cwd = cwd;
    x.user = user;
    x.deadline = deadline;
    x.step = step;
    if (auto readable = interactive ? check_input() : result<void>{}; !readable)
      return readable.error();
    if (interactive && step) {
      auto input = read_input(step_input_bytes_max);
      if (!input)
        return input.error();
      x.stdin_bytes = std::move(*input);
    }
    if (auto valid = validate(x); !valid)
      return valid.error();
    return x;
  }
};

/// An option that would change nothing is a mistake.
result<void> check_together(const command_options& command, const process_options& process) {
  const bool lives_by_itself = process.terminal || process.background;
  const char* manner = process.terminal ? "-t" : "-d";
  if (!process.name.empty() && !lives_by_itself)
    return error{errc::invalid_argument,
                 fmt::format("--name {}: only a process of -d or -t has a name", process.name)};
  if (command.detached && lives_by_itself)
    return error{errc::invalid_argument,
                 fmt::format("--detached with {}: its process lives by itself anyway", manner)};
  if (command.step && lives_by_itself)
    return error{errc::invalid_argument,
                 fmt::format("--step {} with {}: a recorded step is a command that is waited for",
                             *command.step, manner)};
  return {};
}

result<exec_result> run_in(client& at, interrupts& heard, wire::Sandbox::Client in,
                           const exec_spec& spec, const command_options& command) {
  return run_command(at, heard, std::move(in), spec, command.interactive && !command.step,
                     command.detached);
}

/// May wait for standard error to be taken, so no signal is held back any more.
void report(cli_options& options, const result<exec_result>& done) {
  if (done)
    options.exit_code = exit_code_of(*done);
  else
    options.fail(done.error(), exit_code_of(done.error()));
}

std::function<void(int, unsigned)> end_by_the_signal_after(std::size_t others) {
  return [others](int number, unsigned count) {
    if (count > others)
      end_by_signal(number);
  };
}

/// In a sandbox that is made for it and stopped afterwards.
result<void> run_alone(cli_options& options, client& at, const environment_options& environment,
                       const command_options& command) {
  auto spec = command.resolve();
  if (!spec)
    return spec.error();
  auto wanted = environment.resolve(options.data_dir);
  if (!wanted)
    return wanted.error();
  std::optional<result<exec_result>> done;
  result<void> stopped;
  {
    // From here on a sandbox may be there, which is not to be left behind.
    interrupts heard{at};
    heard.tell(end_by_the_signal_after(1));
    auto created = environment.create(at, *wanted);
    if (!created) {
      options.fail(created.error(), exit_code_of(created.error()));
      return {};
    }
    // However this program ends.
    auto held = created->second.holdRequest().send().getHold();
    if (heard.heard().empty())
      done = run_in(at, heard, created->second, *spec, command);
    else
      options.exit_code = 128 + heard.heard().front();
    heard.tell(end_by_the_signal_after(heard.heard().size()));
    if (auto answer = wait(at, created->second.stopRequest().send()); !answer)
      stopped = answer.error();
  }
  if (done)
    report(options, *done);
  return stopped;
}

} // namespace

void add_exec_commands(CLI::App& app, cli_options& options) {
  auto* exec = app.add_subcommand("exec", "Run a command in a sandbox");
  auto id = std::make_shared<std::string>();
  auto command = std::make_shared<command_options>();
  exec->footer(fmt::format("{}{}\n{}", exec_help, exit_codes_help, signals_help));
  exec->add_option("sandbox", *id, "Its id")->required();
  command->add_to(*exec);
  exec->add_flag("--detached", command->detached,
                 "It goes on if dsec is killed; with -d, also if the runtime is");
  auto process = std::make_shared<process_options>();
  exec->add_flag("--terminal,-t", process->terminal,
                 "A session: it gets a terminal, lives by itself and can be attached to again");
  exec->add_flag("--background,-d", process->background,
                 "A background process: print its id and return");
  exec->add_option("--name", process->name, "Of the session or background process");
  exec->callback([&options, id, command, process] {
    if (auto fit = check_together(*command, *process); !fit)
      return options.fail(fit.error());
    options.with_client([&](client& at) -> result<void> {
      auto find = at.dsec.sandboxRequest();
      find.setId(id->c_str());
      auto found = wait(at, find.send());
      if (!found)
        return found.error();
      auto spec = command->resolve();
      if (!spec)
        return spec.error();
      process->input = command->interactive;
      if (process->terminal || process->background)
        return run_process(options, at, found->getSandbox(), *std::move(spec), *process);
      result<exec_result> done = error{};
      {
        interrupts heard{at};
        done = run_in(at, heard, found->getSandbox(), *spec, *command);
      }
      report(options, done);
      return {};
    });
  });

  auto* run = app.add_subcommand("run", "Create a sandbox, run a command in it, stop it");
  run->footer(fmt::format("{}{}\n{}", run_help, exit_codes_help, signals_help));
  auto environment = std::make_shared<environment_options>();
  environment->base_clocks.idle_timeout = abandoned_after;
  environment->base_clocks.on_idle = idle_action::stop;
  auto once = std::make_shared<command_options>();
  environment->add_to(*run);
  once->add_to(*run);
  run->callback([&options, environment, once] {
    options.with_client([&](client& at) { return run_alone(options, at, *environment, *once); });
  });
}

} // namespace dsec
