#pragma once

#include "backends/init/sandbox.hpp"
#include "schemas/init.capnp.h"

#include <kj/async-unix.h>
#include <kj/debug.h>
#include <kj/refcount.h>

#include <list>
#include <memory>

namespace dsec::init {

/// What every capability of a connection looks at before it does anything: a newer node may have
/// taken over.
class admission : public kj::Refcounted {
public:
  /// Throws (as disconnected) if a higher epoch has entered since.
  void check() const {
    if (fenced)
      kj::throwRecoverableException(
        KJ_EXCEPTION(DISCONNECTED, "a node of a higher epoch has taken this sandbox over"));
  }

  bool entered = false;
  bool fenced = false;
  std::uint64_t epoch = 0;
};

/// Accepts connections on run/<id>.sock and lets one epoch in at a time.
class gate {
public:
  gate(sandbox& served, kj::AutoCloseFd listener);
  ~gate();

  /// Accepts until dropped.
  kj::Promise<void> run();

  /// Lets `who` in and closes every connection of a lower epoch, or says why not.
  result<void> enter(admission& who, std::uint64_t epoch);

private:
  struct connection;

  void serve(kj::AutoCloseFd socket);

  sandbox& sandbox_;
  kj::AutoCloseFd listener_;
  kj::UnixEventPort::FdObserver observer_;
  std::uint64_t highest_ = 0;
  std::list<std::shared_ptr<connection>> connections_;
};

} // namespace dsec::init
