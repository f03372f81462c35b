// The node process of `dsec-bench soak`.

#include "bench/soak/terms.hpp"

#include <CLI/CLI.hpp>

int main(int count, char** words) {
  dsec::bench::soak_terms terms;
  CLI::App program{"The node process of `dsec-bench soak`, which starts it."};
  program.add_option("--state-dir", terms.state_dir)->required();
  program.add_option("--data-dir", terms.data_dir)->required();
  program.add_option("--run-dir", terms.run_dir)->required();
  program.add_option("--base", terms.base)->required();
  program.add_option("--notices", terms.notices)->required();
  program.add_option("--sandboxes", terms.sandboxes)->check(CLI::NonNegativeNumber);
  program.add_option("--seconds", terms.seconds)->check(CLI::NonNegativeNumber);
  program.add_option("--seed", terms.seed)->check(CLI::NonNegativeNumber);
  CLI11_PARSE(program, count, words);
  return dsec::bench::run_soak_node(terms);
}
