@0xd5ec000000000003;
# The protocol of dsec-spawner: one Request or Reply per SOCK_SEQPACKET datagram, on run/spawner.sock.
# Plain messages, no RPC: the spawner forks, and forks must not carry an event loop.

using Cxx = import "/capnp/c++.capnp";
using import "error.capnp".Error;
$Cxx.namespace("dsec::wire");

const spawnerProtocol :UInt32 = 2;
# Of this file and of init.capnp, which the sandboxes of a spawner speak. One more whenever the two sides
# of it would misunderstand each other; what is only added changes nothing.

struct Request {
  sequence @0 :UInt64;
  # Chosen by the caller, repeated in the reply. Replies come in any order.
  union {
    create @1 :Create;
    # Answered once dsec-init listens on run/<id>.sock. Repeating it for a live id answers at once.
    destroy @2 :Text;
    # The sandbox id. Kills everything of it, waits until it is gone, removes every trace. Answers ok for an
    # id that does not exist.
    list @3 :Void;
    hello @4 :Void;
    warm @5 :UInt32;
    # Fill the pools for that many sandboxes; answers when they are full (or at their bound).
    shutdown @6 :Void;
    # Destroys what is left, unmounts layers and scratch, removes the swap file, and ends.
    # Refused with invalid_state while sandboxes live.
  }
  epoch @7 :UInt64;
  # Of the node that asks; 0 = none asks. What a node of a later epoch has entered, one of an earlier epoch may
  # not destroy: invalid_state.
}

struct Create {
  sandboxId @0 :Text;
  # [0-9a-z-]{1,40}
  layers @1 :List(Text);
  # Digests, base first. At least one.
  memoryBytes @2 :UInt64;
  processes @3 :UInt32;
  cpuMilli @4 :UInt32;
  # 1000 = one core. 0 = no limit.
  diskBytes @5 :UInt64;
  allowSetuid @6 :Bool;
  # Leaves no_new_privs off, for environments that need sudo.
  hostname @7 :Text;
  pauseAfterMs @8 :UInt64;
  stopAfterMs @9 :UInt64;
  # The job's lease, counted from now; 0 = none.
  timeToLiveMs @10 :UInt64;
  rolloutBudgetMs @11 :UInt64;
  # As Init.clocks.
  ageMs @12 :UInt64;
  # How long ago it was created: the time to live counts from then.
}

struct Reply {
  sequence @0 :UInt64;
  error @1 :Error;
  union {
    none @2 :Void;
    list @3 :List(Live);
    hello @4 :SpawnerHello;
  }
}

struct Live {
  sandboxId @0 :Text;
  initPid @1 :Int32;
  ending @2 :Bool;
  # True while destroy is at work on it.
}

struct SpawnerHello {
  version @0 :Text;
  # The build id of the spawner; a caller with another one may ask for `shutdown` and start its own, or
  # use it as it is if the protocol is the same.
  pid @1 :Int32;
  slots @2 :UInt32;
  slotsUsed @3 :UInt32;
  swapBytes @4 :UInt64;
  cgroup @5 :Text;
  # "v1+v2" or "v2"
  cgroupRoot @6 :Text;
  # Name of dsec's own group below each hierarchy.
  sandboxes @7 :UInt32;
  # Those that somebody asked for. `slotsUsed` counts the ones built ahead as well.
  protocol @8 :UInt32 = 1;
  # `spawnerProtocol` as its program knows it.
}
