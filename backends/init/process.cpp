#include "backends/init/process.hpp"

#include "backends/init/process_tree.hpp"
#include "backends/init/wire_error.hpp"

#include <chrono>

namespace dsec::init {

namespace {

/// Of argv, in listings.
constexpr std::size_t argv_bytes_told = 4 << 10;

/// What an outcome takes.
constexpr unsigned outcome_words = 64;

/// A killed process that does not go within this is stuck in the kernel; it is over anyway.
constexpr auto tree_patience = 10 * kj::SECONDS;

std::int64_t wall_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

/// Where a command's output goes: in this process, so it never waits.
class into_scroll_back final : public wire::ByteSink::Server {
public:
  explicit into_scroll_back(scroll_back& to) : to_{to} {}

  kj::Promise<void> write(WriteContext context) override {
    to_.append(context.getParams().getBytes());
    return kj::READY_NOW;
  }

  kj::Promise<void> end(EndContext) override {
    to_.end();
    return kj::READY_NOW;
  }

private:
  scroll_back& to_;
};

} // namespace

process_terms process_terms::read(wire::Init::SpawnParams::Reader from) {
  const auto terms = from.getTerms();
  process_terms x;
  x.name = terms.getName();
  x.terminal = terms.getTerminal();
  x.rows = terms.getRows();
  x.columns = terms.getColumns();
  x.first_input = string_of(from.getStdin());
  x.keep_input = from.getKeepInput() || x.terminal;
  std::size_t bytes = 0;
  for (auto word : from.getSpec().getArgv()) {
    bytes += word.size() + 1;
    if (bytes > argv_bytes_told) {
      x.argv.push_back("...");
      break;
    }
    x.argv.push_back(string_of(word));
  }
  return x;
}

process::process(command_surroundings around, std::uint64_t id, process_terms terms,
                 command_request request)
  : around_{around},
    id_{id},
    terms_{std::move(terms)},
    user_{request.user},
    started_ms_{wall_ms()},
    out_{request.spool_bytes},
    err_{request.spool_bytes},
    result_{outcome_words},
    end_{nullptr},
    ending_{nullptr},
    feeder_{nullptr} {
  auto pair = kj::newPromiseAndFulfiller<void>();
  tell_end_ = kj::mv(pair.fulfiller);
  end_ = pair.promise.fork();
  // Kept here, not there.
  request.spool_bytes = 0;
  request.has_stdin = terms_.keep_input || !terms_.first_input.empty();
  input_open_ = request.has_stdin;
  run_ = kj::refcounted<command>(around_, id_, std::move(request), command::manner::attended);
}

error process::impossible(const char* what, const char* why) const {
  return {errc::invalid_state, std::string(what) + " process " + std::to_string(id_) + ": " + why};
}

kj::Promise<result<void>> process::start(file_errands& files) {
  kj::Promise<result<identity>> who = nullptr;
  if (auto known = user_by_number(user_))
    who = result<identity>{*known};
  else
    who = resolve_user_inside(files, user_);
  return who.then([this, &files](result<identity>&& known) -> kj::Promise<result<void>> {
    if (!known)
      return result<void>{known.error()};
    if (!terms_.terminal)
      return begin(*known);
    return terminal::open(files, known->uid)
      .then([this, who = *known](result<kj::Own<terminal>>&& opened) -> kj::Promise<result<void>> {
        if (!opened)
          return result<void>{opened.error()};
        terminal_ = kj::mv(*opened);
        if (auto sized = terminal_->resize(terms_.rows, terms_.columns); !sized)
          return kj::mv(sized);
        auto ends = terminal_->ends();
        if (!ends)
          return result<void>{ends.error()};
        run_->use_terminal(kj::mv(*ends));
        return begin(who);
      });
  });
}

kj::Promise<result<void>> process::begin(const identity& who) {
  if (auto ok = run_->start(who); !ok)
    return kj::mv(ok);
  auto written = run_->attach(kj::heap<into_scroll_back>(out_), kj::heap<into_scroll_back>(err_));
  ending_ = run_->finished()
              .then([this, written = kj::mv(written)]() mutable {
                run_->cancel();
                return kj::mv(written);
              })
              .then([this]() -> kj::Promise<void> {
                const auto* group = run_->group();
                if (group == nullptr)
                  return kj::READY_NOW;
                return tree_gone(around_.port, around_.timer, *group, tree_patience);
              })
              .then([this] { finish(); })
              .eagerlyEvaluate([](kj::Exception&&) {});
  if (input_open_ && (!terms_.first_input.empty() || !terms_.keep_input)) {
    auto first =
      kj::heapArray<kj::byte>(reinterpret_cast<const kj::byte*>(terms_.first_input.data()),
                              terms_.first_input.size());
    terms_.first_input = {};
    input(kj::mv(first), !terms_.keep_input).detach([](kj::Exception&&) {});
  }
  return run_->started();
}

void process::follow() {
  if (!over_ && run_->ended())
    run_->cancel();
}

void process::finish() {
  out_.end();
  err_.end();
  input_open_ = false;
  terminal_ = nullptr;
  ended_ms_ = wall_ms();
  run_->fill(result_.initRoot<wire::ExecResult>());
  over_ = true;
  tell_end_->fulfill();
  kj::evalLater([self = kj::addRef(*this)]() mutable { self->tidy(); }).detach([](kj::Exception&&) {
  });
}

void process::tidy() {
  // Somebody outside of its tree may hold its output open; that is read until they let go.
  if (over_ && run_.get() != nullptr && run_->silent())
    run_ = nullptr;
}

void process::fill(wire::ExecResult::Builder to) const {
  const auto known =
    const_cast<capnp::MallocMessageBuilder&>(result_).getRoot<wire::ExecResult>().asReader();
  to.setOutcome(known.getOutcome());
  to.setOomKills(known.getOomKills());
  to.setDurationMs(known.getDurationMs());
  to.setStdoutBytes(out_.written());
  to.setStderrBytes(err_.written());
  out_.copy_kept(to.initStdout(static_cast<unsigned>(out_.written() - out_.oldest_kept())));
  err_.copy_kept(to.initStderr(static_cast<unsigned>(err_.written() - err_.oldest_kept())));
}

capnp::MessageSize process::answer_size() const {
  constexpr std::uint64_t fixed_words = 256;
  const auto output = out_.written() - out_.oldest_kept() + err_.written() - err_.oldest_kept();
  return {fixed_words + output / sizeof(capnp::word), 0};
}

void process::describe(wire::ProcessInfo::Builder to) const {
  to.setId(id_);
  to.setName(terms_.name.c_str());
  auto argv = to.initArgv(static_cast<unsigned>(terms_.argv.size()));
  for (unsigned i = 0; i < argv.size(); ++i)
    argv.set(i, data_of(terms_.argv[i]));
  to.setTerminal(terms_.terminal);
  to.setStartedMs(started_ms_);
  to.setEndedMs(ended_ms_);
  to.setOutBytes(out_.written());
  to.setErrBytes(err_.written());
  if (over_)
    to.setOutcome(const_cast<capnp::MallocMessageBuilder&>(result_)
                    .getRoot<wire::ExecResult>()
                    .asReader()
                    .getOutcome());
}

result<void> process::resize(std::uint16_t rows, std::uint16_t columns) {
  if (!terms_.terminal)
    return impossible("resize", "it has no terminal");
  if (rows == 0 || columns == 0)
    return error{errc::invalid_argument, "resize process " + std::to_string(id_) + ": "
                                           + std::to_string(rows) + " rows x "
                                           + std::to_string(columns) + " columns; at least 1 x 1"};
  if (terminal_.get() == nullptr)
    return impossible("resize", "it has ended");
  return terminal_->resize(rows, columns);
}

result<void> process::signal(int number, bool tree) {
  if (number < 1 || number > 64)
    return error{errc::invalid_argument,
                 "signal " + std::to_string(number) + ": must be between 1 and 64"};
  if (over_ || run_->ended())
    return impossible("signal", "it has ended");
  if (!tree || run_->group() == nullptr)
    return around_.reaper.signal(id_, number, reaper_link::whom::main_process);
  return signal_tree(*run_->group(), number);
}

void process::kill() {
  if (!over_)
    run_->cancel();
}

void process::told(const reaper::event& event) {
  if (over_)
    return;
  run_->told(event);
  follow();
}

void process::freeze_clock() {
  if (!over_)
    run_->freeze_clock();
}

void process::thaw_clock() {
  if (!over_)
    run_->thaw_clock();
}

void process::settle(wire::Outcome::Kind kind, const std::string& cause) {
  if (!over_)
    run_->settle(kind, cause);
}

} // namespace dsec::init
