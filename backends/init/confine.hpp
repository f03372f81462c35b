#pragma once

namespace dsec::init {

/// No process of the calling process's user namespace can make another one inside it, from now on:
/// clone3 keeps its flags in memory, out of a seccomp filter's sight. Called once in the sandbox's
/// new user namespace as its root, while /proc/sys can still be written. Returns 0 or an errno
/// value.
int forbid_user_namespaces();

/// Confines the calling process and all it will ever start: what the reaper, and so everything an
/// agent runs, may ask of the kernel. Called once, in the sandbox's new user, mount and pid
/// namespaces, as root of that user namespace with all its capabilities, single-threaded, as the
/// last thing before the exec of the reaper. In this order: no_new_privs (unless `allow_setuid`), a
/// Landlock domain in which no device node can be made and no mount changed, a seccomp filter, the
/// capability sets.
///
/// Returns 0, or an errno value with `*stage` naming the step that failed (a literal). What the
/// running kernel does not have (Landlock before 5.13) is left out; everything else that fails is
/// an error.
int confine_payload(bool allow_setuid, const char** stage);

} // namespace dsec::init
