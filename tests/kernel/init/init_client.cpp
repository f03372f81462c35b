#include "tests/kernel/init/init_client.hpp"

#include <capnp/message.h>

namespace dsec::test {

namespace {

void check(wire::Error::Reader e) {
  if (e.getCode() != 0)
    throw error{static_cast<errc>(e.getCode()), e.getMessage().cStr()};
}

capnp::Data::Reader data(const std::string& bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

std::string text(capnp::Data::Reader bytes) {
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

void fill(wire::ExecSpec::Builder spec, const std::vector<std::string>& argv,
          const run_options& options) {
  auto list = spec.initArgv(static_cast<unsigned>(argv.size()));
  for (unsigned i = 0; i < argv.size(); ++i)
    list.set(i, data(argv[i]));
  auto env = spec.initEnv(static_cast<unsigned>(options.env.size()));
  for (unsigned i = 0; i < options.env.size(); ++i)
    env.set(i, data(options.env[i]));
  spec.setCwd(data(options.cwd));
  spec.setUser(options.user.c_str());
  spec.setDeadlineMs(options.deadline_ms);
  spec.setSpoolBytes(options.spool_bytes);
  spec.setHasStdin(options.has_stdin);
}

run_result result_of(wire::ExecResult::Reader r) {
  const auto o = r.getOutcome();
  return {o.getKind(),         o.getCode(),         o.getLimitBytes(),   o.getPeakBytes(),
          o.getCause().cStr(), text(r.getStdout()), text(r.getStderr()), r.getStdoutBytes(),
          r.getStderrBytes(),  r.getDurationMs(),   r.getOomKills()};
}

entry entry_of(wire::FileStatus::Reader s) {
  return {s.getType(), s.getMode(), s.getUid(), s.getGid(), s.getSize()};
}

} // namespace

kj::Promise<void> collecting_sink::write(WriteContext context) {
  to_ += text(context.getParams().getBytes());
  if (timer_)
    return timer_->afterDelay(delay_);
  return kj::READY_NOW;
}

init_client::init_client(kj::AsyncIoContext& io, const std::string& socket, std::uint64_t epoch)
  : io_{io},
    epoch_{epoch} {
  auto address = io.provider->getNetwork().parseAddress(("unix:" + socket).c_str());
  stream_ = address.wait(io.waitScope)->connect().wait(io.waitScope);
  network_ = kj::heap<capnp::TwoPartyVatNetwork>(*stream_, capnp::rpc::twoparty::Side::CLIENT);
  rpc_ = kj::heap<capnp::RpcSystem<capnp::rpc::twoparty::VatId>>(capnp::makeRpcClient(*network_));
  auto answer = gate_enter(epoch);
  check(answer.getError());
  init_ = kj::heap<wire::Init::Client>(answer.getInit());
}

capnp::Response<wire::InitGate::EnterResults> init_client::gate_enter(std::uint64_t epoch) {
  capnp::MallocMessageBuilder message;
  auto side = message.initRoot<capnp::rpc::twoparty::VatId>();
  side.setSide(capnp::rpc::twoparty::Side::SERVER);
  auto request = rpc_->bootstrap(side).castAs<wire::InitGate>().enterRequest();
  request.setEpoch(epoch);
  return request.send().wait(io_.waitScope);
}

wire::Exec::Client init_client::start(std::uint64_t id, const std::vector<std::string>& argv,
                                      const run_options& options) {
  auto request = init_->execRequest();
  request.setId(id);
  request.setAttended(options.attended);
  fill(request.initSpec(), argv, options);
  auto answer = request.send().wait(scope());
  check(answer.getError());
  return answer.getExec();
}

run_result init_client::wait(wire::Exec::Client& exec) {
  return result_of(exec.waitRequest().send().wait(scope()).getResult());
}

run_result init_client::run(const std::vector<std::string>& argv, const run_options& options) {
  auto exec = start(++last_id, argv, options);
  return wait(exec);
}

run_result init_client::shell(const std::string& script, const run_options& options) {
  return run({"sh", "-c", script}, options);
}

init_client::collected init_client::collect(std::uint64_t id, const std::vector<std::string>& argv,
                                            const run_options& options,
                                            const std::vector<std::uint64_t>& forget) {
  auto request = init_->runRequest();
  request.setId(id);
  fill(request.initSpec(), argv, options);
  auto ids = request.initForget(static_cast<unsigned>(forget.size()));
  for (unsigned i = 0; i < ids.size(); ++i)
    ids.set(i, forget[i]);
  return request.send();
}

run_result init_client::wait(collected&& answer) {
  auto done = answer.wait(scope());
  check(done.getError());
  return result_of(done.getResult());
}

void init_client::cancel(std::uint64_t id) {
  auto request = init_->cancelRequest();
  request.setId(id);
  request.send().wait(scope());
}

wire::File::Client
init_client::open(const std::string& path, wire::Init::OpenMode mode, bool parents) {
  auto request = init_->openRequest();
  request.setPath(data(path));
  request.setMode(mode);
  request.setPermissions(0644);
  request.setMakeParents(parents);
  auto answer = request.send().wait(scope());
  check(answer.getError());
  return answer.getFile();
}

void init_client::write_file(const std::string& path, const std::string& bytes, bool parents) {
  auto file = open(path, wire::Init::OpenMode::WRITE, parents);
  for (std::size_t at = 0; at < bytes.size(); at += 1 << 20) {
    auto request = file.writeRequest();
    request.setBytes(data(bytes.substr(at, 1 << 20)));
    check(request.send().wait(scope()).getError());
  }
}

std::string init_client::read_file(const std::string& path) {
  auto file = open(path, wire::Init::OpenMode::READ, false);
  std::string all;
  for (;;) {
    auto request = file.readRequest();
    request.setOffset(all.size());
    request.setBytes(1 << 20);
    auto answer = request.send().wait(scope());
    check(answer.getError());
    if (answer.getBytes().size() == 0)
      return all;
    all += text(answer.getBytes());
  }
}

entry init_client::status(const std::string& path) {
  auto request = init_->statusRequest();
  request.setPath(data(path));
  auto answer = request.send().wait(scope());
  check(answer.getError());
  return entry_of(answer.getStatus());
}

std::map<std::string, entry> init_client::list(const std::string& path) {
  auto file = open(path, wire::Init::OpenMode::LIST, false);
  auto answer = file.listRequest().send().wait(scope());
  check(answer.getError());
  std::map<std::string, entry> all;
  for (auto e : answer.getEntries())
    all[text(e.getName())] = entry_of(e.getStatus());
  return all;
}

std::uint64_t init_client::pause() {
  auto answer = init_->pauseRequest().send().wait(scope());
  check(answer.getError());
  return answer.getFrozenUs();
}

std::pair<std::uint64_t, std::uint64_t> init_client::reclaim() {
  auto answer = init_->reclaimRequest().send().wait(scope());
  check(answer.getError());
  return {answer.getBeforeBytes(), answer.getAfterBytes()};
}

void init_client::resume() {
  check(init_->resumeRequest().send().wait(scope()).getError());
}

} // namespace dsec::test
