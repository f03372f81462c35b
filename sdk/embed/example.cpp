#include "sdk/embed/runtime.hpp"

#include <cstdio>

int main() {
  auto runtime = dsec::runtime::open("/var/lib/dsec/state");
  if (!runtime)
    return std::fprintf(stderr, "%s\n", runtime.error().message.c_str()), 1;
  auto job = (*runtime)->open_job("hello").get();
  dsec::create_options options{{.layers = {dsec::layer_digest{"sha256-..."}}}, "rollout-0"};
  auto sandbox = job ? job->create(options).get() : job.error();
  if (!sandbox)
    return std::fprintf(stderr, "%s\n", sandbox.error().message.c_str()), 1;
  auto spec = dsec::exec_spec::shell("uname -a > /tmp/system; cat /tmp/system");
  spec.step = 1; // Recorded: run this program again and the step is replayed, not run.
  if (auto done = sandbox->exec(spec).get())
    std::printf("%s(%s)\n", done->out.c_str(), done->replayed ? "replayed" : "ran");
}
