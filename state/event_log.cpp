#include "state/event_log.hpp"

#include "state/codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dsec {

namespace {

using kind = key_write::kind;
using then = key_values::then;

/// How many go at once when a job has too many: one range for so many events keeps ranges few.
constexpr std::uint64_t trimmed_at_once = 1000;
static_assert(trimmed_at_once < events_kept_max);

error corrupt(const job_id& job, std::string_view cause) {
  return {errc::corrupt, fmt::format("read events of job {}: {}", job, cause)};
}

/// The event that stands under `key`, which must be its own.
result<job_event> decode_under(const job_id& job, std::string_view key, std::string_view value) {
  auto x = decode_event(value);
  if (!x)
    return corrupt(job, x.error().message);
  if (x->job != job || (key != event_key(job, x->cursor) && key != event_prefix(job)))
    return corrupt(job, "one stands under the key of another");
  return x;
}

} // namespace

result<event_log::span> event_log::look(const job_id& job) {
  auto prefix = event_prefix(job);
  auto last = bytes_.last_key(family::event, prefix);
  if (!last)
    return last.error();
  if (!*last)
    return span{};
  auto value = bytes_.get(family::event, **last);
  if (!value)
    return value.error();
  auto newest = decode_under(job, **last, value->value_or(std::string{}));
  if (!newest)
    return newest.error();
  span found{newest->cursor + 1, newest->cursor + 1};
  if (**last == prefix)
    return found;
  auto oldest = bytes_.scan(family::event, prefix, event_key(job, 0),
                            [&](std::string_view key, std::string_view bytes) -> result<then> {
                              auto x = decode_under(job, key, bytes);
                              if (!x)
                                return x.error();
                              found.oldest = x->cursor;
                              return then::stop;
                            });
  if (!oldest)
    return oldest.error();
  return found;
}

result<event_log::span> event_log::find(const job_id& job) {
  if (auto i = known_.find(job); i != known_.end())
    return i->second;
  auto found = look(job);
  // Jobs that have none are not remembered: any name may be asked for.
  if (found && found->next > 1)
    known_.emplace(job, *found);
  return found;
}

result<event_page> event_log::read(const job_id& job, std::uint64_t cursor, std::uint64_t count) {
  auto kept = find(job);
  if (!kept)
    return kept.error();
  event_page page;
  page.oldest = kept->oldest;
  page.next = std::clamp(cursor, kept->oldest, kept->next);
  if (count == 0 || page.next == kept->next)
    return page;
  auto read = bytes_.scan(family::event, event_prefix(job), event_key(job, page.next),
                          [&](std::string_view key, std::string_view bytes) -> result<then> {
                            auto x = decode_under(job, key, bytes);
                            if (!x)
                              return x.error();
                            if (x->cursor != page.next)
                              return corrupt(job, fmt::format("number {} is missing", page.next));
                            ++page.next;
                            page.events.push_back(*std::move(x));
                            return page.events.size() < count ? then::on : then::stop;
                          });
  if (!read)
    return read.error();
  return page;
}

result<event_log::span*> event_log::addition::find(const job_id& job) {
  auto i = changed_.find(job);
  if (i == changed_.end()) {
    auto kept = log_.find(job);
    if (!kept)
      return kept.error();
    i = changed_.emplace(job, *kept).first;
  }
  return &i->second;
}

result<void> event_log::addition::add(job_event x, std::vector<key_write>& writes) {
  auto kept = find(x.job);
  if (!kept)
    return kept.error();
  auto& [oldest, next] = **kept;
  x.cursor = next++;
  writes.push_back({kind::put, family::event, event_key(x.job, x.cursor), encode(x)});
  if (next - oldest <= events_kept_max)
    return {};
  auto first = std::exchange(oldest, oldest + trimmed_at_once);
  writes.push_back(
    {kind::erase_range, family::event, event_key(x.job, first), event_key(x.job, oldest)});
  return {};
}

result<void> event_log::addition::forget(const job_id& job, std::vector<key_write>& writes) {
  auto kept = find(job);
  if (!kept)
    return kept.error();
  auto& [oldest, next] = **kept;
  if (next == 1)
    return {};
  oldest = next;
  auto prefix = event_prefix(job);
  writes.push_back({kind::erase_range, family::event, prefix, after_prefix(prefix)});
  job_event last;
  last.job = job;
  last.cursor = next - 1;
  writes.push_back({kind::put, family::event, std::move(prefix), encode(last)});
  return {};
}

void event_log::addition::done() {
  for (auto& [job, kept] : changed_)
    if (kept.next > 1)
      log_.known_.insert_or_assign(job, kept);
}

} // namespace dsec
