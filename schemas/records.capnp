@0xd5ec000000000004;
# What one state directory stores: the values of the RocksDB column families, each behind the header that
# state/codec.hpp draws. Add only: never renumber, never change a type; a field that died stays as
# obsoleteN. Enumerants are added at the end.

using Cxx = import "/capnp/c++.capnp";
using OutcomeKind = import "command.capnp".Outcome.Kind;
$Cxx.namespace("dsec::wire");

struct MetaRecord {
  # Column family `meta`, key "meta".

  node @0 :Text;
  bootId @1 :Text;
  # /proc/sys/kernel/random/boot_id when the directory was last opened.
  epoch @2 :UInt64;
  # One more at every open.
  nextSequence @3 :UInt64;
  # No sandbox id at or above it was ever given out.
}

struct Lease {
  pauseAfterMs @0 :Int64;
  stopAfterMs @1 :Int64;
  # Silence of the trainer after which its sandboxes are paused, and stopped. 0 = never.
}

struct Clocks {
  timeToLiveMs @0 :Int64;
  rolloutBudgetMs @1 :Int64;
  idleTimeoutMs @2 :Int64;
  # 0 = that clock does not run.
  onIdle @3 :OnIdle;

  enum OnIdle {
    # Same order as dsec::idle_action.
    reclaim @0;
    stop @1;
  }
}

struct JobRecord {
  # Column family `job`, key: the job's name.

  id @0 :Text;
  state @1 :State;
  preemptedUntil @2 :PreemptMode;
  # Means something while `state` is preempted.
  lease @3 :Lease;
  nextIndex @4 :UInt64;
  # The index of the next sandbox: (job, index) is a sandbox's stable name.
  createdMs @5 :Int64;
  # Wall clock, since the epoch.

  enum State {
    active @0;
    preempted @1;
    closed @2;
  }

  enum PreemptMode {
    untilRequest @0;
    untilResume @1;
  }
}

struct Variable {
  name @0 :Data;
  value @1 :Data;
}

struct Limits {
  memoryBytes @0 :UInt64;
  processes @1 :UInt32;
  cpuMilli @2 :UInt32;
  # 1000 = one core. 0 = no limit.
  diskBytes @3 :UInt64;
}

struct Environment {
  layers @0 :List(Text);
  # Digests, base first.
  env @1 :List(Variable);
  user @2 :Data;
  cwd @3 :Data;
  limits @4 :Limits;
  allowSetuid @5 :Bool;
}

struct SandboxRecord {
  # Column family `sandbox`, key: birth node and sequence.

  id @0 :Text;
  job @1 :Text;
  index @2 :UInt64;
  idempotencyKey @3 :Data;
  # Empty: none. Otherwise column family `idempotency` leads from (job, key) to `id`.
  environment @4 :Environment;
  lease @5 :Lease;
  is @6 :State;
  wanted @7 :State;
  # What it is, and where its actor is heading.
  held @8 :Bool;
  # Requests do not thaw it.
  cause @9 :Cause;
  detail @10 :Data;
  # Why it ended or failed.
  createdMs @11 :Int64;
  endedMs @12 :Int64;
  # Wall clock, since the epoch. 0 = it has not.
  clocks @13 :Clocks;
  told @14 :EventRecord.Kind;
  processes @15 :List(UInt64);
  # What the job's events tell of it: the last change of its state, and processes that live.

  enum State {
    # Same order as dsec::sandbox_state.
    pending @0;
    starting @1;
    running @2;
    pausing @3;
    paused @4;
    reclaiming @5;
    reclaimed @6;
    resuming @7;
    stopping @8;
    terminated @9;
    failed @10;
    lost @11;
  }

  enum Cause {
    # Same order as dsec::end_cause.
    none @0;
    stopped @1;
    leaseExpired @2;
    startFailed @3;
    selfInflicted @4;
    infrastructure @5;
    timeToLive @6;
    rolloutBudget @7;
    idle @8;
  }
}

struct StepRecord {
  # Column family `trajectory`, key: 'r', sandbox and step. Its output is a value of its own, so that
  # recovery reads every step and no output.

  sandbox @0 :Text;
  step @1 :UInt64;
  exec @2 :UInt64;
  requestDigest @3 :Text;
  # SHA-256 in hex of everything that decides what runs.
  ended @4 :Bool;
  # false: begun, its outcome not yet durable; the rest means nothing.
  outcome @5 :Outcome;
  outBytes @6 :UInt64;
  errBytes @7 :UInt64;
  # What the command really wrote.
  oomKills @8 :UInt32;
  durationMs @9 :Int64;

  struct Outcome {
    kind @0 :OutcomeKind;
    code @1 :Int32;
    limitBytes @2 :UInt64;
    peakBytes @3 :UInt64;
    cause @4 :Data;
  }
}

struct StepOutput {
  # Column family `trajectory`, key: 'o', sandbox and step. Absent: both streams are empty.

  out @0 :Data;
  err @1 :Data;
  # The first bytes of each stream, as many as the exec's spool kept.
}

struct EventRecord {
  # Column family `event`, key: the job's name and the cursor. Without a cursor in the key: the job was forgotten, and
  # its next event comes after `cursor`.

  job @0 :Text;
  cursor @1 :UInt64;
  atMs @2 :Int64;
  sandbox @3 :Text;
  index @4 :UInt64;
  kind @5 :Kind;
  exec @6 :UInt64;
  hasStep @7 :Bool;
  step @8 :UInt64;
  hasOutcome @9 :Bool;
  outcome @10 :StepRecord.Outcome;
  cause @11 :SandboxRecord.Cause;
  detail @12 :Data;

  enum Kind {
    # Same order as dsec::event_kind.
    created @0;
    running @1;
    paused @2;
    reclaimed @3;
    resumed @4;
    execStarted @5;
    execEnded @6;
    processStarted @7;
    processEnded @8;
    failed @9;
    stopped @10;
  }
}
