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
  # false: standard input is empty. true: it is what `Exec.stdin` is sent.
}

struct Outcome {
  kind @0 :Kind;
  code @1 :Int32;
  # exited, diskFull, pidsLimit: exit code. signalled, timedOut, cancelled, oomKilled: signal number, if one was seen.
  limitBytes @2 :UInt64;
  peakBytes @3 :UInt64;
  # oomKilled: the memory limit and the peak; diskFull: the disk limit and what was used.
  cause @4 :Text;
  # infrastructure, selfInflicted: what happened, for a person.

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
  # Processes of the sandbox that the kernel killed for memory while this command ran.
  durationMs @6 :UInt64;
  # From start to exit, frozen time included.
  replayed @7 :Bool;
  # Set by the node: the step was recorded before and did not run again.
}

interface ByteSink {
  # Where bytes go. Dropping it without `end` says that the writer died.
  write @0 (bytes :Data) -> stream;
  # At most 64 KiB a call.
  end @1 ();
}
