#pragma once

#include "backends/init/input_pipe.hpp"
#include "backends/init/task_process.hpp"
#include "state/file.hpp"

#include <kj/async-unix.h>
#include <kj/io.h>
#include <kj/refcount.h>

#include <memory>
#include <string>

namespace dsec::init {

enum class tree_direction : unsigned char { unpack, pack };

struct tree_request {
  tree_direction direction = tree_direction::unpack;
  std::string path; ///< Absolute, of the sandbox's own tree.
  int user_namespace = -1;
  int mount_namespace = -1;
};

/// A tree on its way into or out of the sandbox: a process inside it does the work, a pipe carries
/// the archive. It ends with this object. A pause of the sandbox does not stop it: it is none of
/// the payload, and touches files only.
class tree_errand : public kj::Refcounted {
public:
  /// `under_way` counts these.
  static result<kj::Own<tree_errand>> begin(kj::UnixEventPort& port, task_graves& graves,
                                            const tree_request& request,
                                            std::shared_ptr<unsigned> under_way);

  tree_errand(kj::UnixEventPort& port, kj::Own<task_process> task, kj::AutoCloseFd memory,
              kj::AutoCloseFd pipe, tree_direction direction, std::shared_ptr<unsigned> under_way);
  ~tree_errand() noexcept;

  /// unpack: where the archive goes; its close is the archive's end.
  input_pipe& archive() {
    return *in_;
  }

  /// pack: the next bytes of the archive; none at its end.
  kj::Promise<kj::Array<kj::byte>> read();

  /// Ends it before its time.
  void cancel() {
    task_->kill();
  }

  /// What came of it, for any number of callers.
  kj::Promise<result<tree_report>> finished();

private:
  result<tree_report> read_outcome(const result<file_answer>& told) const;

  kj::UnixEventPort& port_;
  kj::Own<task_process> task_;
  kj::AutoCloseFd memory_; ///< Where the process leaves its report.
  kj::Own<input_pipe> in_;
  kj::AutoCloseFd out_;
  kj::Own<kj::UnixEventPort::FdObserver> observer_;
  std::shared_ptr<unsigned> under_way_;
  kj::ForkedPromise<result<tree_report>> outcome_;
};

} // namespace dsec::init
