#include "state/record_store.hpp"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <system_error>

namespace dsec {

namespace {

/// What a crash has to replay is bounded by the log, and the log by this: 1.7 s for 250 MB.
constexpr std::uint64_t log_bytes_max = 256ull << 20;
constexpr std::size_t write_buffer_bytes = 64u << 20;

rocksdb::Slice slice(std::string_view x) {
  return {x.data(), x.size()};
}

std::string_view view(const rocksdb::Slice& x) {
  return {x.data(), x.size()};
}

error store_error(const rocksdb::Status& status, std::string what) {
  auto code = errc::unavailable;
  if (status.IsCorruption())
    code = errc::corrupt;
  else if (status.IsNoSpace())
    code = errc::exhausted;
  return {code, std::move(what) + ": " + status.ToString()};
}

class rocks_values final : public key_values {
public:
  rocks_values(std::unique_ptr<rocksdb::DB> db, std::vector<rocksdb::ColumnFamilyHandle*> handles)
    : db_{std::move(db)},
      handles_{std::move(handles)} {}

  ~rocks_values() override {
    for (auto* x : handles_)
      db_->DestroyColumnFamilyHandle(x);
    db_->Close();
  }

  result<void> write(const std::vector<key_write>& writes, write_mode mode) override {
    rocksdb::WriteBatch batch;
    for (const auto& x : writes) {
      auto* in = handle(x.family);
      rocksdb::Status status;
      switch (x.what) {
      case key_write::kind::put:
        status = batch.Put(in, x.key, x.value);
        break;
      case key_write::kind::erase:
        status = batch.Delete(in, x.key);
        break;
      case key_write::kind::erase_range:
        status = batch.DeleteRange(in, x.key, x.value);
        break;
      }
      if (!status.ok())
        return store_error(status, fmt::format("add to batch of {}", to_string(x.family)));
    }
    rocksdb::WriteOptions durable;
    durable.sync = mode == write_mode::synced;
    if (auto status = db_->Write(durable, &batch); !status.ok())
      return store_error(status, fmt::format("commit {} writes", writes.size()));
    return {};
  }

  result<std::optional<std::string>> get(family in, std::string_view key) override {
    std::string value;
    auto status = db_->Get({}, handle(in), slice(key), &value);
    if (status.IsNotFound())
      return std::optional<std::string>{};
    if (!status.ok())
      return store_error(status, fmt::format("read from {}", to_string(in)));
    return std::optional{std::move(value)};
  }

  result<void>
  scan(family in, std::string_view prefix, std::string_view from, const visitor& visit) override {
    auto i = iterator(in);
    for (i->Seek(slice(std::max(prefix, from))); i->Valid() && view(i->key()).starts_with(prefix);
         i->Next()) {
      auto go = visit(view(i->key()), view(i->value()));
      if (!go)
        return go.error();
      if (*go == then::stop)
        break;
    }
    if (!i->status().ok())
      return store_error(i->status(), fmt::format("scan {}", to_string(in)));
    return {};
  }

  result<std::optional<std::string>> last_key(family in, std::string_view prefix) override {
    auto i = iterator(in);
    // The first key behind them may be there itself.
    auto after = after_prefix(std::string{prefix});
    i->SeekForPrev(after);
    if (i->Valid() && view(i->key()) == after)
      i->Prev();
    if (!i->status().ok())
      return store_error(i->status(), fmt::format("seek in {}", to_string(in)));
    if (!i->Valid() || !view(i->key()).starts_with(prefix))
      return std::optional<std::string>{};
    return std::optional{i->key().ToString()};
  }

private:
  /// For one pass over what is seldom read again.
  std::unique_ptr<rocksdb::Iterator> iterator(family in) const {
    rocksdb::ReadOptions once;
    once.fill_cache = false;
    return std::unique_ptr<rocksdb::Iterator>{db_->NewIterator(once, handle(in))};
  }

  /// `handles_` is in the order of `families`, with RocksDB's own default family last.
  rocksdb::ColumnFamilyHandle* handle(family x) const {
    return handles_[static_cast<std::size_t>(x)];
  }

  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

/// The process that holds a POSIX lock on `file`, or 0. Reads /proc/locks: opening and closing the
/// file here would drop the lock if it is this process's own.
int lock_holder(const std::filesystem::path& file) {
  struct stat status {};

  if (::stat(file.c_str(), &status) != 0)
    return 0;
  auto place =
    fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino);
  std::ifstream locks{"/proc/locks"};
  for (std::string line; std::getline(locks, line);) {
    int pid = 0;
    std::array<char, 64> at{};
    if (std::sscanf(line.c_str(), "%*d: POSIX %*s %*s %d %63s", &pid, at.data()) == 2
        && place == at.data())
      return pid;
  }
  return 0;
}

rocksdb::Options database_options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.max_total_wal_size = log_bytes_max;
  options.max_background_jobs = 2;
  // A torn tail was never acknowledged; damage before it must not pass for an earlier state.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.keep_log_file_num = 2;
  options.max_log_file_size = 4u << 20;
  return options;
}

} // namespace

result<std::unique_ptr<store>> open_rocks_store(const std::filesystem::path& directory) {
  auto what = fmt::format("open state {}", directory.string());
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure)
    return errno_error(failure.value(), what);

  rocksdb::ColumnFamilyOptions layout;
  layout.write_buffer_size = write_buffer_bytes;
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (auto x : families)
    descriptors.emplace_back(std::string{to_string(x)}, layout);
  descriptors.emplace_back(rocksdb::kDefaultColumnFamilyName, layout);

  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  auto status = rocksdb::DB::Open(rocksdb::DBOptions{database_options()}, directory.string(),
                                  descriptors, &handles, &opened);
  if (!status.ok()) {
    if (auto pid = lock_holder(directory / "LOCK"); status.IsIOError() && pid != 0)
      return error{errc::state_in_use, fmt::format("{}: process {} has it open", what, pid)};
    return store_error(status, what);
  }
  return make_record_store(
    std::make_unique<rocks_values>(std::unique_ptr<rocksdb::DB>{opened}, std::move(handles)));
}

} // namespace dsec
