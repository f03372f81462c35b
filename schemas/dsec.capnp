@0xd5ec000000000005;
# What a client says to a runtime, over <state directory>/dsec.sock: 0600, and only the runtime's own user or
# root (peer credentials). Capabilities are handles: dropping one does nothing to what it stands for, but for
# a running command (`ExecHandle`) and a sandbox that is held (`SandboxHold`). Errors travel as values.

using Cxx = import "/capnp/c++.capnp";
using import "command.capnp".AttachFrom;
using import "command.capnp".ByteSink;
using import "command.capnp".ExecResult;
using import "command.capnp".LossySink;
using import "command.capnp".ProcessInfo;
using import "command.capnp".ProcessTerms;
using import "error.capnp".Error;
using import "file.capnp".DirectoryEntry;
using import "file.capnp".FileStatus;
using import "file.capnp".TreeReport;
using Records = import "records.capnp";
$Cxx.namespace("dsec::wire");

interface Dsec {
  version @0 () -> (version :Text, pid :Int32);

  openJob @1 (name :Text, lease :Records.Lease) -> (error :Error, job :Job);
  # Creates the job, or takes it up again; a closed one starts anew. The lease is about the runtime's silence,
  # not about this client's.

  list @2 (withEnded :Bool) -> (error :Error, sandboxes :List(SandboxInfo));

  sandbox @3 (id :Text) -> (error :Error, sandbox :Sandbox);

  obsolete4 @4 () -> ();

  job @5 (name :Text) -> (error :Error, job :Job);
  # The job of that name as it is; neither creates, nor renews, nor resumes. Of a closed one its events are left.
}

struct CreateItem {
  environment @0 :Records.Environment;
  idempotencyKey @1 :Text;
  clocks @2 :Records.Clocks;
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

  events @6 (cursor :UInt64, count :UInt32)
    -> (error :Error, events :List(Records.EventRecord), next :UInt64, oldest :UInt64);
  # At most `count` (and 1000) that are there now, from `cursor`, or from the oldest that is kept if that is later.

  follow @7 (cursor :UInt64, listener :EventListener) -> (error :Error);
  # All from `cursor`, then live. Answers when the job is closed, its sandboxes have ended and the listener has
  # taken every event; ends before with the listener or the connection.

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
  # At most 4 MiB over this connection; larger files come with `pack`, as `dsec cp` does it.
  writeFile @2 (path :Data, bytes :Data, mode :UInt32) -> (error :Error);
  listFiles @3 (path :Data) -> (error :Error, entries :List(DirectoryEntry));
  stat @4 (path :Data) -> (error :Error, status :FileStatus);

  pause @5 (reclaim :Bool) -> (error :Error);
  resume @6 () -> (error :Error);
  stop @7 () -> (error :Error);
  info @8 () -> (error :Error, info :SandboxInfo);
  stats @9 () -> (error :Error, stats :SandboxStats);

  spawn @11 (request :ExecRequest, terms :ProcessTerms, openInput :Bool)
    -> (error :Error, process :ProcessHandle, id :UInt64);
  processes @12 () -> (error :Error, processes :List(ProcessInfo));
  process @13 (id :UInt64, name :Text) -> (error :Error, process :ProcessHandle, info :ProcessInfo);
  # By name if `name` is not empty: the one that lives, else the last that ended.

  unpack @14 (path :Data) -> (error :Error, archive :ByteSink, unpacking :UnpackingHandle);
  pack @15 (path :Data, archive :ByteSink) -> (error :Error, report :TreeReport);
  setClocks @16 (clocks :Records.Clocks) -> (error :Error);

  hold @17 () -> (hold :SandboxHold);

  log @10 (withOutputOf :UInt64, hasStep :Bool) -> (error :Error, steps :List(StepInfo));
  # The recorded trajectory in order of steps, outputs left out; or, with `hasStep`, that step alone with its output.
}

interface SandboxHold {
  # Dropping it stops the sandbox, whatever goes on in it: the sandbox of a client that does not outlive it.
}

interface ExecHandle {
  # Dropping it cancels a command without a step that was not started detached.

  wait @0 () -> (error :Error, result :ExecResult);
  signal @1 (number :Int32) -> ();
  cancel @2 () -> ();
}

interface ProcessHandle {
  # Dropping it does nothing to the process.

  wait @0 () -> (error :Error, result :ExecResult);
  attach @1 (from :AttachFrom, stdout :LossySink, stderr :LossySink) -> (error :Error);
  # Answers when the sinks have all; dropping the call detaches.

  input @2 (bytes :Data, end :Bool) -> (error :Error);
  resize @3 (rows :UInt16, columns :UInt16) -> (error :Error);
  signal @4 (number :Int32, tree :Bool) -> (error :Error);
  kill @5 () -> (error :Error);
  remove @6 () -> (error :Error);
}

interface UnpackingHandle {
  finish @0 () -> (error :Error, report :TreeReport);
}

interface EventListener {
  event @0 (event :Records.EventRecord) -> stream;

  end @1 () -> ();
  # That was the last of a job that is closed.
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
  clocks @9 :Records.Clocks;
}

struct SandboxStats {
  memoryBytes @0 :UInt64;
  memoryPeakBytes @1 :UInt64;
  swapBytes @2 :UInt64;
  processes @3 :UInt32;
  cpuUs @4 :UInt64;
  oomKills @5 :UInt64;
  memoryLimitBytes @6 :UInt64;
  processesLimit @7 :UInt32;
  cpuLimitMilli @8 :UInt32;
  diskBytes @9 :UInt64;
  diskLimitBytes @10 :UInt64;
  readBytes @11 :UInt64;
  writtenBytes @12 :UInt64;
  timeToLiveLeftMs @13 :Int64;
  rolloutBudgetLeftMs @14 :Int64;
}

struct StepInfo {
  step @0 :UInt64;
  ended @1 :Bool;
  result @2 :ExecResult;
}
