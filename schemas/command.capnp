@0xd5ec000000000001;
# What is said about a command, whoever says it: the node to dsec-init, a client to the front.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("dsec::wire");

struct ExecSpec {
  # One command. Nothing of it is interpreted by a shell.

  argv @0 :List(Data);
  # argv[0] is looked up in PATH of `env` if it holds no slash. At least one element.

  env @1 :List(Data);
  # "NAME=value", the complete environment of the process.

  cwd @2 :Data;
  # Working directory inside the sandbox; must exist.

  user @3 :Text;
  # "", "name", "uid", "name:group" or "uid:gid", resolved in the sandbox's own /etc/passwd. "" is root.

  deadlineMs @4 :UInt64;
  # Milliseconds of running time; time spent frozen does not count. 0 = none.

  spoolBytes @5 :UInt64;
  # How much of each stream is kept for `wait` and late readers. The first bytes are kept.

  hasStdin @6 :Bool;
  # false: standard input is empty. true: it is what `Exec.stdin` (or `Process.input`) is sent.
}

struct Outcome {
  kind @0 :Kind;
  code @1 :Int32;
  # exited, diskFull, pidsLimit: exit code. signalled, timedOut, cancelled, oomKilled: signal number, if one was seen.
  limitBytes @2 :UInt64;
  peakBytes @3 :UInt64;
  # oomKilled: the memory limit and the peak; diskFull: the disk limit and what was used.
  cause @4 :Text;
  # For a person. oomKilled: whom the kernel killed. selfInflicted, sandboxStopped, budgetSpent, expired: by what
  # the sandbox was ended. nodeLost, infrastructure: what happened.

  enum Kind {
    # Same order as dsec::outcome_kind.
    exited @0;
    signalled @1;
    timedOut @2;
    cancelled @3;
    oomKilled @4;
    pidsLimit @5;
    diskFull @6;
    selfInflicted @7;
    sandboxStopped @8;
    nodeLost @9;
    infrastructure @10;
    budgetSpent @11;
    expired @12;
  }
}

struct ExecResult {
  outcome @0 :Outcome;
  stdout @1 :Data;
  stderr @2 :Data;
  # What the spool kept: the first `spoolBytes` of each stream.
  stdoutBytes @3 :UInt64;
  stderrBytes @4 :UInt64;
  # How much the command really wrote; larger than the kept part means it was truncated.
  oomKills @5 :UInt32;
  # Processes of this command, children and background children included, that the kernel killed for memory.
  durationMs @6 :UInt64;
  # From start to exit, frozen time included.
  replayed @7 :Bool;
  # Set by the node: the step was recorded before and did not run again.
}

struct ProcessTerms {
  # What makes a command a process: it lives by itself, with a handle.

  name @0 :Text;
  terminal @1 :Bool;
  rows @2 :UInt16;
  columns @3 :UInt16;
}

struct ProcessInfo {
  id @0 :UInt64;
  name @1 :Text;
  argv @2 :List(Data);
  terminal @3 :Bool;
  startedMs @4 :Int64;
  endedMs @5 :Int64;
  # Wall clock, since the epoch. 0 = it has not.
  outBytes @6 :UInt64;
  errBytes @7 :UInt64;
  outcome @8 :Outcome;
  # Means something once it has ended.
}

enum AttachFrom {
  # Same order as dsec::attach_from.
  start @0;
  tail @1;
}

interface LossySink {
  # Where the output of a process goes. A reader that is too slow is not waited for: it skips.
  write @0 (bytes :Data) -> stream;
  # At most 64 KiB a call.
  skipped @1 (bytes :UInt64) -> stream;
  # So many bytes, before what comes next, are kept no more.
  end @2 ();
}

interface ByteSink {
  # Where bytes go. Dropping it without `end` says that the writer died.
  write @0 (bytes :Data) -> stream;
  # At most 64 KiB a call.
  end @1 ();
}
