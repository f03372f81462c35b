#include "sdk/cli/numbers.hpp"
#include "sdk/cli/options.hpp"
#include "sdk/cli/own_output.hpp"
#include "sdk/cli/shown.hpp"
#include "sdk/front/convert.hpp"
#include "state/format.hpp"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <unistd.h>
#include <utility>

namespace dsec {

namespace {

constexpr unsigned page_events = 1000;

struct events_request {
  std::string job;
  std::uint64_t from = 1;
  bool follow = false;
};

/// UTC.
std::string time_text(std::int64_t ms) {
  auto seconds = std::chrono::sys_seconds{std::chrono::seconds{ms / 1000}};
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), ms % 1000);
}

std::string outcome_text(const job_event& x) {
  if (!x.outcome)
    return x.kind == event_kind::exec_ended ? "did not run" : "unknown";
  std::string text{to_string(x.outcome->kind)};
  if (x.outcome->kind == outcome_kind::exited || x.outcome->kind == outcome_kind::signalled)
    text += fmt::format(" {}", x.outcome->code);
  if (!x.outcome->cause.empty())
    text += ": " + x.outcome->cause;
  return text;
}

std::string subject(const job_event& x) {
  return x.step ? fmt::format("step {}", *x.step) : std::to_string(x.exec);
}

std::string text_line(const job_event& x) {
  std::string what;
  switch (x.kind) {
  case event_kind::exec_started:
  case event_kind::process_started:
    what = " " + subject(x);
    break;
  case event_kind::exec_ended:
  case event_kind::process_ended:
    what = fmt::format(" {}  {}", subject(x), outcome_text(x));
    break;
  case event_kind::failed:
  case event_kind::stopped:
    what = fmt::format("  {}", x.cause);
    break;
  case event_kind::created:
  case event_kind::running:
  case event_kind::paused:
  case event_kind::reclaimed:
  case event_kind::resumed:
    break;
  }
  if (!x.detail.empty())
    what += ": " + x.detail;
  return fmt::format("{}  {}  {}  {}  {}{}\n", x.cursor, time_text(x.at_ms), x.sandbox, x.index,
                     x.kind, shown(what));
}

std::string json_line(const job_event& x) {
  nlohmann::json line{{"cursor", x.cursor}, {"at_ms", x.at_ms},
                      {"job", x.job.str()}, {"sandbox", x.sandbox.str()},
                      {"index", x.index},   {"kind", std::string{to_string(x.kind)}}};
  // As text: it needs more bits than a JSON number is sure to keep.
  if (x.exec != 0 || x.step)
    line["exec"] = std::to_string(x.exec);
  if (x.step)
    line["step"] = *x.step;
  if (x.outcome)
    line["outcome"] = {{"kind", std::string{to_string(x.outcome->kind)}},
                       {"code", x.outcome->code},
                       {"limit_bytes", x.outcome->limit_bytes},
                       {"peak_bytes", x.outcome->peak_bytes},
                       {"cause", x.outcome->cause}};
  if (x.cause != end_cause::none)
    line["cause"] = std::string{to_string(x.cause)};
  if (!x.detail.empty())
    line["detail"] = x.detail;
  return json_text(std::move(line)) + "\n";
}

/// One line an event; what was dropped before it could be read is said on standard error.
class event_lines {
public:
  event_lines(std::uint64_t from, bool json)
    : next_{std::max<std::uint64_t>(from, 1)},
      json_{json} {}

  std::string take(const job_event& x) {
    if (x.cursor > next_)
      complain("events {} to {} are kept no more", next_, x.cursor - 1);
    next_ = x.cursor + 1;
    return json_ ? json_line(x) : text_line(x);
  }

private:
  std::uint64_t next_;
  bool json_;
};

result<void> print_kept(client& at, wire::Job::Client job, std::uint64_t from, event_lines lines) {
  for (;;) {
    auto request = job.eventsRequest();
    request.setCursor(from);
    request.setCount(page_events);
    auto page = wait(at, request.send());
    if (!page)
      return page.error();
    if (page->getEvents().size() == 0)
      return {};
    std::string text;
    for (auto each : page->getEvents())
      text += lines.take(wire::read(each));
    if (auto told = print(text); !told)
      return told;
    from = page->getNext();
  }
}

class line_printer final : public wire::EventListener::Server {
public:
  line_printer(std::shared_ptr<own_output> to, event_lines lines)
    : to_{std::move(to)},
      lines_{lines} {}

  kj::Promise<void> event(EventContext context) override {
    return to_->write(lines_.take(wire::read(context.getParams().getEvent())));
  }

  kj::Promise<void> end(EndContext) override {
    return kj::READY_NOW;
  }

private:
  std::shared_ptr<own_output> to_;
  event_lines lines_;
};

/// Until the job is over, the runtime goes, or nobody reads what is printed.
result<void>
print_all(client& at, wire::Job::Client job, std::uint64_t from, const event_lines& lines) {
  auto out = std::make_shared<own_output>(STDOUT_FILENO);
  auto unread = kj::newPromiseAndFulfiller<result<void>>();
  out->watch(
    [&] { unread.fulfiller->fulfill(errno_error(out->failed(), "write standard output")); });
  auto request = job.followRequest();
  request.setCursor(from);
  request.setListener(kj::heap<line_printer>(out, lines));
  auto ended = request.send().then(
    [](auto&& answer) -> result<void> {
      if (error e; wire::failed(answer.getError(), e))
        return e;
      return {};
    },
    [](kj::Exception&& e) -> result<void> { return wire::broken("follow the events", e); });
  return ended.exclusiveJoin(kj::mv(unread.promise)).wait(at.io.waitScope);
}

} // namespace

void add_events_command(CLI::App& app, cli_options& options) {
  auto* events =
    app.add_subcommand("events", "What happened in a job, one line an event: its cursor, when, "
                                 "the sandbox and its index, what");
  auto wanted = std::make_shared<events_request>();
  events->add_option("job", wanted->job, "Its name")->required();
  add_whole(*events, "--from", wanted->from, "Cursor of the first",
            std::numeric_limits<std::uint64_t>::max(), 1)
    ->default_str("1");
  events->add_flag("--follow,-f", wanted->follow,
                   "Go on with those that come, until the job is closed and has told its last");
  events->add_flag("--json", options.json, "Each as a JSON object");
  events->callback([&options, wanted] {
    options.with_client([&](client& at) -> result<void> {
      auto request = at.dsec.jobRequest();
      request.setName(wanted->job.c_str());
      auto found = wait(at, request.send());
      if (!found)
        return found.error();
      event_lines lines{wanted->from, options.json};
      if (wanted->follow)
        return print_all(at, found->getJob(), wanted->from, lines);
      return print_kept(at, found->getJob(), wanted->from, lines);
    });
  });
}

} // namespace dsec
