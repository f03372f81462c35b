// Datagrams of a client of the spawner: any bytes are a request within every limit, a refusal that
// can be told, or no request at all.

#include "backends/spawner/names.hpp"
#include "backends/spawner/wire.hpp"
#include "schemas/spawner.capnp.h"
#include "tests/fuzz/input.hpp"

#include <capnp/serialize.h>

#include <set>

using namespace dsec;
using namespace dsec::spawner;

namespace {

void check(const create_order& order) {
  fuzz::claim(valid_sandbox_id(order.id), "an accepted id is valid", order.id);
  fuzz::claim(order.id.find('/') == std::string::npos && order.id.find('_') == std::string::npos,
              "an accepted id names no other file", order.id);
  fuzz::claim(!order.layers.empty() && order.layers.size() <= 200, "1 to 200 layers");
  std::set<std::string> once;
  for (const auto& layer : order.layers) {
    fuzz::claim(valid_digest(layer) && layer.find('/') == std::string::npos, "a digest", layer);
    fuzz::claim(once.insert(layer).second, "each layer once", layer);
  }
  fuzz::claim(order.memory_bytes >= 8 << 20 && order.memory_bytes <= 1ull << 50, "memory");
  fuzz::claim(order.processes >= 4 && order.processes <= 30'000, "processes");
  fuzz::claim(order.cpu_milli == 0 || order.cpu_milli >= 10, "cpu");
  fuzz::claim(order.disk_bytes >= 1 << 20 && order.disk_bytes <= 1ull << 50, "disk");
  fuzz::claim(!order.hostname.empty() && order.hostname.size() <= 63
                && order.hostname.find('\0') == std::string::npos,
              "a host name", order.hostname);
}

void read(std::string_view datagram) {
  const auto asked = read_request(datagram);
  if (!asked) {
    fuzz::claim(asked.error().code == errc::corrupt, "no request is corrupt");
    return;
  }
  if (!asked->what) {
    const auto& why = asked->what.error();
    fuzz::claim(why.code == errc::invalid_argument && !why.message.empty(), "a refusal says why");
    // It is told and logged: it may not carry the client's bytes into a terminal or another line.
    for (char c : why.message)
      fuzz::claim(c >= ' ' && c <= '~', "a refusal is printable", why.message);
    fuzz::claim(!write_error(asked->sequence, why).empty(), "a refusal can be written");
    return;
  }
  if (auto* create = std::get_if<create_order>(&*asked->what)) {
    check(*create);
    // The sandbox's own process reads it again, and must read the same.
    const auto again = read_request(create->datagram);
    fuzz::claim(again && again->what, "an order is read again");
    const auto& same = std::get<create_order>(*again->what);
    fuzz::claim(same.alike(*create) && same.id == create->id && same.hostname == create->hostname,
                "an order is the same when it is read again");
  } else if (auto* destroy = std::get_if<destroy_order>(&*asked->what)) {
    fuzz::claim(valid_sandbox_id(destroy->id), "an accepted id is valid", destroy->id);
  }
}

/// A create whose fields are chosen, so that limits are met from both sides.
std::string create_of(fuzz::input& in) {
  static const std::uint64_t sizes[] = {0,       1,          (8 << 20) - 1,    8 << 20,
                                        1 << 20, 1ull << 50, (1ull << 50) + 1, ~0ull};
  static const std::uint32_t counts[] = {0, 3, 4, 9, 10, 30'000, 30'001, 1'000'000, ~0u};
  capnp::MallocMessageBuilder message;
  auto request = message.initRoot<wire::Request>();
  request.setSequence(in.byte());
  auto create = request.initCreate();
  create.setSandboxId(in.text());
  create.setMemoryBytes(in.one_of(sizes));
  create.setDiskBytes(in.one_of(sizes));
  create.setProcesses(in.one_of(counts));
  create.setCpuMilli(in.one_of(counts));
  create.setAllowSetuid(in.flag());
  create.setHostname(in.text());
  create.setPauseAfterMs(in.one_of(sizes));
  create.setStopAfterMs(in.one_of(sizes));
  auto layers = create.initLayers(static_cast<unsigned>(in.below(210)));
  for (unsigned i = 0; i < layers.size(); ++i) {
    auto digest = "sha256-" + std::string(64, 'a');
    digest[7 + i % 64] = "0123456789abcdefgX/."[in.below(20)];
    digest[7 + (i / 64) % 64] = static_cast<char>('0' + i % 10);
    layers.set(i, digest);
  }
  auto words = capnp::messageToFlatArray(message);
  auto bytes = words.asChars();
  return {bytes.begin(), bytes.size()};
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz::input in{bytes, size};
  switch (in.below(3)) {
  case 0:
    read(in.take_all());
    break;
  case 1: {
    auto datagram = create_of(in);
    read(datagram);
    while (!in.empty()) {
      datagram[in.number<std::uint16_t>() % datagram.size()] = static_cast<char>(in.byte());
      read(datagram);
    }
    break;
  }
  default: {
    const auto name = in.take_all();
    if (const auto slot = slot_of(name))
      fuzz::claim(*slot < slots_max && slot_name(*slot) == name, "a slot has one name", name);
    fuzz::claim(!(valid_sandbox_id(name) && slot_of(name)), "no id is the name of a slot", name);
    for (char c : printable(name))
      fuzz::claim(c >= ' ' && c <= '~', "printable", name);
  }
  }
  return 0;
}
