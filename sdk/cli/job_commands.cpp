#include "sdk/cli/list.hpp"
#include "sdk/cli/numbers.hpp"
#include "sdk/cli/options.hpp"
#include "sdk/front/convert.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <map>

namespace dsec {

namespace {

using namespace std::chrono_literals;

result<wire::Job::Client> find_job(client& at, const std::string& name) {
  auto request = at.dsec.jobRequest();
  request.setName(name.c_str());
  auto found = wait(at, request.send());
  if (!found)
    return found.error();
  return wire::Job::Client{found->getJob()};
}

/// A subcommand that takes a job's name and calls `verb`.
CLI::App* add_verb(CLI::App& job, cli_options& options, const char* name, const char* about,
                   std::function<result<void>(client&, wire::Job::Client)> verb) {
  auto* command = job.add_subcommand(name, about);
  auto id = std::make_shared<std::string>();
  command->add_option("job", *id, "Its name")->required();
  command->callback([&options, id, verb] {
    options.with_client([&](client& at) -> result<void> {
      auto found = find_job(at, *id);
      if (!found)
        return found.error();
      return verb(at, *found);
    });
  });
  return command;
}

void add_open(CLI::App& job, cli_options& options) {
  auto* open = job.add_subcommand("open", "Create a job, or give it a new lease");
  auto id = std::make_shared<std::string>();
  auto terms = std::make_shared<lease_terms>(lease_terms{0ms, 0ms});
  open->add_option("job", *id, "Its name")->required();
  add_seconds(*open, "--pause-after", terms->pause_after,
              "Of the runtime's silence, until its sandboxes are paused and reclaimed; 0: never");
  add_seconds(*open, "--stop-after", terms->stop_after,
              "The same until they are stopped; 0: never; not less than --pause-after");
  open->callback([&options, id, terms] {
    options.with_client([&](client& at) -> result<void> {
      auto request = at.dsec.openJobRequest();
      request.setName(id->c_str());
      wire::write(*terms, request.initLease());
      auto opened = wait(at, request.send());
      return opened ? result<void>{} : result<void>{opened.error()};
    });
  });
}

/// Jobs as their sandboxes show them.
void add_list(CLI::App& job, cli_options& options) {
  auto* ls = job.add_subcommand("ls", "List jobs that have sandboxes, or the sandboxes of one");
  auto id = std::make_shared<std::string>();
  ls->add_option("job", *id, "List the sandboxes of this one");
  ls->add_flag("--json", options.json, "As JSON");
  ls->callback([&options, id] {
    options.with_client([&](client& at) -> result<void> {
      auto found = wait(at, at.dsec.listRequest().send());
      if (!found)
        return found.error();
      std::vector<sandbox_info> of_one;
      std::map<std::string, std::map<std::string, std::uint64_t>> jobs;
      for (auto one : found->getSandboxes()) {
        auto x = wire::read(one);
        ++jobs[x.job.str()][std::string{to_string(x.state)}];
        if (x.job.str() == *id)
          of_one.push_back(std::move(x));
      }
      if (!id->empty()) {
        return print_sandboxes(of_one, options.json);
      }
      auto list = nlohmann::json::array();
      std::vector<std::vector<std::string>> rows{{"JOB", "SANDBOXES"}};
      for (const auto& [name, states] : jobs) {
        list.push_back({{"job", name}, {"sandboxes", states}});
        std::string text;
        for (const auto& [state, count] : states)
          text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
        rows.push_back({name, text});
      }
      return options.json ? print_json(std::move(list)) : print_table(rows);
    });
  });
}

template <class Results>
result<void> plain(const result<capnp::Response<Results>>& x) {
  return x ? result<void>{} : result<void>{x.error()};
}

} // namespace

void add_job_commands(CLI::App& app, cli_options& options) {
  auto* job = app.add_subcommand("job", "Jobs: sandboxes of one training run");
  job->require_subcommand(1);
  add_open(*job, options);
  add_list(*job, options);
  auto held = std::make_shared<bool>(false);
  auto* preempt =
    add_verb(*job, options, "preempt", "Pause and reclaim every sandbox of a job",
             [&options, held](client& at, wire::Job::Client x) -> result<void> {
               auto request = x.preemptRequest();
               request.setMode(*held ? wire::Job::PreemptMode::UNTIL_RESUME
                                     : wire::Job::PreemptMode::UNTIL_REQUEST);
               auto answer = wait(at, request.send());
               if (!answer)
                 return answer.error();
               auto r = wire::read(answer->getReport());
               if (options.json)
                 return print_json(nlohmann::json{{"sandboxes", r.sandboxes},
                                                  {"reclaimed", r.reclaimed},
                                                  {"failed", r.failed},
                                                  {"before_bytes", r.before_bytes},
                                                  {"after_bytes", r.after_bytes}});
               return print("{} of {} sandboxes reclaimed, {} failed, {} bytes before, {} after\n",
                            r.reclaimed, r.sandboxes, r.failed, r.before_bytes, r.after_bytes);
             });
  preempt->add_flag("--until-resume", *held, "Requests do not bring them back");
  preempt->add_flag("--json", options.json, "As JSON");
  add_verb(*job, options, "resume", "Bring a preempted job back",
           [](client& at, wire::Job::Client x) {
             return plain(wait(at, x.resumeRequest().send()));
           });
  add_verb(*job, options, "close", "Stop every sandbox of a job and end it",
           [](client& at, wire::Job::Client x) {
             return plain(wait(at, x.closeRequest().send()));
           });
}

} // namespace dsec
