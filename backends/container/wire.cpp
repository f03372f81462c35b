#include "backends/container/wire.hpp"

#include "backends/exception_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dsec::wire {

static_assert(static_cast<int>(outcome_kind::exited) == static_cast<int>(Outcome::Kind::EXITED));
static_assert(static_cast<int>(outcome_kind_last) == static_cast<int>(Outcome::Kind::EXPIRED));
static_assert(static_cast<int>(attach_from::tail) == static_cast<int>(AttachFrom::TAIL));
static_assert(static_cast<int>(file_type::other) == static_cast<int>(FileStatus::Type::OTHER));

namespace {

/// A number of a peer as the enum it stands for; one that a newer peer added reads as `unknown`.
template <class To, class From>
To enumerator(From x, To last, To unknown) {
  return static_cast<int>(x) > static_cast<int>(last) ? unknown : static_cast<To>(x);
}

} // namespace

bool failed(Error::Reader from, error& to) {
  if (from.getCode() == 0)
    return false;
  to.code = from.getCode() > static_cast<int>(errc_last) ? errc::unavailable
                                                         : static_cast<errc>(from.getCode());
  to.message = text(from.getMessage());
  return true;
}

void write(const error& from, Error::Builder to) {
  to.setCode(static_cast<std::uint8_t>(from.code));
  to.setMessage(from.message.c_str());
}

error broken(std::string_view attempt, const kj::Exception& cause) {
  auto text = exception_text(cause.getDescription().cStr());
  if (text.empty())
    text = cause.getType() == kj::Exception::Type::DISCONNECTED ? "the connection is broken"
                                                                : "it failed";
  return {errc::unavailable, fmt::format("{}: {}", attempt, text)};
}

void write(const exec_spec& from, ExecSpec::Builder to) {
  auto argv = to.initArgv(from.argv.size());
  for (unsigned i = 0; i < argv.size(); ++i)
    argv.set(i, bytes(from.argv[i]));
  auto env = to.initEnv(from.env.size());
  for (unsigned i = 0; i < env.size(); ++i)
    env.set(i, bytes(from.env[i].first + '=' + from.env[i].second));
  to.setCwd(bytes(from.cwd));
  to.setUser(from.user.c_str());
  to.setDeadlineMs(from.deadline.count());
  to.setSpoolBytes(from.spool_bytes);
  to.setHasStdin(from.stdin_bytes.has_value());
}

void write(const outcome& from, Outcome::Builder to) {
  to.setKind(static_cast<Outcome::Kind>(from.kind));
  to.setCode(from.code);
  to.setLimitBytes(from.limit_bytes);
  to.setPeakBytes(from.peak_bytes);
  to.setCause(from.cause.c_str());
}

outcome read(Outcome::Reader from) {
  outcome x;
  x.kind = enumerator(from.getKind(), outcome_kind_last, outcome_kind::infrastructure);
  x.code = from.getCode();
  x.limit_bytes = from.getLimitBytes();
  x.peak_bytes = from.getPeakBytes();
  x.cause = text(from.getCause());
  return x;
}

void write(const process_info& from, ProcessInfo::Builder to) {
  to.setId(from.id);
  to.setName(from.name.c_str());
  auto argv = to.initArgv(from.argv.size());
  for (unsigned i = 0; i < argv.size(); ++i)
    argv.set(i, bytes(from.argv[i]));
  to.setTerminal(from.has_terminal);
  to.setStartedMs(from.started_ms);
  to.setEndedMs(from.ended_ms);
  to.setOutBytes(from.out_bytes);
  to.setErrBytes(from.err_bytes);
  if (from.outcome)
    write(*from.outcome, to.initOutcome());
}

process_info read(ProcessInfo::Reader from) {
  process_info x;
  x.id = from.getId();
  x.name = text(from.getName());
  for (auto word : from.getArgv())
    x.argv.push_back(text(word));
  x.has_terminal = from.getTerminal();
  x.started_ms = from.getStartedMs();
  x.ended_ms = from.getEndedMs();
  x.out_bytes = from.getOutBytes();
  x.err_bytes = from.getErrBytes();
  if (from.getEndedMs() != 0)
    x.outcome = read(from.getOutcome());
  return x;
}

void write(const exec_result& from, ExecResult::Builder to) {
  write(from.outcome, to.initOutcome());
  to.setStdout(bytes(from.out));
  to.setStderr(bytes(from.err));
  to.setStdoutBytes(from.out_bytes);
  to.setStderrBytes(from.err_bytes);
  to.setOomKills(from.oom_kills);
  to.setDurationMs(from.duration.count());
  to.setReplayed(from.replayed);
}

exec_result read(ExecResult::Reader from) {
  exec_result x;
  x.outcome = read(from.getOutcome());
  x.out = text(from.getStdout());
  x.err = text(from.getStderr());
  x.out_bytes = from.getStdoutBytes();
  x.err_bytes = from.getStderrBytes();
  x.oom_kills = from.getOomKills();
  x.duration = std::chrono::milliseconds{from.getDurationMs()};
  x.replayed = from.getReplayed();
  return x;
}

void write(const file_status& from, FileStatus::Builder to) {
  to.setType(static_cast<FileStatus::Type>(from.type));
  to.setMode(from.mode);
  to.setUid(from.uid);
  to.setGid(from.gid);
  to.setSize(from.size);
  to.setModifiedNs(from.modified_ns);
}

file_status read(FileStatus::Reader from) {
  file_status x;
  x.type = enumerator(from.getType(), file_type::other, file_type::other);
  x.mode = from.getMode();
  x.uid = from.getUid();
  x.gid = from.getGid();
  x.size = from.getSize();
  x.modified_ns = from.getModifiedNs();
  return x;
}

void write(const directory_entry& from, DirectoryEntry::Builder to) {
  to.setName(bytes(from.name));
  write(from.status, to.initStatus());
}

directory_entry read(DirectoryEntry::Reader from) {
  return {text(from.getName()), read(from.getStatus())};
}

void write(const tree_report& from, TreeReport::Builder to) {
  to.setEntries(from.entries);
  to.setBytes(from.bytes);
  to.setRefusedTotal(from.refused_total);
  auto list = to.initRefused(from.refused.size());
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setPath(bytes(from.refused[i].path));
    list[i].setWhy(from.refused[i].why.c_str());
  }
}

tree_report read(TreeReport::Reader from) {
  tree_report x;
  x.entries = from.getEntries();
  x.bytes = from.getBytes();
  x.refused_total = from.getRefusedTotal();
  for (auto each : from.getRefused())
    x.refused.push_back({text(each.getPath()), text(each.getWhy())});
  return x;
}

} // namespace dsec::wire
