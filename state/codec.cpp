#include "state/codec.hpp"

#include "schemas/records.capnp.h"
#include "state/crc32c.hpp"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <fmt/format.h>

#include <cstring>
#include <type_traits>

namespace dsec {

namespace {

constexpr unsigned char version = 1;
constexpr std::size_t header_bytes = 5;

kj::ArrayPtr<const kj::byte> raw(std::string_view x) {
  return {reinterpret_cast<const kj::byte*>(x.data()), x.size()};
}

kj::StringPtr text(const std::string& x) {
  return {x.c_str(), x.size()};
}

std::string bytes_of(capnp::Data::Reader x) {
  return {reinterpret_cast<const char*>(x.begin()), x.size()};
}

std::string text_of(capnp::Text::Reader x) {
  return {x.begin(), x.size()};
}

/// Enums of records stand in the schema in the same order; a test compares the names.
template <class Wire, class Enum>
Wire to_wire(Enum x) {
  return static_cast<Wire>(static_cast<std::uint16_t>(x));
}

error corrupt(std::string_view what, std::string_view cause) {
  return {errc::corrupt, fmt::format("decode {} record: {}", what, cause)};
}

/// Ends the decoding of a record; caught in `decode`.
struct unknown_enumerator {
  std::uint16_t number = 0;
};

template <class Enum, class Wire>
Enum from_wire(Wire x, Enum last) {
  auto number = static_cast<std::uint16_t>(x);
  if (number > static_cast<std::uint16_t>(last))
    throw unknown_enumerator{number};
  return static_cast<Enum>(number);
}

std::uint32_t checksum(std::string_view payload) {
  return ~crc32c(~0u, payload);
}

std::string sealed(capnp::MessageBuilder& message) {
  auto words = capnp::messageToFlatArray(message);
  auto payload = words.asChars();
  std::string out(header_bytes + payload.size(), '\0');
  out[0] = static_cast<char>(version);
  std::memcpy(out.data() + header_bytes, payload.begin(), payload.size());
  auto sum = checksum({payload.begin(), payload.size()});
  for (std::size_t i = 0; i < 4; ++i)
    out[1 + i] = static_cast<char>(sum >> (8 * i) & 0xff);
  return out;
}

/// Calls `read` with the root of the message in `bytes`.
template <class Root, class Read>
auto decode(std::string_view what, std::string_view bytes, Read read)
  -> result<std::invoke_result_t<Read, typename Root::Reader>> {
  if (bytes.size() < header_bytes)
    return corrupt(what, fmt::format("{} bytes, at least {}", bytes.size(), header_bytes));
  auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(bytes[i]);
  };
  if (byte(0) != version)
    return corrupt(what, fmt::format("version {}, this program knows {}", byte(0), version));
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < 4; ++i)
    stored |= static_cast<std::uint32_t>(byte(1 + i)) << (8 * i);
  auto payload = bytes.substr(header_bytes);
  if (checksum(payload) != stored)
    return corrupt(what, "checksum differs");
  if (payload.size() % sizeof(capnp::word) != 0)
    return corrupt(what, "not a whole number of words");
  try {
    auto words = kj::heapArray<capnp::word>(payload.size() / sizeof(capnp::word));
    std::memcpy(words.begin(), payload.data(), payload.size());
    capnp::ReaderOptions limits;
    // Every getter counts what it reaches: twice the message is enough for one that is read once.
    limits.traversalLimitInWords = 2 * words.size() + 64;
    limits.nestingLimit = 8;
    capnp::FlatArrayMessageReader reader{words, limits};
    return read(reader.getRoot<Root>());
  } catch (const kj::Exception& e) {
    return corrupt(what, std::string_view{e.getDescription().cStr()});
  } catch (const unknown_enumerator& e) {
    return corrupt(what, fmt::format("unknown enumerator {}", e.number));
  }
}

void write(wire::Lease::Builder out, const lease_terms& x) {
  out.setPauseAfterMs(x.pause_after.count());
  out.setStopAfterMs(x.stop_after.count());
}

lease_terms read(wire::Lease::Reader in) {
  return {std::chrono::milliseconds{in.getPauseAfterMs()},
          std::chrono::milliseconds{in.getStopAfterMs()}};
}

void write(wire::Clocks::Builder out, const sandbox_clocks& x) {
  out.setTimeToLiveMs(x.time_to_live.count());
  out.setRolloutBudgetMs(x.rollout_budget.count());
  out.setIdleTimeoutMs(x.idle_timeout.count());
  out.setOnIdle(to_wire<wire::Clocks::OnIdle>(x.on_idle));
}

sandbox_clocks read(wire::Clocks::Reader in) {
  using std::chrono::milliseconds;
  return {milliseconds{in.getTimeToLiveMs()}, milliseconds{in.getRolloutBudgetMs()},
          milliseconds{in.getIdleTimeoutMs()}, from_wire(in.getOnIdle(), idle_action::stop)};
}

void write(wire::Environment::Builder out, const environment& x) {
  auto layers = out.initLayers(static_cast<unsigned>(x.layers.size()));
  for (unsigned i = 0; i < layers.size(); ++i)
    layers.set(i, text(x.layers[i].str()));
  auto env = out.initEnv(static_cast<unsigned>(x.env.size()));
  for (unsigned i = 0; i < env.size(); ++i) {
    env[i].setName(raw(x.env[i].first));
    env[i].setValue(raw(x.env[i].second));
  }
  out.setUser(raw(x.user));
  out.setCwd(raw(x.cwd));
  auto limits = out.initLimits();
  limits.setMemoryBytes(x.limits.memory_bytes);
  limits.setProcesses(x.limits.processes);
  limits.setCpuMilli(x.limits.cpu_milli);
  limits.setDiskBytes(x.limits.disk_bytes);
  out.setAllowSetuid(x.allow_setuid);
}

environment read(wire::Environment::Reader in) {
  environment x;
  for (auto layer : in.getLayers())
    x.layers.emplace_back(text_of(layer));
  for (auto variable : in.getEnv())
    x.env.emplace_back(bytes_of(variable.getName()), bytes_of(variable.getValue()));
  x.user = bytes_of(in.getUser());
  x.cwd = bytes_of(in.getCwd());
  auto limits = in.getLimits();
  x.limits.memory_bytes = limits.getMemoryBytes();
  x.limits.processes = limits.getProcesses();
  x.limits.cpu_milli = limits.getCpuMilli();
  x.limits.disk_bytes = limits.getDiskBytes();
  x.allow_setuid = in.getAllowSetuid();
  return x;
}

void write(wire::StepRecord::Outcome::Builder out, const outcome& x) {
  out.setKind(to_wire<wire::Outcome::Kind>(x.kind));
  out.setCode(x.code);
  out.setLimitBytes(x.limit_bytes);
  out.setPeakBytes(x.peak_bytes);
  out.setCause(raw(x.cause));
}

outcome read(wire::StepRecord::Outcome::Reader in) {
  outcome x;
  x.kind = from_wire(in.getKind(), outcome_kind_last);
  x.code = in.getCode();
  x.limit_bytes = in.getLimitBytes();
  x.peak_bytes = in.getPeakBytes();
  x.cause = bytes_of(in.getCause());
  return x;
}

} // namespace

std::string encode(const meta_record& x) {
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::MetaRecord>();
  out.setNode(text(x.node.str()));
  out.setBootId(text(x.boot_id));
  out.setEpoch(x.epoch);
  out.setNextSequence(x.next_sequence);
  return sealed(message);
}

std::string encode(const job_record& x) {
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::JobRecord>();
  out.setId(text(x.id.str()));
  out.setState(to_wire<wire::JobRecord::State>(x.state));
  out.setPreemptedUntil(to_wire<wire::JobRecord::PreemptMode>(x.preempted_until));
  write(out.initLease(), x.lease);
  out.setNextIndex(x.next_index);
  out.setCreatedMs(x.created_ms);
  return sealed(message);
}

std::string encode(const sandbox_record& x) {
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::SandboxRecord>();
  out.setId(text(x.id.str()));
  out.setJob(text(x.job.str()));
  out.setIndex(x.index);
  out.setIdempotencyKey(raw(x.idempotency_key));
  write(out.initEnvironment(), x.environment);
  write(out.initLease(), x.lease);
  out.setIs(to_wire<wire::SandboxRecord::State>(x.is));
  out.setWanted(to_wire<wire::SandboxRecord::State>(x.wanted));
  out.setHeld(x.held);
  out.setCause(to_wire<wire::SandboxRecord::Cause>(x.cause));
  out.setDetail(raw(x.detail));
  out.setCreatedMs(x.created_ms);
  out.setEndedMs(x.ended_ms);
  write(out.initClocks(), x.clocks);
  out.setTold(to_wire<wire::EventRecord::Kind>(x.told));
  auto processes = out.initProcesses(static_cast<unsigned>(x.processes.size()));
  for (unsigned i = 0; i < processes.size(); ++i)
    processes.set(i, x.processes[i]);
  return sealed(message);
}

std::string encode(const job_event& x) {
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::EventRecord>();
  out.setJob(text(x.job.str()));
  out.setCursor(x.cursor);
  out.setAtMs(x.at_ms);
  out.setSandbox(text(x.sandbox.str()));
  out.setIndex(x.index);
  out.setKind(to_wire<wire::EventRecord::Kind>(x.kind));
  out.setExec(x.exec);
  out.setHasStep(x.step.has_value());
  out.setStep(x.step.value_or(0));
  if (x.outcome) {
    out.setHasOutcome(true);
    write(out.initOutcome(), *x.outcome);
  }
  out.setCause(to_wire<wire::SandboxRecord::Cause>(x.cause));
  out.setDetail(raw(x.detail));
  return sealed(message);
}

std::string encode(const step_record& x) {
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::StepRecord>();
  out.setSandbox(text(x.sandbox.str()));
  out.setStep(x.step);
  out.setExec(x.exec);
  out.setRequestDigest(text(x.request_digest));
  if (x.result) {
    out.setEnded(true);
    write(out.initOutcome(), x.result->outcome);
    out.setOutBytes(x.result->out_bytes);
    out.setErrBytes(x.result->err_bytes);
    out.setOomKills(x.result->oom_kills);
    out.setDurationMs(x.result->duration.count());
  }
  return sealed(message);
}

std::string encode_output(const step_record& x) {
  if (!x.result || (x.result->out.empty() && x.result->err.empty()))
    return {};
  capnp::MallocMessageBuilder message;
  auto out = message.initRoot<wire::StepOutput>();
  out.setOut(raw(x.result->out));
  out.setErr(raw(x.result->err));
  return sealed(message);
}

result<meta_record> decode_meta(std::string_view bytes) {
  return decode<wire::MetaRecord>("meta", bytes, [](wire::MetaRecord::Reader in) {
    meta_record x;
    x.node = node_id{text_of(in.getNode())};
    x.boot_id = text_of(in.getBootId());
    x.epoch = in.getEpoch();
    x.next_sequence = in.getNextSequence();
    return x;
  });
}

result<job_record> decode_job(std::string_view bytes) {
  return decode<wire::JobRecord>("job", bytes, [](wire::JobRecord::Reader in) {
    job_record x;
    x.id = job_id{text_of(in.getId())};
    x.state = from_wire(in.getState(), job_state::closed);
    x.preempted_until = from_wire(in.getPreemptedUntil(), preempt_mode::until_resume);
    x.lease = read(in.getLease());
    x.next_index = in.getNextIndex();
    x.created_ms = in.getCreatedMs();
    return x;
  });
}

result<sandbox_record> decode_sandbox(std::string_view bytes) {
  return decode<wire::SandboxRecord>("sandbox", bytes, [](wire::SandboxRecord::Reader in) {
    sandbox_record x;
    x.id = sandbox_id{text_of(in.getId())};
    x.job = job_id{text_of(in.getJob())};
    x.index = in.getIndex();
    x.idempotency_key = bytes_of(in.getIdempotencyKey());
    x.environment = read(in.getEnvironment());
    x.lease = read(in.getLease());
    x.is = from_wire(in.getIs(), sandbox_state::lost);
    x.wanted = from_wire(in.getWanted(), sandbox_state::lost);
    x.held = in.getHeld();
    x.cause = from_wire(in.getCause(), end_cause_last);
    x.detail = bytes_of(in.getDetail());
    x.created_ms = in.getCreatedMs();
    x.ended_ms = in.getEndedMs();
    x.clocks = read(in.getClocks());
    x.told = from_wire(in.getTold(), event_kind_last);
    for (auto process : in.getProcesses())
      x.processes.push_back(process);
    return x;
  });
}

result<job_event> decode_event(std::string_view bytes) {
  return decode<wire::EventRecord>("event", bytes, [](wire::EventRecord::Reader in) {
    job_event x;
    x.job = job_id{text_of(in.getJob())};
    x.cursor = in.getCursor();
    x.at_ms = in.getAtMs();
    x.sandbox = sandbox_id{text_of(in.getSandbox())};
    x.index = in.getIndex();
    x.kind = from_wire(in.getKind(), event_kind_last);
    x.exec = in.getExec();
    if (in.getHasStep())
      x.step = in.getStep();
    if (in.getHasOutcome())
      x.outcome = read(in.getOutcome());
    x.cause = from_wire(in.getCause(), end_cause_last);
    x.detail = bytes_of(in.getDetail());
    return x;
  });
}

result<step_record> decode_step(std::string_view bytes) {
  return decode<wire::StepRecord>("step", bytes, [](wire::StepRecord::Reader in) {
    step_record x;
    x.sandbox = sandbox_id{text_of(in.getSandbox())};
    x.step = in.getStep();
    x.exec = in.getExec();
    x.request_digest = text_of(in.getRequestDigest());
    if (in.getEnded()) {
      auto& ended = x.result.emplace();
      ended.outcome = read(in.getOutcome());
      ended.out_bytes = in.getOutBytes();
      ended.err_bytes = in.getErrBytes();
      ended.oom_kills = in.getOomKills();
      ended.duration = std::chrono::milliseconds{in.getDurationMs()};
    }
    return x;
  });
}

result<void> decode_output(std::string_view bytes, step_record& into) {
  if (!into.result)
    return error{errc::invalid_argument,
                 fmt::format("decode output of step {}: it has not ended", into.step)};
  auto done = decode<wire::StepOutput>("output", bytes, [&](wire::StepOutput::Reader in) {
    into.result->out = bytes_of(in.getOut());
    into.result->err = bytes_of(in.getErr());
    return true;
  });
  if (!done)
    return done.error();
  return {};
}

} // namespace dsec
