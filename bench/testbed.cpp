#include "bench/testbed.hpp"

#include "backends/rootfs/layer_store.hpp"
#include "bench/spawn.hpp"
#include "schemas/spawner.capnp.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

namespace dsec::bench {

namespace {

constexpr auto spawner_patience = timeval{60, 0};

/// Asks the spawner to undo everything of its data and run directory, and to end.
void shut_down_spawner(const std::filesystem::path& run_dir) {
  const fd socket{
    checked(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), "socket to the spawner")};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, (run_dir / "spawner.sock").c_str(), sizeof address.sun_path - 1);
  checked(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
          "connect to the spawner");
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &spawner_patience, sizeof spawner_patience);
  capnp::MallocMessageBuilder message;
  auto request = message.initRoot<wire::Request>();
  request.setSequence(1);
  request.setShutdown();
  const auto words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  checked(::send(socket.get(), bytes.begin(), bytes.size(), MSG_NOSIGNAL), "shut the spawner down");
  alignas(capnp::word) char answer[4096];
  const auto got = checked(::recv(socket.get(), answer, sizeof answer, 0), "shut the spawner down");
  capnp::FlatArrayMessageReader reader{
    kj::arrayPtr(reinterpret_cast<const capnp::word*>(answer),
                 static_cast<std::size_t>(got) / sizeof(capnp::word))};
  const auto refused = reader.getRoot<wire::Reply>().getError();
  if (refused.getMessage().size() > 0)
    throw std::runtime_error{refused.getMessage().cStr()};
}

/// Lends the base layer to the store of `data_dir`.
layer_digest take_base(const bench_options& options, const std::filesystem::path& data_dir) {
  const auto lender = options.data_dir / "store";
  const layer_store store{lender};
  auto base = options.base;
  if (base.empty()) {
    const auto all = value_of(store.list(), "list " + lender.string());
    if (all.size() != 1)
      throw std::runtime_error{
        fmt::format("{} has {} layers: name the base with --base", lender.string(), all.size())};
    base = all.front().digest.str();
  }
  auto digest = value_of(store.resolve(base), "find the base layer");
  const auto from = lender / digest.str();
  const auto to = data_dir / "store" / digest.str();
  std::filesystem::create_directories(to.parent_path());
  using how = std::filesystem::copy_options;
  std::error_code other_filesystem;
  std::filesystem::copy(from, to, how::recursive | how::create_hard_links, other_filesystem);
  if (other_filesystem)
    std::filesystem::copy(from, to, how::recursive | how::overwrite_existing);
  return digest;
}

/// A toolkit layer with dsec-bench-hold.
layer_digest import_holder(const std::filesystem::path& data_dir) {
  return value_of(layer_store{data_dir / "store"}.import_made(
                    "dsec-bench",
                    [](const std::filesystem::path& tree) -> result<void> {
                      std::filesystem::create_directories(tree / "usr/bin");
                      std::filesystem::copy(sibling_program("dsec-bench-hold"),
                                            tree / "usr/bin/dsec-bench-hold");
                      return {};
                    }),
                  "import dsec-bench-hold");
}

} // namespace

void run_in(const sandbox& box, std::vector<std::string> argv) {
  exec_spec spec;
  spec.argv = std::move(argv);
  const auto what = spec.argv.front();
  const auto answer = await(box.exec(std::move(spec)), what);
  if (!answer.ok())
    throw std::runtime_error{fmt::format("{}: {} {} {} {}", what, answer.outcome.kind,
                                         answer.outcome.code, answer.outcome.cause, answer.err)};
}

double create_and_exec(testbed& bed) {
  const stopwatch clock;
  const auto box = await(bed.job().create({bed.environment(), {}}), "create");
  run_in(box, {"/bin/true"});
  const double ms = clock.ms();
  await(box.stop(), "stop");
  return ms;
}

testbed::testbed(const bench_options& options)
  : data_dir_{place_.folder("data")},
    run_dir_{place_.folder("run")} {
  environment_.layers.push_back(take_base(options, data_dir_));
  environment_.layers.push_back(import_holder(data_dir_));
  environment_.limits.cpu_milli = 1000;
}

testbed::~testbed() {
  try {
    if (job_)
      await(job_->close(), "close the job");
    runtime_.reset();
    if (std::filesystem::exists(run_dir_ / "spawner.sock"))
      shut_down_spawner(run_dir_);
  } catch (const std::exception& failure) {
    progress(failure.what());
  }
}

std::vector<std::string> testbed::layers() const {
  std::vector<std::string> folders;
  for (const auto& layer : environment_.layers)
    folders.push_back(data_dir_ / "store" / layer.str());
  return folders;
}

job& testbed::job() {
  if (!runtime_) {
    runtime_options options;
    options.data_dir = data_dir_;
    options.run_dir = run_dir_;
    options.warm = warm;
    runtime_ = value_of(runtime::open(place_.root() / "state", options), "open the runtime");
    job_ = await(runtime_->open_job("bench"), "open a job");
  }
  return *job_;
}

} // namespace dsec::bench
