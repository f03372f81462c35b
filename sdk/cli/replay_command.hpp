#pragma once

namespace CLI {
class App;
}

namespace dsec {

/// `dsec replay SCENARIO [--seed N] [--flip N] [--json]`: runs a scenario in virtual time and
/// prints the hash over everything that happened. Sets `exit_code`: 0 if every job came to its end,
/// 1 if not, 125 if it could not run.
void add_replay_command(CLI::App& parent, int& exit_code);

} // namespace dsec
