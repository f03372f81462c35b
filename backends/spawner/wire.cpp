#include "backends/spawner/wire.hpp"

#include "backends/exception_text.hpp"
#include "backends/spawner/names.hpp"
#include "schemas/spawner.capnp.h"

#include <capnp/serialize.h>
#include <kj/array.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstring>
#include <tuple>

namespace dsec::spawner {

namespace {

error bad(const std::string& field, const std::string& value, const std::string& limit) {
  return {errc::invalid_argument, field + ": " + value + " is not " + limit};
}

std::string_view view(capnp::Text::Reader text) {
  return {text.begin(), text.size()};
}

result<void>
check_range(const char* field, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most)
    return {};
  return bad(field, std::to_string(value), std::to_string(least) + " to " + std::to_string(most));
}

result<std::string> read_id(capnp::Text::Reader text) {
  if (!valid_sandbox_id(view(text)))
    return bad("sandboxId", "'" + printable(view(text)) + "'",
               "1 to 40 of [0-9a-z-], and 'spawner' is taken");
  return std::string{view(text)};
}

result<void> check_hostname(std::string_view name) {
  bool good = !name.empty() && name.size() <= 63 && name.front() != '-' && name.front() != '.'
              && std::all_of(name.begin(), name.end(), [](char c) {
                   return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                          || c == '-' || c == '.';
                 });
  if (good)
    return {};
  return bad("hostname", "'" + printable(name) + "'", "1 to 63 of [0-9A-Za-z.-]");
}

result<any_order> read_create(wire::Create::Reader from) {
  constexpr std::uint64_t bytes_max = 1ull << 50;
  create_order to;
  auto id = read_id(from.getSandboxId());
  if (!id)
    return id.error();
  to.id = *std::move(id);
  auto layers = from.getLayers();
  if (auto ok = check_range("layers", layers.size(), 1, 200); !ok)
    return ok.error();
  for (auto layer : layers) {
    if (!valid_digest(view(layer)))
      return bad("layers", "'" + printable(view(layer)) + "'", "\"sha256-\" and 64 hex digits");
    if (std::find(to.layers.begin(), to.layers.end(), view(layer)) != to.layers.end())
      return bad("layers", "'" + printable(view(layer)) + "'", "named once");
    to.layers.emplace_back(view(layer));
  }
  to.memory_bytes = from.getMemoryBytes();
  to.processes = from.getProcesses();
  to.cpu_milli = from.getCpuMilli();
  to.disk_bytes = from.getDiskBytes();
  if (auto ok = check_range("memoryBytes", to.memory_bytes, 8 << 20, bytes_max); !ok)
    return ok.error();
  if (auto ok = check_range("processes", to.processes, 4, 30'000); !ok)
    return ok.error();
  // Below 10 the kernel's own minimum quota would refuse it.
  if (to.cpu_milli != 0)
    if (auto ok = check_range("cpuMilli", to.cpu_milli, 10, 1'000'000); !ok)
      return ok.error();
  if (auto ok = check_range("diskBytes", to.disk_bytes, 1 << 20, bytes_max); !ok)
    return ok.error();
  to.allow_setuid = from.getAllowSetuid();
  to.hostname = from.getHostname().size() == 0 ? to.id : std::string{view(from.getHostname())};
  if (auto ok = check_hostname(to.hostname); !ok)
    return ok.error();
  to.pause_after_ms = from.getPauseAfterMs();
  to.stop_after_ms = from.getStopAfterMs();
  // Beyond what dsec-init's arithmetic holds; the node has a stricter limit.
  constexpr std::uint64_t clock_ms_max = 1ull << 50;
  for (auto [field, asked, kept] :
       {std::tuple{"timeToLiveMs", from.getTimeToLiveMs(), &to.time_to_live_ms},
        {"rolloutBudgetMs", from.getRolloutBudgetMs(), &to.rollout_budget_ms},
        {"ageMs", from.getAgeMs(), &to.age_ms}}) {
    if (auto ok = check_range(field, asked, 0, clock_ms_max); !ok)
      return ok.error();
    *kept = asked;
  }
  return any_order{std::move(to)};
}

result<any_order> read_order(wire::Request::Reader from) {
  switch (from.which()) {
  case wire::Request::CREATE:
    return read_create(from.getCreate());
  case wire::Request::DESTROY: {
    auto id = read_id(from.getDestroy());
    if (!id)
      return id.error();
    return any_order{destroy_order{*std::move(id), from.getEpoch()}};
  }
  case wire::Request::LIST:
    return any_order{list_order{}};
  case wire::Request::HELLO:
    return any_order{hello_order{}};
  case wire::Request::WARM:
    return any_order{warm_order{from.getWarm()}};
  case wire::Request::SHUTDOWN:
    return any_order{shutdown_order{}};
  }
  return error{errc::invalid_argument, "request: a verb that this spawner does not know"};
}

template <class Fill>
std::string write_reply(std::uint64_t sequence, Fill fill) {
  capnp::MallocMessageBuilder message;
  auto reply = message.initRoot<wire::Reply>();
  reply.setSequence(sequence);
  fill(reply);
  auto words = capnp::messageToFlatArray(message);
  auto bytes = words.asBytes();
  return {reinterpret_cast<const char*>(bytes.begin()), bytes.size()};
}

} // namespace

result<request> read_request(std::string_view datagram) {
  if (datagram.empty() || datagram.size() > request_bytes_max
      || datagram.size() % sizeof(capnp::word) != 0)
    return error{errc::corrupt,
                 "read request: " + std::to_string(datagram.size()) + " bytes are no message"};
  // A datagram arrives at any alignment; messages want words.
  auto words = kj::heapArray<capnp::word>(datagram.size() / sizeof(capnp::word));
  std::memcpy(words.begin(), datagram.data(), datagram.size());
  try {
    capnp::ReaderOptions bounds;
    bounds.traversalLimitInWords = 4 * words.size() + 64;
    capnp::FlatArrayMessageReader reader{words, bounds};
    auto root = reader.getRoot<wire::Request>();
    request read{root.getSequence(), read_order(root)};
    if (read.what)
      if (auto* create = std::get_if<create_order>(&*read.what))
        create->datagram = datagram;
    return read;
  } catch (const kj::Exception& e) {
    return error{errc::corrupt, "read request: " + exception_text(e.getDescription().cStr())};
  }
}

std::string write_done(std::uint64_t sequence) {
  return write_reply(sequence, [](wire::Reply::Builder reply) { reply.setNone(); });
}

std::string write_error(std::uint64_t sequence, const error& e) {
  return write_reply(sequence, [&](wire::Reply::Builder reply) {
    reply.initError().setCode(static_cast<std::uint8_t>(e.code));
    reply.getError().setMessage(e.message);
  });
}

std::string write_list(std::uint64_t sequence, const std::vector<live_entry>& entries) {
  return write_reply(sequence, [&](wire::Reply::Builder reply) {
    auto list = reply.initList(static_cast<unsigned>(entries.size()));
    for (unsigned i = 0; i < list.size(); ++i) {
      list[i].setSandboxId(entries[i].id);
      list[i].setInitPid(entries[i].pid);
      list[i].setEnding(entries[i].ending);
    }
  });
}

std::string write_hello(std::uint64_t sequence, const hello_facts& facts) {
  return write_reply(sequence, [&](wire::Reply::Builder reply) {
    auto hello = reply.initHello();
    hello.setVersion(facts.version);
    hello.setProtocol(wire::SPAWNER_PROTOCOL);
    hello.setPid(facts.pid);
    hello.setSlots(facts.slots);
    hello.setSlotsUsed(facts.slots_used);
    hello.setSandboxes(facts.sandboxes);
    hello.setSwapBytes(facts.swap_bytes);
    hello.setCgroup(facts.cgroup);
    hello.setCgroupRoot(facts.cgroup_root);
  });
}

} // namespace dsec::spawner
