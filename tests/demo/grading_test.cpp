#define BOOST_TEST_MODULE demo_grading
#include "bench/demo/grade.hpp"
#include "bench/demo/prepare.hpp"
#include "sdk/embed/runtime.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>
#include <sstream>
#include <stdlib.h>

using namespace dsec;
using namespace dsec::demo;

namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream in{path};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Grades a task in a fresh sandbox, `patch` applied first unless it is empty.
double grade(const job& in, const dsec::environment& environment, const task& x,
             const std::string& patch) {
  auto box = in.create({environment, ""}).get();
  BOOST_REQUIRE_MESSAGE(bool(box), (box ? "" : box.error().message));
  if (!patch.empty()) {
    auto spec = exec_spec::shell("patch -p1 --batch");
    spec.stdin_bytes = patch;
    auto patched = box->exec(spec).get();
    BOOST_REQUIRE_MESSAGE(bool(patched), (patched ? "" : patched.error().message));
    BOOST_TEST(patched->ok(), patched->out);
  }
  auto got = box->exec(exec_spec::shell(x.grade_command)).get();
  BOOST_REQUIRE_MESSAGE(bool(got), (got ? "" : got.error().message));
  BOOST_REQUIRE(bool(box->stop().get()));
  return reward_of(x, parse_score(got->out));
}

} // namespace

BOOST_AUTO_TEST_CASE(every_grade_flips_when_the_patch_is_removed) {
  const std::filesystem::path data_dir = "/var/lib/dsec-demo";
  auto tasks = load_tasks(DSEC_DEMO_TASKS);
  BOOST_REQUIRE(bool(tasks));
  auto environments = prepared_environments(data_dir, *tasks);
  BOOST_REQUIRE_MESSAGE(bool(environments), (environments ? "" : environments.error().message));
  char name[] = "/tmp/dsec-grading-XXXXXX";
  std::filesystem::path folder = ::mkdtemp(name);
  {
    runtime_options options;
    options.data_dir = data_dir;
    options.run_dir = "/run/dsec-demo";
    auto engine = runtime::open(folder / "state", options);
    BOOST_REQUIRE_MESSAGE(bool(engine), (engine ? "" : engine.error().message));
    auto job = (*engine)->open_job("grading").get();
    BOOST_REQUIRE(bool(job));
    for (const auto& x : tasks->tasks) {
      const auto& environment = environments->at(x.name);
      BOOST_TEST(grade(*job, environment, x, "") == 0.0, x.name << " without the patch");
      BOOST_TEST(grade(*job, environment, x, slurp(x.bug.parent_path() / "fix.patch")) == 1.0,
                 x.name << " with it");
    }
    BOOST_TEST(bool(job->close().get()));
  }
  std::filesystem::remove_all(folder);
}
