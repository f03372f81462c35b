#pragma once

#include "schemas/command.capnp.h"
#include "schemas/error.capnp.h"
#include "schemas/file.capnp.h"
#include "state/error.hpp"
#include "state/exec.hpp"
#include "state/file.hpp"
#include "state/process.hpp"

#include <kj/exception.h>

#include <string>
#include <string_view>

/// Between what is said (schemas) and what it means (state). Nothing else converts these.

namespace dsec::wire {

inline kj::ArrayPtr<const kj::byte> bytes(std::string_view x) {
  return {reinterpret_cast<const kj::byte*>(x.data()), x.size()};
}

inline std::string text(capnp::Data::Reader x) {
  return {reinterpret_cast<const char*>(x.begin()), x.size()};
}

inline std::string text(capnp::Text::Reader x) {
  return {x.cStr(), x.size()};
}

/// True and `to` filled if `from` is an error.
bool failed(Error::Reader from, error& to);

void write(const error& from, Error::Builder to);

/// A broken connection, as `unavailable`.
error broken(std::string_view attempt, const kj::Exception& cause);

/// argv, variables, directory, user, deadline, spool; whether standard input follows. The rest of a
/// spec (input, step) is not for dsec-init.
void write(const exec_spec& from, ExecSpec::Builder to);

void write(const outcome& from, Outcome::Builder to);

outcome read(Outcome::Reader from);

void write(const process_info& from, ProcessInfo::Builder to);

process_info read(ProcessInfo::Reader from);

void write(const exec_result& from, ExecResult::Builder to);

exec_result read(ExecResult::Reader from);

void write(const file_status& from, FileStatus::Builder to);

file_status read(FileStatus::Reader from);

void write(const directory_entry& from, DirectoryEntry::Builder to);

directory_entry read(DirectoryEntry::Reader from);

void write(const tree_report& from, TreeReport::Builder to);

tree_report read(TreeReport::Reader from);

} // namespace dsec::wire
