#include "actors/errors.hpp"
#include "actors/sandbox_parts.hpp"

#include <caf/send.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace dsec::sandbox_parts {

namespace {

void arm(self_pointer self) {
  const auto& data = self->state;
  self->delayed_send(self, data.due.front().first - self->clock().now(), answers_due{});
}

template <class Promise>
void refuse_silent(const sandbox_data& data, Promise& promise, std::string_view what) {
  promise.deliver(to_caf(
    {errc::unavailable, fmt::format("{} of sandbox {}: its supervisor did not answer within {} ms",
                                    what, data.record.id, data.options.backend_timeout.count())}));
}

/// Trees that are moved at once, of one sandbox; the next ones wait.
constexpr std::ptrdiff_t trees_max = 4;

bool is_tree(const file_request& x) {
  return std::holds_alternative<tree_write>(x) || std::holds_alternative<tree_read>(x);
}

/// The request as the backend gets it: what flows is watched.
file_request watched(const file_request& x, const std::shared_ptr<stream_watch>& watch) {
  auto out = x;
  if (auto* in = std::get_if<tree_write>(&out))
    in->archive = std::make_shared<watched_source>(std::move(in->archive), watch);
  if (auto* from = std::get_if<tree_read>(&out))
    from->archive = std::make_shared<watched_archive>(std::move(from->archive), watch);
  return out;
}

/// A tree takes as long as it takes, for as long as it gets on.
bool gets_on(const sandbox_data& data, std::uint64_t ticket) {
  auto at = data.files.find(ticket);
  return at != data.files.end() && at->second.watch && at->second.watch->alive();
}

} // namespace

void expect(self_pointer self, std::uint64_t ticket) {
  auto& data = self->state;
  data.due.emplace_back(self->clock().now() + data.options.backend_timeout, ticket);
  if (data.due.size() == 1)
    arm(self);
}

caf::result<file_reply_ptr> request_file(self_pointer self, const file_message& x) {
  auto& data = self->state;
  if (data.files.size() >= data.options.pending_max)
    return to_caf(
      {errc::exhausted, fmt::format("sandbox {}: {} file operations are pending, the limit is {}",
                                    data.record.id, data.files.size(), data.options.pending_max)});
  if (auto why = demand_running(self))
    return to_caf(*why);
  auto promise = self->make_response_promise<file_reply_ptr>();
  data.files[data.next_ticket++] = {false, x.request, promise};
  converge(self);
  return promise;
}

caf::result<sandbox_stats> request_stats(self_pointer self) {
  auto& data = self->state;
  if (auto why = ended(data))
    return to_caf(*why);
  if (data.record.is == sandbox_state::pending || data.record.is == sandbox_state::starting)
    return to_caf({errc::invalid_state,
                   fmt::format("stats of sandbox {}: it has not started", data.record.id)});
  auto promise = self->make_response_promise<sandbox_stats>();
  auto ticket = data.next_ticket++;
  data.stats.emplace(ticket, promise);
  expect(self, ticket);
  data.services.kernel.stats(data.record.id,
                             [to = sandbox_inside{self}, ticket](result<sandbox_stats> x) {
                               stats_done done{ticket, {}, {}};
                               if (x)
                                 done.stats = *x;
                               else
                                 done.failure = x.error();
                               caf::anon_send(to, std::move(done));
                             });
  return promise;
}

void on_file_done(self_pointer self, const file_done& x) {
  auto& data = self->state;
  auto at = data.files.extract(x.ticket);
  if (at.empty())
    return;
  if (*x.outcome)
    at.mapped().answer.deliver(file_reply_ptr{x.outcome, &**x.outcome});
  else if (x.outcome->error().code == errc::unavailable)
    answer_lost(self, at.mapped().answer, x.outcome->error());
  else
    at.mapped().answer.deliver(to_caf(x.outcome->error()));
  // A tree may have waited for this one's end.
  if (files_wait(data))
    converge(self);
  watch_idle(self);
}

void on_stats_done(self_pointer self, const stats_done& x) {
  auto at = self->state.stats.extract(x.ticket);
  if (at.empty())
    return;
  if (x.failure && x.failure->code == errc::unavailable)
    answer_lost(self, at.mapped(), *x.failure);
  else if (x.failure)
    at.mapped().deliver(to_caf(*x.failure));
  else
    at.mapped().deliver(x.stats);
}

void on_answers_due(self_pointer self) {
  auto& data = self->state;
  for (auto now = self->clock().now(); !data.due.empty() && data.due.front().first <= now;
       data.due.pop_front()) {
    auto ticket = data.due.front().second;
    if (gets_on(data, ticket)) {
      expect(self, ticket);
      continue;
    }
    if (auto file = data.files.extract(ticket); !file.empty()) {
      if (file.mapped().watch)
        file.mapped().watch->cut();
      refuse_silent(data, file.mapped().answer, "file operation (it may have been done)");
    }
    if (auto stats = data.stats.extract(ticket); !stats.empty())
      refuse_silent(data, stats.mapped(), "stats");
    on_process_overdue(self, ticket);
  }
  if (!data.due.empty())
    arm(self);
  watch_idle(self);
}

bool files_wait(const sandbox_data& data) {
  return std::ranges::any_of(data.files, [](const auto& x) { return !x.second.started; });
}

void refuse_waiting_files(self_pointer self, const error& cause) {
  auto& files = self->state.files;
  for (auto at = files.begin(); at != files.end();) {
    auto next = std::next(at);
    if (!at->second.started)
      files.extract(at).mapped().answer.deliver(to_caf(cause));
    at = next;
  }
}

void start_files(self_pointer self) {
  auto& data = self->state;
  auto trees =
    std::ranges::count_if(data.files, [](const auto& x) { return x.second.watch != nullptr; });
  for (auto& [ticket, x] : data.files) {
    if (x.started || (is_tree(*x.request) && trees >= trees_max))
      continue;
    x.started = true;
    if (is_tree(*x.request)) {
      ++trees;
      x.watch = std::make_shared<stream_watch>();
    }
    expect(self, ticket);
    data.services.kernel.file(
      data.record.id, x.watch ? watched(*x.request, x.watch) : *x.request,
      [to = sandbox_inside{self}, at = ticket](result<file_reply> reply) {
        caf::anon_send(to,
                       file_done{at, std::make_shared<const result<file_reply>>(std::move(reply))});
      });
  }
}

void finish_files(self_pointer self) {
  auto& data = self->state;
  auto over = ended(data);
  if (!over)
    return;
  for (auto& [ticket, x] : std::exchange(data.files, {})) {
    if (x.watch)
      x.watch->cut();
    x.answer.deliver(to_caf(*over));
  }
  for (auto& [ticket, answer] : std::exchange(data.stats, {}))
    answer.deliver(to_caf(*over));
}

} // namespace dsec::sandbox_parts
