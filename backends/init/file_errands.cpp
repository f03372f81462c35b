#include "backends/init/file_errands.hpp"

#include "backends/init/file_task.hpp"
#include "backends/init/replacement.hpp"
#include "backends/init/task_process.hpp"
#include "backends/init/tree_errand.hpp"

#include <sys/mman.h>

namespace dsec::init {

namespace {

/// Trees that are moved at once; a node asks for fewer.
constexpr unsigned trees_max = 8;

} // namespace

file_errands::file_errands(kj::UnixEventPort& port, kj::AutoCloseFd user_namespace,
                           kj::AutoCloseFd mount_namespace)
  : port_{port},
    user_namespace_{kj::mv(user_namespace)},
    mount_namespace_{kj::mv(mount_namespace)},
    graves_{kj::heap<task_graves>(port)} {}

file_errands::~file_errands() = default;

kj::Promise<result<file_answer>> file_errands::run(file_request request) {
  kj::AutoCloseFd memory;
  if (request.task == file_task::list)
    memory = kj::AutoCloseFd{::memfd_create("dsec-list", MFD_CLOEXEC)};
  auto task = task_process::start(port_, *graves_, [&](int socket) {
    serve_file_task(request, user_namespace_, mount_namespace_, memory, socket);
  });
  if (!task)
    return result<file_answer>{task.error()};
  auto& running = **task;
  return running.answer()
    .then([&running](result<file_answer>&& x) {
      running.said_all();
      return std::move(x);
    })
    .attach(kj::mv(*task));
}

kj::Promise<result<kj::Own<replacement>>> file_errands::replace(file_request request) {
  return replacement::begin(port_, *graves_, std::move(request), user_namespace_, mount_namespace_);
}

result<kj::Own<tree_errand>> file_errands::start_tree(tree_direction direction, std::string path) {
  if (*trees_ >= trees_max)
    return error{errc::exhausted, "tree '" + path + "': " + std::to_string(trees_max)
                                    + " trees are being moved, the limit is that"};
  return tree_errand::begin(
    port_, *graves_, {direction, std::move(path), user_namespace_, mount_namespace_}, trees_);
}

} // namespace dsec::init
