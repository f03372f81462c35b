#pragma once

#include "state/error.hpp"

#include <kj/async-unix.h>
#include <kj/io.h>
#include <sys/types.h>

#include <memory>
#include <string>

namespace dsec::init {

class replacement;
class task_graves;
class tree_errand;
enum class tree_direction : unsigned char;

enum class file_task : unsigned char {
  open_read,
  open_write, ///< Creates; what the file held is cut off.
  open_append,
  open_directory,
  status,        ///< Of the path itself, a final symbolic link not followed.
  list,          ///< Of an open directory.
  open_terminal, ///< A new one; the answer's file is its outer end.
};

struct file_request {
  file_task task = file_task::open_read;
  std::string path; ///< Absolute, of the sandbox's own tree. Not for `list`.
  mode_t permissions = 0;
  bool make_parents = false;
  int directory = -1; ///< For `list`.
  uid_t owner = 0;    ///< For `open_terminal`.
};

/// What lstat says, with owners as seen inside the sandbox. `number` is an errno value, or 0.
struct file_reading {
  int number = 0;
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
};

struct file_answer {
  file_reading status;
  kj::AutoCloseFd file; ///< The opened file; for `list`, a memory file of entries.
};

/// In a listing: followed by the name, without a NUL.
struct file_entry {
  file_reading status;
  std::uint32_t name_bytes = 0;
};

/// Does file operations as root of the sandbox, never as ourselves: each runs in a forked process
/// that enters the sandbox's user and mount namespaces and resolves beneath its root. That process
/// may block on a stalled store; dsec-init does not.
class file_errands {
public:
  /// Namespace files of PID 1. Opened before the lockdown: PID 1 cannot be looked into afterwards.
  file_errands(kj::UnixEventPort& port, kj::AutoCloseFd user_namespace,
               kj::AutoCloseFd mount_namespace);
  ~file_errands();

  /// Fails only if no process could be forked or it died; what the task met is in the answer.
  kj::Promise<result<file_answer>> run(file_request request);

  /// A new file for the place of `request.path`, with `permissions` and `make_parents`.
  kj::Promise<result<kj::Own<replacement>>> replace(file_request request);

  /// Begins to unpack below, or to pack, `path`. exhausted: too many are under way.
  result<kj::Own<tree_errand>> start_tree(tree_direction direction, std::string path);

private:
  kj::UnixEventPort& port_;
  kj::AutoCloseFd user_namespace_, mount_namespace_;
  kj::Own<task_graves> graves_;
  std::shared_ptr<unsigned> trees_ = std::make_shared<unsigned>(0); ///< Under way.
};

} // namespace dsec::init
