#include "backends/exception_text.hpp"
#include "sdk/cli/command_words.hpp"
#include "sdk/cli/image_commands.hpp"
#include "sdk/cli/options.hpp"
#include "sdk/cli/process_commands.hpp"
#include "sdk/cli/replay_command.hpp"

#include <kj/exception.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <sstream>
#include <string>

namespace {

/// A closed standard descriptor must not become the number of a socket: input would be read from
/// it, output written to it. Its stand-in reads as empty; standard output refuses to be written to,
/// and nobody wants to hear of errors.
void hold_standard_descriptors() {
  for (int number : {0, 1, 2})
    if (::fcntl(number, F_GETFD) < 0)
      (void)::open("/dev/null", number == 2
                                  ? O_WRONLY
                                  : O_RDONLY); // Takes the lowest free number, which is this one.
}

/// Help to standard output, else what is wrong with the command line.
void end_parsing(const CLI::App& app, const CLI::ParseError& e, dsec::cli_options& options) {
  std::ostringstream out;
  std::stringstream err;
  options.exit_code = app.exit(e, out, err) == 0 ? 0 : dsec::exit_failure;
  for (std::string line; std::getline(err, line);)
    dsec::complain(line);
  options.finish(dsec::print(out.str()));
}

} // namespace

int main(int argc, char** argv) {
  hold_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  CLI::App app{"dsec: sandboxes for agents", "dsec"};
  app.require_subcommand(1);
  app.fallthrough();
  dsec::cli_options options;
  app.add_option("--state-dir", options.state_dir, "State directory of the runtime")
    ->capture_default_str();
  app.add_option("--data-dir", options.data_dir, "Layers, scratch and swap")->capture_default_str();
  app.add_option("--run-dir", options.run_dir, "Sockets of the spawner")->capture_default_str();

  dsec::add_serve_command(app, options);
  dsec::add_exec_commands(app, options);
  dsec::add_sandbox_commands(app, options);
  dsec::add_copy_command(app, options);
  dsec::add_process_commands(app, options);
  dsec::add_clocks_command(app, options);
  dsec::add_stats_command(app, options);
  dsec::add_log_command(app, options);
  dsec::add_job_commands(app, options);
  dsec::add_events_command(app, options);
  dsec::add_image_commands(app, options.data_dir, options.exit_code);
  dsec::add_replay_command(app, options.exit_code);
  dsec::add_doctor_command(app, options);

  try {
    auto words = dsec::marked_words(argc, argv);
    std::ranges::reverse(words); // So CLI11 wants them.
    app.parse(std::move(words));
  } catch (const CLI::ParseError& e) {
    end_parsing(app, e, options);
  } catch (const kj::Exception& e) {
    options.fail({dsec::errc::unavailable, dsec::exception_text(e.getDescription().cStr())});
  } catch (const std::exception& e) {
    options.fail({dsec::errc::unavailable, e.what()});
  }
  return options.exit_code;
}
