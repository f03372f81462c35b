@0xd5ec000000000007;
# Why a call failed, whoever says it.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("dsec::wire");

struct Error {
  # A failed call. `code` is dsec::errc by number; 0 = no error.
  code @0 :UInt8;
  message @1 :Text;
}
