#include "bench/benches.hpp"
#include "bench/place.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <map>

int main(int count, char** words) {
  using namespace dsec::bench;
  const std::map<std::string, report (*)(const bench_options&)> benches{
    {"create", run_create}, {"exec", run_exec},   {"journal", run_journal},
    {"pause", run_pause},   {"peers", run_peers}, {"soak", run_soak}};
  CLI::App program{"Measures dsec on this machine; the last line of output is one JSON object."};
  std::string name;
  bench_options options;
  program.add_option("bench", name, "create, exec, journal, pause, peers or soak")->required();
  program.add_flag("--quick", options.quick, "The same in less than a minute");
  program.add_option("--data-dir", options.data_dir, "Where the store with the base layer is")
    ->capture_default_str();
  program.add_option("--base", options.base, "Digest of the base layer");
  program.add_option("--minutes", options.minutes, "soak: for how long")
    ->check(CLI::PositiveNumber);
  program.add_option("--seed", options.seed, "soak: what its chance starts from")
    ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(program, count, words);

  const auto bench = benches.find(name);
  if (bench == benches.end()) {
    std::fprintf(stderr, "dsec-bench: no bench is named %s\n", name.c_str());
    return 2;
  }
  catch_interrupts();
  try {
    bench->second(options).print();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "dsec-bench %s: %s\n", name.c_str(), failure.what());
    return 1;
  }
}
