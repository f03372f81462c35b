// How many records a second become durable, one sync each and in groups.

#include "bench/benches.hpp"
#include "bench/place.hpp"
#include "bench/testbed.hpp"
#include "state/store.hpp"

namespace dsec::bench {

namespace {

std::shared_ptr<const write_batch> one_record(unsigned number) {
  sandbox_record record;
  record.id = sandbox_id{"n00000000-" + std::to_string(number)};
  record.job = job_id{"bench"};
  record.index = number;
  record.environment.layers.resize(3, layer_digest{"sha256-" + std::string(64, '0')});
  record.is = sandbox_state::running;
  auto batch = std::make_shared<write_batch>();
  batch->sandboxes.push_back(std::move(record));
  return batch;
}

/// Records a second, `together` in one commit.
double rate(store& store, unsigned commits, unsigned together) {
  std::vector<std::shared_ptr<const write_batch>> batches;
  for (unsigned i = 0; i < together; ++i)
    batches.push_back(one_record(i));
  const stopwatch clock;
  for (unsigned i = 0; i < commits; ++i) {
    go_on();
    value_of(store.commit(batches), "commit");
  }
  return commits * together / clock.ms() * 1000;
}

} // namespace

report run_journal(const bench_options& options) {
  report found{"journal"};
  const place place;
  const auto store = value_of(open_rocks_store(place.folder("state")), "open the store");
  value_of(store->load(), "load");
  const unsigned commits = options.quick ? 40 : 400;
  const unsigned together = 64;
  const int rounds = 5;
  paired_series rates;
  rate(*store, commits / 10, together);
  for (int round = 0; round < rounds; ++round) {
    progress(fmt::format("journal: round {} of {}", round + 1, rounds));
    rates.add(rate(*store, commits, together), rate(*store, commits, 1));
  }
  found.metric("records_per_s_synced", rates.first().median());
  found.metric("records_per_s_single_sync", rates.second().median());
  found.metric("ratio_to_single_sync", rates.ratio());
  found.metric("records_per_sync", together);
  return found;
}

} // namespace dsec::bench
