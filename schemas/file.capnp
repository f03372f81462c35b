@0xd5ec000000000006;
# What is said about a file inside a sandbox, whoever says it.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("dsec::wire");

struct FileStatus {
  type @0 :Type;
  mode @1 :UInt32;
  # Permission bits only (07777).
  uid @2 :UInt32;
  gid @3 :UInt32;
  # As seen inside the sandbox.
  size @4 :UInt64;
  modifiedNs @5 :Int64;
  # Since the epoch.

  enum Type {
    regular @0;
    directory @1;
    symlink @2;
    other @3;
  }
}

struct TreeReport {
  # What moving a whole tree did.

  entries @0 :UInt64;
  bytes @1 :UInt64;
  refused @2 :List(Refusal);
  # The first of them.
  refusedTotal @3 :UInt64;

  struct Refusal {
    path @0 :Data;
    why @1 :Text;
  }
}

struct DirectoryEntry {
  name @0 :Data;
  status @1 :FileStatus;
}
