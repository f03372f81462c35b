#include "backends/init/init_server.hpp"
#include "backends/init/wire_error.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace dsec::init {

namespace {

constexpr std::size_t call_bytes_max = 1 << 20;

class file_server final : public wire::File::Server {
public:
  file_server(file_errands& files, kj::AutoCloseFd file, bool directory, bool append,
              kj::Own<admission> a)
    : files_{files},
      file_{kj::mv(file)},
      directory_{directory},
      admission_{kj::mv(a)} {
    struct stat s {};

    if (append && ::fstat(file_, &s) == 0)
      end_ = s.st_size;
  }

  kj::Promise<void> read(ReadContext context) override {
    admission_->check();
    const auto params = context.getParams();
    auto answer = context.getResults();

    struct stat s {};

    if (directory_ || ::fstat(file_, &s) != 0) {
      fill(answer.initError(), {errc::invalid_argument, "read: opened as a directory"});
      return kj::READY_NOW;
    }
    const auto size = static_cast<std::uint64_t>(s.st_size);
    const auto offset = params.getOffset();
    answer.setSize(size);
    if (offset >= size)
      return kj::READY_NOW;
    const auto want = std::min<std::uint64_t>({params.getBytes(), call_bytes_max, size - offset});
    auto buffer = kj::heapArray<kj::byte>(want);
    const ssize_t n = ::pread(file_, buffer.begin(), want, static_cast<off_t>(offset));
    if (n < 0)
      fill(answer.initError(), errno_error(errno, "read at " + std::to_string(offset)));
    else
      answer.setBytes(buffer.slice(0, static_cast<std::size_t>(n)));
    return kj::READY_NOW;
  }

  kj::Promise<void> write(WriteContext context) override {
    admission_->check();
    const auto bytes = context.getParams().getBytes();
    auto done = directory_
                  ? result<void>{error{errc::invalid_argument, "write: opened as a directory"}}
                  : append_to(file_, end_, bytes);
    if (!done)
      fill(context.getResults().initError(), done.error());
    return kj::READY_NOW;
  }

  kj::Promise<void> list(ListContext context) override {
    admission_->check();
    if (!directory_) {
      fill(context.getResults().initError(), {errc::invalid_argument, "list: not a directory"});
      return kj::READY_NOW;
    }
    file_request request;
    request.task = file_task::list;
    request.directory = file_;
    return files_.run(std::move(request)).then([context](result<file_answer>&& done) mutable {
      auto answer = context.getResults();
      if (!done)
        return fill(answer.initError(), done.error());
      if (done->status.number == EMSGSIZE)
        return fill(answer.initError(),
                    {errc::exhausted, "list: the directory has more than 32 MiB of entries"});
      if (done->status.number != 0)
        return fill(answer.initError(), errno_error(done->status.number, "list"));
      fill_entries(answer, done->file);
    });
  }

private:
  struct found {
    file_reading status;
    std::string name;
  };

  static void fill_entries(wire::File::ListResults::Builder answer, int memory) {
    struct stat s {};

    ::fstat(memory, &s);
    std::string text(static_cast<std::size_t>(s.st_size), '\0');
    const ssize_t n = ::pread(memory, text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    std::vector<found> all;
    for (std::size_t at = 0; at + sizeof(file_entry) <= text.size();) {
      file_entry entry;
      std::memcpy(&entry, text.data() + at, sizeof entry);
      at += sizeof entry;
      all.push_back({entry.status, text.substr(at, entry.name_bytes)});
      at += entry.name_bytes;
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    auto entries = answer.initEntries(static_cast<unsigned>(all.size()));
    for (unsigned i = 0; i < all.size(); ++i) {
      entries[i].setName(data_of(all[i].name));
      fill_status(entries[i].initStatus(), all[i].status);
    }
  }

  file_errands& files_;
  kj::AutoCloseFd file_;
  bool directory_;
  off_t end_ = 0;
  kj::Own<admission> admission_;
};

} // namespace

result<void> append_to(int file, off_t& end, capnp::Data::Reader bytes) {
  if (bytes.size() > call_bytes_max)
    return error{errc::invalid_argument, "write of " + std::to_string(bytes.size())
                                           + " bytes: at most " + std::to_string(call_bytes_max)
                                           + " bytes a call"};
  while (bytes.size() > 0) {
    const ssize_t n = ::pwrite(file, bytes.begin(), bytes.size(), end);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return errno_error(n < 0 ? errno : ENOSPC, "write at " + std::to_string(end));
    end += n;
    bytes = bytes.slice(static_cast<std::size_t>(n), bytes.size());
  }
  return {};
}

wire::File::Client make_file_server(file_errands& files, kj::AutoCloseFd file, bool directory,
                                    bool append, kj::Own<admission> admitted) {
  return kj::heap<file_server>(files, kj::mv(file), directory, append, kj::mv(admitted));
}

} // namespace dsec::init
