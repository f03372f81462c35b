@0xd5ec000000000002;
# What the node says to dsec-init, over run/<sandbox id>.sock. Connections are capabilities: who can open
# the socket (root, 0600) may say all of this. Every method is idempotent. Errors travel as
# values (`error`), so that a broken connection is the only exception there is.

using Cxx = import "/capnp/c++.capnp";
using import "command.capnp".AttachFrom;
using import "command.capnp".ByteSink;
using import "command.capnp".ExecResult;
using import "command.capnp".ExecSpec;
using import "command.capnp".LossySink;
using import "command.capnp".ProcessInfo;
using import "command.capnp".ProcessTerms;
using import "error.capnp".Error;
using import "file.capnp".DirectoryEntry;
using import "file.capnp".FileStatus;
using import "file.capnp".TreeReport;
$Cxx.namespace("dsec::wire");

interface InitGate {
  # The bootstrap capability of every connection.

  enter @0 (epoch :UInt64) -> (error :Error, init :Init, hello :Hello);
  # Opens this sandbox for the node of that epoch and closes every connection of a lower one, before
  # anything that such a connection still has in its buffer is read. A lower epoch than the highest
  # seen is refused with invalid_state. The answer waits for what was asked of the freezer before: the
  # phase that it tells is not changed by anything but this node and the lease. A higher epoch than
  # before starts the lease's time anew.
}

struct Hello {
  sandboxId @0 :Text;
  phase @1 :Phase;
  # What the sandbox is now, lease expiry included.
  execs @2 :List(UInt64);
  # Ids of the execs whose outcome is not yet acknowledged, running ones included. No processes.

  running @3 :List(UInt64);
  # Those of them that have not ended.

  enum Phase {
    running @0;
    paused @1;
    reclaimed @2;
  }
}

interface Init {
  exec @0 (id :UInt64, spec :ExecSpec, attended :Bool) -> (error :Error, exec :Exec);
  # Starts a command, or joins the one that has this id already (then the rest is not looked at).
  # `attended`: the caller will attach. What the spool has no room for waits for that, and is dropped
  # only once the capability is gone without it.

  forget @1 (ids :List(UInt64));
  # The outcomes of these are durable at the node; their spools and ids are dropped.

  pause @2 () -> (error :Error, frozenUs :UInt64);
  # Freezes every process of the payload; answers once all are frozen.

  reclaim @3 () -> (error :Error, beforeBytes :UInt64, afterBytes :UInt64);
  # Gives the payload's memory back while it is frozen. Bytes as the memory controller counts them
  # (resident and swap cache). invalid_state unless paused; exhausted when there is no swap.

  resume @4 () -> (error :Error);

  renew @5 (pauseInMs :UInt64, stopInMs :UInt64);
  # Sets both deadlines of the job's lease, from now. 0 = none. At the first, dsec-init pauses and
  # reclaims by itself; at the second it ends the sandbox and leaves run/<id>.end with the cause.

  stats @6 () -> (stats :Stats);

  open @7 (path :Data, mode :OpenMode, permissions :UInt32, makeParents :Bool)
    -> (error :Error, file :File);
  # Opens a path of the sandbox's own tree, resolved beneath its root by a process inside its user and
  # mount namespaces. Symbolic links are followed inside the tree, never out of it. Relative paths are
  # invalid_argument. Never blocks on a FIFO: other than regular files and directories are refused.
  # `makeParents` (write modes only) makes missing directories on the way, 0755, root.

  status @8 (path :Data) -> (error :Error, status :FileStatus);
  # lstat: a final symbolic link is reported, not followed.

  run @9 (id :UInt64, spec :ExecSpec, forget :List(UInt64))
    -> (error :Error, result :ExecResult);
  # `forget`, then `exec`, then `Exec.wait`, in one round trip and without a capability: what short
  # commands need that nobody watches. `spec.hasStdin` must be false. Joins as `exec` does.

  cancel @10 (id :UInt64);
  # As Exec.cancel; nothing happens if there is no such exec.

  signal @11 (id :UInt64, number :Int32) -> (error :Error);
  # As Exec.signal; not_found if there is no such exec.

  spawn @12 (id :UInt64, spec :ExecSpec, terms :ProcessTerms, stdin :Data, keepInput :Bool)
    -> (error :Error, process :Process);
  # Starts a process, or joins the one that has this id already. Standard input begins with `stdin` and,
  # without `keepInput`, ends with it. invalid_state when a process that lives has its name.

  processes @13 () -> (processes :List(ProcessInfo));
  # In order of their start.

  process @14 (id :UInt64) -> (error :Error, process :Process);
  # not_found if there is none of that id.

  unpack @15 (path :Data) -> (error :Error, archive :ByteSink, unpacking :Unpacking);
  # A tar archive (any that libarchive reads, compressed or not) written to `archive` appears below the directory
  # `path`, made if it is missing. Entries are resolved beneath it; what would lie outside, devices, and what
  # else the tree policy refuses is left out and told.

  pack @16 (path :Data, archive :ByteSink) -> (error :Error, report :TreeReport);
  # The tree below `path`, or one file, as a pax archive, to `archive`; answers when it has all.

  replace @17 (path :Data, permissions :UInt32, makeParents :Bool)
    -> (error :Error, file :Replacing);
  # A new file for the place of `path`, which nobody sees there until it is finished. A final symbolic link is
  # followed, to the file that is replaced; that one's mode and owner are kept.

  clocks @18 (timeToLiveMs :UInt64, rolloutBudgetMs :UInt64);
  # Both as totals: the first from the sandbox's creation, the second of the time in which it was not frozen, from
  # its assignment; 0 = that clock does not run. When one has passed, dsec-init ends the sandbox and leaves
  # run/<id>.end with the cause.

  enum OpenMode {
    read @0;
    write @1;
    # Truncates or creates, with `permissions`.
    append @2;
    list @3;
    # A directory.
  }
}

interface Exec {
  wait @0 () -> (result :ExecResult);
  # Answers when the main process has ended and its output is drained: at the end of both streams, or
  # 100 ms after the exit if a background child still holds them open (that child lives on).

  stdin @1 () -> (sink :ByteSink);
  # Back-pressure of the pipe is back-pressure of the sink. Writing after the reader left succeeds and
  # is dropped.

  signal @2 (number :Int32) -> (error :Error);
  # To the main process and its process group, as a terminal's keys do.

  cancel @3 ();
  # Kills the command's whole process tree, background children included; outcome `cancelled`.

  attach @4 (stdout :ByteSink, stderr :ByteSink) -> ();
  # Sends what the spool holds and then the live bytes; the command waits for a slow reader.
  # Answers when both streams have ended. One attachment at a time: a newer one replaces the older.
}

interface File {
  read @0 (offset :UInt64, bytes :UInt32) -> (error :Error, bytes :Data, size :UInt64);
  # At most 1 MiB a call. `size` is the file's size now. Empty at and past the end.

  write @1 (bytes :Data) -> (error :Error);
  # At the current end of what was written, at most 1 MiB a call. Disk limit reached: exhausted.

  list @2 () -> (error :Error, entries :List(DirectoryEntry));
}

interface Process {
  wait @0 () -> (result :ExecResult);
  # Answers when the main process has ended, its output is drained and its tree is gone.

  attach @1 (from :AttachFrom, stdout :LossySink, stderr :LossySink) -> ();
  # Any number at once. Answers when both streams have ended and the sinks have all.

  input @2 (bytes :Data, end :Bool) -> (error :Error);
  # Answers when the process's pipe or terminal has taken it.

  resize @3 (rows :UInt16, columns :UInt16) -> (error :Error);
  signal @4 (number :Int32, tree :Bool) -> (error :Error);
  kill @5 ();
  # The whole tree; outcome `cancelled`.

  remove @6 () -> (error :Error);
}

interface Replacing {
  # Dropped without `finish`, it leaves nothing behind.

  write @0 (bytes :Data) -> (error :Error);
  # At the end. At most 1 MiB a call.

  finish @1 () -> (error :Error);
  # It is in its place.
}

interface Unpacking {
  finish @0 () -> (error :Error, report :TreeReport);
  # Answers when the archive has ended and all of it lies there.
}

struct Stats {
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
  timeToLiveLeftMs @13 :UInt64;
  rolloutBudgetLeftMs @14 :UInt64;
  # 0 = the clock does not run.
}
