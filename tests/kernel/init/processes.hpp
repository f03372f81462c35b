#pragma once

#include "tests/kernel/init/fixture.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dsec::test {

/// How a test wants a process.
struct spawn_options {
  run_options command;
  std::string name;
  std::string input; ///< What standard input begins with.
  bool keep_input = false;
  std::optional<std::pair<unsigned, unsigned>> terminal; ///< Rows and columns.
};

/// What came of one stream of a process.
struct seen {
  std::string bytes;
  std::uint64_t skipped = 0;
  bool ended = false;
};

/// Notes what it is sent. With `stuck`, the first write is never taken.
class noting_sink final : public wire::LossySink::Server {
public:
  explicit noting_sink(seen& to, bool stuck = false) : to_{to}, stuck_{stuck} {}

  kj::Promise<void> write(WriteContext context) override {
    const auto bytes = context.getParams().getBytes();
    to_.bytes.append(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
    return stuck_ ? kj::Promise<void>{kj::NEVER_DONE} : kj::READY_NOW;
  }

  kj::Promise<void> skipped(SkippedContext context) override {
    to_.skipped += context.getParams().getBytes();
    return kj::READY_NOW;
  }

  kj::Promise<void> end(EndContext) override {
    to_.ended = true;
    return kj::READY_NOW;
  }

private:
  seen& to_;
  bool stuck_;
};

/// A sandbox, and its processes as the node sees them. Errors throw dsec::error.
struct processes_fixture : fixture {
  using fixture::fixture;

  wire::Process::Client
  spawn(std::uint64_t id, const std::vector<std::string>& argv, const spawn_options& options = {}) {
    return spawn_from(client, id, argv, options);
  }

  wire::Process::Client
  shell(std::uint64_t id, const std::string& script, const spawn_options& options = {}) {
    return spawn(id, {"/bin/sh", "-c", script}, options);
  }

  static wire::Process::Client spawn_from(init_client& from, std::uint64_t id,
                                          const std::vector<std::string>& argv,
                                          const spawn_options& options) {
    auto request = from.init().spawnRequest();
    request.setId(id);
    auto spec = request.initSpec();
    auto words = spec.initArgv(argv.size());
    for (unsigned i = 0; i < argv.size(); ++i)
      words.set(i, kj::StringPtr{argv[i].c_str()}.asBytes());
    auto env = spec.initEnv(options.command.env.size());
    for (unsigned i = 0; i < env.size(); ++i)
      env.set(i, kj::StringPtr{options.command.env[i].c_str()}.asBytes());
    spec.setCwd(kj::StringPtr{options.command.cwd.c_str()}.asBytes());
    spec.setUser(options.command.user.c_str());
    spec.setDeadlineMs(options.command.deadline_ms);
    spec.setSpoolBytes(options.command.spool_bytes);
    auto terms = request.initTerms();
    terms.setName(options.name.c_str());
    if (options.terminal) {
      terms.setTerminal(true);
      terms.setRows(options.terminal->first);
      terms.setColumns(options.terminal->second);
    }
    request.setStdin(kj::StringPtr{options.input.c_str()}.asBytes());
    request.setKeepInput(options.keep_input);
    auto answer = request.send().wait(from.scope());
    check(answer.getError());
    return answer.getProcess();
  }

  wire::Process::Client find(std::uint64_t id) {
    auto request = client.init().processRequest();
    request.setId(id);
    auto answer = request.send().wait(io.waitScope);
    check(answer.getError());
    return answer.getProcess();
  }

  run_result wait(wire::Process::Client& of) {
    auto answer = of.waitRequest().send().wait(io.waitScope);
    const auto r = answer.getResult();
    const auto o = r.getOutcome();
    auto text = [](capnp::Data::Reader x) {
      return std::string{reinterpret_cast<const char*>(x.begin()), x.size()};
    };
    run_result x;
    x.kind = o.getKind();
    x.code = o.getCode();
    x.cause = o.getCause();
    x.out = text(r.getStdout());
    x.err = text(r.getStderr());
    x.out_bytes = r.getStdoutBytes();
    x.err_bytes = r.getStderrBytes();
    return x;
  }

  kj::Promise<void> attach(wire::Process::Client& to, seen& out, seen& err,
                           wire::AttachFrom from = wire::AttachFrom::START, bool stuck = false) {
    auto request = to.attachRequest();
    request.setFrom(from);
    request.setStdout(kj::heap<noting_sink>(out, stuck));
    request.setStderr(kj::heap<noting_sink>(err));
    return request.send().ignoreResult().eagerlyEvaluate(nullptr);
  }

  void input(wire::Process::Client& to, const std::string& bytes, bool end = false) {
    auto request = to.inputRequest();
    request.setBytes(
      capnp::Data::Reader{reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()});
    request.setEnd(end);
    check(request.send().wait(io.waitScope).getError());
  }

  void signal(wire::Process::Client& to, int number, bool tree = false) {
    auto request = to.signalRequest();
    request.setNumber(number);
    request.setTree(tree);
    check(request.send().wait(io.waitScope).getError());
  }

  void resize(wire::Process::Client& of, unsigned rows, unsigned columns) {
    auto request = of.resizeRequest();
    request.setRows(rows);
    request.setColumns(columns);
    check(request.send().wait(io.waitScope).getError());
  }

  void kill(wire::Process::Client& which) {
    which.killRequest().send().wait(io.waitScope);
  }

  void remove(wire::Process::Client& which) {
    check(which.removeRequest().send().wait(io.waitScope).getError());
  }

  /// Ids of the processes there are, in order.
  std::vector<std::uint64_t> ids() {
    std::vector<std::uint64_t> all;
    auto answer = client.init().processesRequest().send().wait(io.waitScope);
    for (auto x : answer.getProcesses())
      all.push_back(x.getId());
    return all;
  }

  /// Runs the loop until `out` holds `text`; false after 20 s.
  bool comes(const seen& out, const std::string& text) {
    auto& timer = io.provider->getTimer();
    const auto until = timer.now() + 20 * kj::SECONDS;
    while (out.bytes.find(text) == std::string::npos) {
      if (timer.now() > until)
        return false;
      // What is sent arrives in this loop, which has to run for it.
      timer.afterDelay(2 * kj::MILLISECONDS).wait(io.waitScope);
    }
    return true;
  }

  static void check(wire::Error::Reader e) {
    if (e.getCode() != 0)
      throw error{static_cast<errc>(e.getCode()), e.getMessage().cStr()};
  }
};

} // namespace dsec::test
