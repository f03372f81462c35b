@0xd5ec000000000005;
# What a client says to a runtime, over <state directory>/dsec.sock: 0600, and only the runtime's own user or
# root (peer credentials). Capabilities are handles: dropping one does nothing to what it stands for, but for
# a running command (`ExecHandle`). Errors travel as values.

using Cxx = import "/capnp/c++.capnp";
using import "command.capnp".ByteSink;
using import "command.capnp".ExecResult;
using import "error.capnp".Error;
using import "file.capnp".DirectoryEntry;
using import "file.capnp".FileStatus;
using Records = import "records.capnp";
$Cxx.namespace("dsec::wire");

interface Dsec {
  version @0 () -> (version :Text, pid :Int32);

  openJob @1 (name :Text, lease :Records.Lease) -> (error :Error, job :Job);
  # Creates the job, or takes it up again; a closed one starts anew. The lease is about the runtime's silence,
  # not about this client's.

  list @2 (withEnded :Bool) -> (error :Error, sandboxes :List(SandboxInfo));

  sandbox @3 (id :Text) -> (error :Error, sandbox :Sandbox);

  subscribe @4 (listener :ChangeListener) -> ();
  # Every state change from now on, until the listener or the connection goes.

  job @5 (name :Text) -> (error :Error, job :Job);
  # The job of that name as it is; neither creates, nor renews, nor resumes. not_found if closed.
}

struct CreateItem {
  environment @0 :Records.Environment;
  idempotencyKey @1 :Text;
}

struct Created {
  error @0 :Error;
  sandbox @1 :Sandbox;
  id @2 :Text;
}

interface Job {
  create @0 (item :CreateItem) -> (created :Created);
  # Answers when commands can run in it.

  createBatch @1 (items :List(CreateItem)) -> (created :List(Created));
  # One admission; answers when each has started or failed.

  preempt @2 (mode :PreemptMode) -> (error :Error, report :PreemptReport);
  resume @3 () -> (error :Error);
  close @4 () -> (error :Error);
  list @5 (withEnded :Bool) -> (error :Error, sandboxes :List(SandboxInfo));

  enum PreemptMode {
    # Same order as dsec::preempt_mode.
    untilRequest @0;
    untilResume @1;
  }
}

struct PreemptReport {
  sandboxes @0 :UInt64;
  reclaimed @1 :UInt64;
  failed @2 :UInt64;
  beforeBytes @3 :UInt64;
  afterBytes @4 :UInt64;
}

struct ExecRequest {
  argv @0 :List(Data);
  env @1 :List(Records.Variable);
  # On top of the environment's own.
  cwd @2 :Data;
  user @3 :Text;
  deadlineMs @4 :UInt64;
  spoolBytes @5 :UInt64;
  stdin @6 :Stdin;
  stdinBytes @7 :Data;
  # `given` and `streamed`: what standard input begins with.
  hasStep @8 :Bool;
  step @9 :UInt64;
  detached @10 :Bool;
  # The command goes on when the client goes. One with a step always does.

  enum Stdin {
    none @0;
    given @1;
    streamed @2;
    # More comes through the `stdin` of the answer. Not with a step.
  }
}

interface Sandbox {
  exec @0 (request :ExecRequest, stdout :ByteSink, stderr :ByteSink)
    -> (exec :ExecHandle, stdin :ByteSink);
  # Starts a command. Sinks that are null: output is only collected. The sinks have all they will get when
  # `wait` answers; output of a recorded step is in the result alone.

  readFile @1 (path :Data, bytesMax :UInt64) -> (error :Error, bytes :Data);
  # At most 4 MiB over this connection; larger files are read with a command.
  writeFile @2 (path :Data, bytes :Data, mode :UInt32) -> (error :Error);
  listFiles @3 (path :Data) -> (error :Error, entries :List(DirectoryEntry));
  stat @4 (path :Data) -> (error :Error, status :FileStatus);

  pause @5 (reclaim :Bool) -> (error :Error);
  resume @6 () -> (error :Error);
  stop @7 () -> (error :Error);
  info @8 () -> (error :Error, info :SandboxInfo);
  stats @9 () -> (error :Error, stats :SandboxStats);

  log @10 (withOutputOf :UInt64, hasStep :Bool) -> (error :Error, steps :List(StepInfo));
  # The recorded trajectory in order of steps, outputs left out; or, with `hasStep`, that step alone with its output.
}

interface ExecHandle {
  # Dropping it cancels a command without a step that was not started detached.

  wait @0 () -> (error :Error, result :ExecResult);
  signal @1 (number :Int32) -> ();
  cancel @2 () -> ();
}

struct SandboxInfo {
  id @0 :Text;
  job @1 :Text;
  index @2 :UInt64;
  state @3 :UInt8;
  # dsec::sandbox_state by number.
  cause @4 :UInt8;
  # dsec::end_cause by number.
  detail @5 :Text;
  steps @6 :UInt64;
  createdMs @7 :Int64;
  endedMs @8 :Int64;
}

struct SandboxStats {
  memoryBytes @0 :UInt64;
  memoryPeakBytes @1 :UInt64;
  swapBytes @2 :UInt64;
  processes @3 :UInt32;
  cpuUs @4 :UInt64;
  oomKills @5 :UInt64;
}

struct StepInfo {
  step @0 :UInt64;
  ended @1 :Bool;
  result @2 :ExecResult;
}

struct Change {
  sequence @0 :UInt64;
  atMs @1 :Int64;
  sandbox @2 :Text;
  job @3 :Text;
  state @4 :UInt8;
  cause @5 :UInt8;
  detail @6 :Text;
}

interface ChangeListener {
  changed @0 (change :Change) -> stream;
}
