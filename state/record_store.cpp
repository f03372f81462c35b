#include "state/record_store.hpp"

#include "state/codec.hpp"
#include "state/event_log.hpp"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

namespace dsec {

namespace {

using kind = key_write::kind;
using write_mode = key_values::write_mode;

error at_key(const error& e, family in, std::string_view name) {
  return {e.code, fmt::format("{} of {} {}", e.message, to_string(in), name)};
}

/// Turns records into key writes. Remembers what earlier batches of the same commit say, because
/// the bytes below do not show it yet.
class write_builder {
public:
  write_builder(key_values& bytes, event_log& events) : bytes_{bytes}, events_{events} {}

  result<void> add(const write_batch& batch) {
    auto before = writes_.size();
    for (const auto& x : batch.jobs)
      put(family::job, job_key(x.id), encode(x));
    for (const auto& x : batch.sandboxes)
      if (auto ok = add(x); !ok)
        return ok;
    for (const auto& x : batch.steps)
      if (auto ok = add(x); !ok)
        return ok;
    for (const auto& [sandbox, step] : batch.refused_steps)
      if (auto ok = refuse(sandbox, step); !ok)
        return ok;
    if (!batch.meta.empty())
      put(family::meta, meta_key(), encode(batch.meta.back()));
    for (const auto& x : batch.forgotten)
      if (auto ok = forget(x); !ok)
        return ok;
    if (writes_.size() > before || !batch.forgotten_jobs.empty())
      mode_ = write_mode::synced;
    for (const auto& x : batch.events)
      if (auto ok = events_.add(x, writes_); !ok)
        return ok;
    for (const auto& x : batch.forgotten_jobs)
      if (auto ok = events_.forget(x, writes_); !ok)
        return ok;
    return {};
  }

  /// All in one write.
  result<void> write() {
    if (writes_.empty())
      return {};
    auto done = bytes_.write(writes_, mode_);
    if (done)
      events_.done();
    return done;
  }

private:
  result<void> add(const sandbox_record& x) {
    auto key = sandbox_key(x.id);
    if (!key)
      return key.error();
    put(family::sandbox, *std::move(key), encode(x));
    if (x.idempotency_key.empty())
      return {};
    auto entry = idempotency_key(x.job, x.idempotency_key);
    put(family::idempotency, entry, x.id.str());
    entries_[x.id] = std::move(entry);
    return {};
  }

  result<void> add(const step_record& x) {
    auto key = step_key(x.sandbox, x.step);
    if (!key)
      return key.error();
    put(family::trajectory, *std::move(key), encode(x));
    auto output = encode_output(x);
    auto place = *output_key(x.sandbox, x.step);
    if (output.empty())
      writes_.push_back({kind::erase, family::trajectory, std::move(place), {}});
    else
      put(family::trajectory, std::move(place), std::move(output));
    return {};
  }

  result<void> refuse(const sandbox_id& id, std::uint64_t step) {
    auto key = step_key(id, step);
    if (!key)
      return key.error();
    writes_.push_back({kind::erase, family::trajectory, *std::move(key), {}});
    writes_.push_back({kind::erase, family::trajectory, *output_key(id, step), {}});
    return {};
  }

  result<void> forget(const sandbox_id& id) {
    auto key = sandbox_key(id);
    if (!key)
      return key.error();
    auto entry = entry_of(id, *key);
    if (!entry)
      return entry.error();
    if (!entry->empty())
      writes_.push_back({kind::erase, family::idempotency, *std::move(entry), {}});
    for (auto prefix : {*step_prefix(id), *output_prefix(id)})
      writes_.push_back({kind::erase_range, family::trajectory, prefix, after_prefix(prefix)});
    writes_.push_back({kind::erase, family::sandbox, *std::move(key), {}});
    entries_.erase(id);
    return {};
  }

  /// The idempotency entry that leads to a sandbox; empty if there is none.
  result<std::string> entry_of(const sandbox_id& id, const std::string& key) {
    if (auto i = entries_.find(id); i != entries_.end())
      return i->second;
    auto stored = bytes_.get(family::sandbox, key);
    if (!stored)
      return stored.error();
    if (!*stored)
      return std::string{};
    auto record = decode_sandbox(**stored);
    if (!record)
      return at_key(record.error(), family::sandbox, id.str());
    if (record->idempotency_key.empty())
      return std::string{};
    return idempotency_key(record->job, record->idempotency_key);
  }

  void put(family in, std::string key, std::string value) {
    writes_.push_back({kind::put, in, std::move(key), std::move(value)});
  }

  key_values& bytes_;
  event_log::addition events_;
  std::vector<key_write> writes_;
  write_mode mode_ = write_mode::written;
  std::unordered_map<sandbox_id, std::string> entries_;
};

class record_store final : public store {
public:
  explicit record_store(std::unique_ptr<key_values> bytes) : bytes_{std::move(bytes)} {}

  result<loaded_state> load(steps_of wanted) override {
    loaded_state out;
    auto meta = bytes_->get(family::meta, meta_key());
    if (!meta)
      return meta.error();
    if (*meta) {
      auto record = decode_meta(**meta);
      if (!record)
        return record.error();
      out.meta = *std::move(record);
    }
    auto own_job_key = [](const job_record& x) {
      return result<std::string>{job_key(x.id)};
    };
    if (auto ok = scan(family::job, "", out.jobs, decode_job, own_job_key); !ok)
      return ok.error();
    auto own_sandbox_key = [](const sandbox_record& x) {
      return sandbox_key(x.id);
    };
    if (auto ok = scan(family::sandbox, "", out.sandboxes, decode_sandbox, own_sandbox_key); !ok)
      return ok.error();
    if (auto ok = load_steps(wanted, out); !ok)
      return ok.error();
    return out;
  }

  result<void> commit(const std::vector<std::shared_ptr<const write_batch>>& batches) override {
    write_builder builder{*bytes_, events_};
    for (const auto& x : batches)
      if (auto ok = builder.add(*x); !ok)
        return ok;
    return builder.write();
  }

  result<step_record> step(const sandbox_id& sandbox, std::uint64_t step) override {
    auto name = [&] {
      return fmt::format("{} step {}", sandbox, step);
    };
    auto key = step_key(sandbox, step);
    if (!key)
      return key.error();
    auto stored = bytes_->get(family::trajectory, *key);
    if (!stored)
      return stored.error();
    if (!*stored)
      return error{errc::not_found, fmt::format("read {}: it was never begun", name())};
    auto record = decode_step(**stored);
    if (!record)
      return at_key(record.error(), family::trajectory, name());
    if (!record->result)
      return record;
    auto output = bytes_->get(family::trajectory, *output_key(sandbox, step));
    if (!output)
      return output.error();
    if (*output)
      if (auto ok = decode_output(**output, *record); !ok)
        return at_key(ok.error(), family::trajectory, name());
    return record;
  }

  result<sandbox_history> history(const sandbox_id& sandbox) override {
    auto key = sandbox_key(sandbox);
    if (!key)
      return key.error();
    auto stored = bytes_->get(family::sandbox, *key);
    if (!stored)
      return stored.error();
    if (!*stored)
      return error{errc::not_found, fmt::format("read sandbox {}: it is not known", sandbox)};
    auto record = decode_sandbox(**stored);
    if (!record)
      return at_key(record.error(), family::sandbox, sandbox.str());
    sandbox_history all{*std::move(record), {}};
    if (auto ok = scan_steps(*step_prefix(sandbox), all.steps); !ok)
      return ok.error();
    return all;
  }

  result<job_record> job(const job_id& id) override {
    auto stored = bytes_->get(family::job, job_key(id));
    if (!stored)
      return stored.error();
    if (!*stored)
      return error{errc::not_found, fmt::format("read job {}: there is none of that name", id)};
    auto record = decode_job(**stored);
    if (!record)
      return at_key(record.error(), family::job, id.str());
    return record;
  }

  result<event_page> events(const job_id& job, std::uint64_t cursor, std::uint64_t count) override {
    return events_.read(job, cursor, count);
  }

private:
  static result<std::string> own_step_key(const step_record& x) {
    return step_key(x.sandbox, x.step);
  }

  result<void> scan_steps(std::string_view prefix, std::vector<step_record>& out) {
    return scan(family::trajectory, prefix, out, decode_step, own_step_key);
  }

  result<void> load_steps(steps_of wanted, loaded_state& out) {
    if (wanted == steps_of::all)
      return scan_steps(step_prefix(), out.steps);
    for (const auto& x : out.sandboxes)
      if (x.is == sandbox_state::terminated)
        out.steps_left_out.emplace(x.id, 0);
    return visit(family::trajectory, step_prefix(), decode_step, own_step_key,
                 [&](step_record&& x) {
                   auto ended = out.steps_left_out.find(x.sandbox);
                   if (ended == out.steps_left_out.end())
                     out.steps.push_back(std::move(x));
                   else
                     ended->second += x.result.has_value();
                 });
  }

  template <class Record, class Decode, class Key>
  result<void>
  scan(family in, std::string_view prefix, std::vector<Record>& out, Decode decode, Key own_key) {
    return visit(in, prefix, decode, own_key, [&](Record&& x) { out.push_back(std::move(x)); });
  }

  template <class Decode, class Key, class Take>
  result<void> visit(family in, std::string_view prefix, Decode decode, Key own_key, Take take) {
    using then = key_values::then;
    std::size_t number = 0;
    return bytes_->scan(
      in, prefix, prefix, [&](std::string_view key, std::string_view value) -> result<then> {
        auto record = decode(value);
        if (!record)
          return at_key(record.error(), in, fmt::format("number {}", number));
        auto expected = own_key(*record);
        if (!expected || *expected != key)
          return error{errc::corrupt,
                       fmt::format("load {} number {}: it stands under the key of another",
                                   to_string(in), number)};
        ++number;
        take(*std::move(record));
        return then::on;
      });
  }

  std::unique_ptr<key_values> bytes_;
  event_log events_{*bytes_};
};

} // namespace

std::string_view to_string(steps_of x) {
  switch (x) {
  case steps_of::all:
    return "all";
  case steps_of::live:
    return "live";
  }
  return "unknown";
}

std::unique_ptr<store> make_record_store(std::unique_ptr<key_values> bytes) {
  return std::make_unique<record_store>(std::move(bytes));
}

} // namespace dsec
