#include "backends/init/tree_errand.hpp"

#include "backends/init/tree_task.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace dsec::init {

namespace {

constexpr int pipe_bytes = 256 << 10;
constexpr std::size_t piece_bytes = 64 << 10;

} // namespace

result<kj::Own<tree_errand>> tree_errand::begin(kj::UnixEventPort& port, task_graves& graves,
                                                const tree_request& request,
                                                std::shared_ptr<unsigned> under_way) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return errno_error(errno, "move a tree: make its pipe");
  kj::AutoCloseFd reading{ends[0]}, writing{ends[1]};
  // A smaller one is slower.
  (void)::fcntl(reading, F_SETPIPE_SZ, pipe_bytes);
  kj::AutoCloseFd memory{::memfd_create("dsec-tree", MFD_CLOEXEC)};
  if (memory.get() < 0)
    return errno_error(errno, "move a tree: make its report");
  const bool in = request.direction == tree_direction::unpack;
  auto& theirs = in ? reading : writing;
  auto& ours = in ? writing : reading;
  auto task = task_process::start(port, graves, [&](int socket) {
    serve_tree_task(request, theirs, memory, socket);
  });
  if (!task)
    return task.error();
  ::fcntl(ours, F_SETFL, O_NONBLOCK);
  return kj::refcounted<tree_errand>(port, kj::mv(*task), kj::mv(memory), kj::mv(ours),
                                     request.direction, std::move(under_way));
}

tree_errand::tree_errand(kj::UnixEventPort& port, kj::Own<task_process> task,
                         kj::AutoCloseFd memory, kj::AutoCloseFd pipe, tree_direction direction,
                         std::shared_ptr<unsigned> under_way)
  : port_{port},
    task_{kj::mv(task)},
    memory_{kj::mv(memory)},
    under_way_{std::move(under_way)},
    outcome_{nullptr} {
  ++*under_way_;
  if (direction == tree_direction::unpack)
    in_ = kj::refcounted<input_pipe>(port, kj::mv(pipe));
  else
    out_ = kj::mv(pipe);
  outcome_ = task_->answer()
               .then([this](result<file_answer>&& told) {
                 task_->said_all();
                 return read_outcome(told);
               })
               .fork();
}

tree_errand::~tree_errand() noexcept {
  // A write that waits is told.
  if (in_)
    in_->close();
  --*under_way_;
}

kj::Promise<kj::Array<kj::byte>> tree_errand::read() {
  auto piece = kj::heapArray<kj::byte>(piece_bytes);
  for (;;) {
    const ssize_t n = ::read(out_, piece.begin(), piece.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN) {
      if (!observer_)
        observer_ =
          kj::heap<kj::UnixEventPort::FdObserver>(port_, out_.get(),
                                                  kj::UnixEventPort::FdObserver::OBSERVE_READ);
      return observer_->whenBecomesReadable().then([this] { return read(); });
    }
    // A pipe that fails otherwise has no more bytes either; the outcome says what happened.
    return kj::heapArray<kj::byte>(piece.slice(0, static_cast<std::size_t>(n < 0 ? 0 : n)));
  }
}

kj::Promise<result<tree_report>> tree_errand::finished() {
  return outcome_.addBranch().attach(kj::addRef(*this));
}

result<tree_report> tree_errand::read_outcome(const result<file_answer>& told) const {
  if (!told)
    return error{told.error().code, "move a tree: " + told.error().message};

  struct stat s {};

  ::fstat(memory_, &s);
  std::string text(static_cast<std::size_t>(s.st_size), '\0');
  const ssize_t n = ::pread(memory_, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return read_tree_outcome(text);
}

} // namespace dsec::init
