// What stands in a request, checked before anything is made for it; and what stands in a result.

#include "backends/init/command.hpp"
#include "backends/init/longest.hpp"
#include "backends/init/wire_error.hpp"

#include <algorithm>

namespace dsec::init {

namespace {

// The kernel's own limits (MAX_ARG_STRLEN, and a quarter of an 8 MiB stack).
constexpr std::size_t element_bytes_max = 128 << 10;
constexpr std::size_t block_bytes_max = 2 << 20;
constexpr std::uint64_t spool_bytes_max = 8 << 20;

error too_large(const std::string& field, std::size_t is, std::size_t limit) {
  return {errc::invalid_argument, field + " is " + std::to_string(is) + " bytes, at most "
                                    + std::to_string(limit) + " are possible"};
}

result<void> append(std::string& block, const std::string& field, capnp::Data::Reader text) {
  if (std::find(text.begin(), text.end(), 0) != text.end())
    return error{errc::invalid_argument, field + " holds a NUL byte"};
  if (text.size() >= element_bytes_max)
    return too_large(field, text.size(), element_bytes_max - 1);
  block.append(reinterpret_cast<const char*>(text.begin()), text.size());
  block.push_back('\0');
  if (block.size() > block_bytes_max)
    return too_large("argv and env together", block.size(), block_bytes_max);
  return {};
}

} // namespace

result<command_request> command_request::read(wire::ExecSpec::Reader spec) {
  command_request r;
  const auto argv = spec.getArgv();
  const auto env = spec.getEnv();
  if (argv.size() == 0)
    return error{errc::invalid_argument, "argv is empty, it needs at least one element"};
  r.program = string_of(argv[0]);
  r.cwd = string_of(spec.getCwd());
  r.user = spec.getUser();
  if (r.cwd.empty() || r.cwd[0] != '/')
    return error{errc::invalid_argument, "cwd '" + r.cwd + "' is not an absolute path"};
  if (auto ok = append(r.block, "cwd", spec.getCwd()); !ok)
    return ok.error();
  for (unsigned i = 0; i < argv.size(); ++i)
    if (auto ok = append(r.block, "argv[" + std::to_string(i) + "]", argv[i]); !ok)
      return ok.error();
  for (unsigned i = 0; i < env.size(); ++i)
    if (auto ok = append(r.block, "env[" + std::to_string(i) + "]", env[i]); !ok)
      return ok.error();
  if (spec.getSpoolBytes() > spool_bytes_max)
    return too_large("spoolBytes", spec.getSpoolBytes(), spool_bytes_max);
  r.arguments = argv.size();
  r.variables = env.size();
  r.deadline_ms = std::min<std::uint64_t>(spec.getDeadlineMs(), longest_ms);
  r.spool_bytes = spec.getSpoolBytes();
  r.has_stdin = spec.getHasStdin();
  return r;
}

void command::fill(wire::ExecResult::Builder to) const {
  told_ = true;
  auto outcome = to.initOutcome();
  outcome.setKind(kind_);
  outcome.setCode(code_);
  outcome.setLimitBytes(limit_bytes_);
  outcome.setPeakBytes(peak_bytes_);
  outcome.setCause(cause_.c_str());
  if (out_ && err_) {
    to.setStdout(data_of(out_->kept()));
    to.setStderr(data_of(err_->kept()));
    to.setStdoutBytes(out_->bytes());
    to.setStderrBytes(err_->bytes());
  }
  to.setOomKills(oom_kills_);
  to.setDurationMs(static_cast<std::uint64_t>(duration_.count()));
}

capnp::MessageSize command::answer_size() const {
  constexpr std::uint64_t fixed_words = 64;
  const auto output = out_ && err_ ? out_->kept().size() + err_->kept().size() : 0;
  return {fixed_words + (output + cause_.size()) / sizeof(capnp::word), 0};
}

} // namespace dsec::init
