#include "sdk/cli/environment_options.hpp"
#include "sdk/cli/list.hpp"
#include "sdk/cli/options.hpp"
#include "sdk/cli/process_commands.hpp"
#include "sdk/front/convert.hpp"

#include <algorithm>
#include <optional>

namespace dsec {

namespace {

/// Calls `verb` on each sandbox; one failure does not keep the others from their turn.
result<void> on_each(client& at, const std::vector<std::string>& ids,
                     const std::function<result<void>(wire::Sandbox::Client)>& verb) {
  std::optional<error> failed;
  for (const auto& id : ids) {
    auto find = at.dsec.sandboxRequest();
    find.setId(id.c_str());
    auto found = wait(at, find.send());
    auto done = found ? verb(found->getSandbox()) : result<void>{found.error()};
    if (!done && ids.size() > 1)
      complain("{}: {}", id, done.error().message);
    if (!done)
      failed = done.error();
  }
  if (failed && ids.size() > 1)
    return error{failed->code, "not all of them"};
  return failed ? result<void>{*failed} : result<void>{};
}

template <class Results>
result<void> plain(const result<capnp::Response<Results>>& x) {
  return x ? result<void>{} : result<void>{x.error()};
}

void add_verb(CLI::App& app, cli_options& options, const char* name, const char* about,
              std::function<result<void>(client&, wire::Sandbox::Client)> verb) {
  auto* command = app.add_subcommand(name, about);
  auto ids = std::make_shared<std::vector<std::string>>();
  command->add_option("sandbox", *ids, "Ids")->required();
  command->callback([&options, ids, verb] {
    options.with_client([&](client& at) {
      return on_each(at, *ids, [&](wire::Sandbox::Client x) { return verb(at, std::move(x)); });
    });
  });
}

/// Of a sandbox whose id nobody got: it ends, unless its key names it too.
error untold(client& at, const environment_options& environment, const std::string& id,
             wire::Sandbox::Client created, const error& why) {
  if (!environment.key.empty())
    return {why.code, fmt::format("{}; sandbox {} stays, --key {} names it again", why.message, id,
                                  environment.key)};
  auto stopped = wait(at, created.stopRequest().send());
  if (!stopped)
    return {why.code, fmt::format("{}; sandbox {} stays, it could not be stopped: {}", why.message,
                                  id, stopped.error().message)};
  return {why.code, fmt::format("{}; sandbox {} was stopped again", why.message, id)};
}

void add_create(CLI::App& app, cli_options& options) {
  auto* create = app.add_subcommand("create", "Create a sandbox; prints its id");
  auto environment = std::make_shared<environment_options>();
  environment->add_to(*create);
  create->callback([&options, environment] {
    options.with_client([&](client& at) -> result<void> {
      auto wanted = environment->resolve(options.data_dir);
      if (!wanted)
        return wanted.error();
      auto created = environment->create(at, *wanted);
      if (!created)
        return created.error();
      auto told = print("{}\n", created->first);
      return told ? told : untold(at, *environment, created->first, created->second, told.error());
    });
  });
}

void add_ps(CLI::App& app, cli_options& options) {
  auto* ps = app.add_subcommand("ps", "List sandboxes, or the processes of one");
  auto all = std::make_shared<bool>(false);
  auto id = std::make_shared<std::string>();
  ps->add_option("sandbox", *id, "List the sessions and background processes of this one");
  ps->add_flag("--all,-a", *all, "Sandboxes that have ended too");
  ps->add_flag("--json", options.json, "As JSON");
  ps->callback([&options, all, id] {
    if (*all && !id->empty())
      return options.fail(
        {errc::invalid_argument,
         fmt::format("--all with sandbox {}: its processes are listed, ended ones "
                     "too, until they are removed",
                     *id)});
    options.with_client([&](client& at) -> result<void> {
      if (!id->empty())
        return print_processes(at, *id, options.json);
      auto request = at.dsec.listRequest();
      request.setWithEnded(*all);
      auto found = wait(at, request.send());
      if (!found)
        return found.error();
      std::vector<sandbox_info> list;
      for (auto one : found->getSandboxes())
        list.push_back(wire::read(one));
      return print_sandboxes(list, options.json);
    });
  });
}

} // namespace

void add_sandbox_commands(CLI::App& app, cli_options& options) {
  add_create(app, options);
  add_ps(app, options);
  auto reclaim = std::make_shared<bool>(false);
  add_verb(app, options, "pause", "Freeze sandboxes and the commands under way in them",
           [reclaim](client& at, wire::Sandbox::Client x) {
             auto request = x.pauseRequest();
             request.setReclaim(*reclaim);
             return plain(wait(at, request.send()));
           });
  app.get_subcommand("pause")->add_flag("--reclaim", *reclaim, "Give their memory back too");
  add_verb(app, options, "resume", "Thaw sandboxes", [](client& at, wire::Sandbox::Client x) {
    return plain(wait(at, x.resumeRequest().send()));
  });
  add_verb(app, options, "stop", "End sandboxes and everything in them",
           [](client& at, wire::Sandbox::Client x) {
             return plain(wait(at, x.stopRequest().send()));
           });
}

} // namespace dsec
