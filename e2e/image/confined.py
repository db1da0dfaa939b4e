"""Becomes another program inside a mount namespace of its own, as a container runtime would start it.

`python -I -S confined.py PARENT_PID SPECIFICATION`: a JSON file, `Confinement` in `confinement.py` says what is in it. The new
program has the folder `root` for its root, and in it what is mounted there. It has no capabilities and cannot get any, and
it ends when its parent does. For root this needs nothing; for others, that the kernel lets them make user namespaces.

Constants and calls: mount(2), pivot_root(2), prctl(2), capset(2) of Linux.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import signal
import sys
from pathlib import Path
from typing import Any

_CLONE_NEWNS, _CLONE_NEWUSER = 0x0002_0000, 0x1000_0000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 1, 2, 4, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_CAPABILITY_VERSION_3 = 0x2008_0522
# Numbers of pivot_root and capset, which the C library does not offer.
_SYSTEM_CALLS = {"x86_64": (155, 126), "aarch64": (41, 91)}
_C = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    parent, specification = int(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    user = specification["user"]
    _enter(user)
    _mount_all(specification)
    _become(user)
    _done("prctl", _C.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM))
    if os.getppid() != parent:
        # It ended before we asked.
        sys.exit(1)
    os.chdir(specification["working_directory"])
    command = specification["command"]
    # A program without a path is looked for in the PATH of its own, as container runtimes do.
    os.execvpe(command[0], command, specification["environment"])  # noqa: S606 -- the program to become; no shell is wanted


def _enter(user: int) -> None:
    outer_user, outer_group = os.geteuid(), os.getegid()
    privileged = outer_user == 0
    if _C.unshare(_CLONE_NEWNS | (0 if privileged else _CLONE_NEWUSER)):
        sys.exit(
            f"no mount namespace: {os.strerror(ctypes.get_errno())}; run it as root, or let users make namespaces "
            "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0)"
        )
    if not privileged:
        Path("/proc/self/setgroups").write_text("deny", encoding="utf-8")
        Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1", encoding="utf-8")
        Path("/proc/self/gid_map").write_text(f"{user} {outer_group} 1", encoding="utf-8")
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)


def _mount_all(specification: dict[str, Any]) -> None:
    root = Path(specification["root"])
    _mount(str(root), str(root), None, _MS_BIND)
    for source, target, writable in specification["binds"]:
        _bind(Path(source), root / target.lstrip("/"), writable=writable)
    for target, options in specification["memory"].items():
        (root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)
        # A read-only one hides what is below it.
        flags = _MS_NOSUID | _MS_NODEV | (0 if options else _MS_RDONLY)
        _mount("tmpfs", str(root / target.lstrip("/")), "tmpfs", flags, options or None)
    os.chdir(root)
    pivot_root = _SYSTEM_CALLS[platform.machine()][0]
    _done("pivot_root", _C.syscall(pivot_root, b".", b"."))
    _done("umount2", _C.umount2(b".", _MNT_DETACH))
    os.chdir("/")
    _read_only("/")


def _bind(source: Path, target: Path, *, writable: bool) -> None:
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount(str(source), str(target), None, _MS_BIND | _MS_REC)
    if not writable:
        _read_only(str(target))


def _read_only(target: str) -> None:
    # A user namespace may not take away flags that are there.
    kept = os.statvfs(target).f_flag & (_MS_NOSUID | _MS_NODEV | os.ST_NOEXEC)
    _mount("none", target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept)


def _become(user: int) -> None:
    # Nothing can be imported here that was not before, the codec of ASCII among it.
    last_capability = int(Path("/proc/sys/kernel/cap_last_cap").read_text(encoding="utf-8"))
    for capability in range(last_capability + 1):
        _done("prctl", _C.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0))
    _done("prctl", _C.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    if os.getuid() != user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    none_of_them = (ctypes.c_uint32 * 6)()
    _done("capset", _C.syscall(_SYSTEM_CALLS[platform.machine()][1], header, none_of_them))


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    encoded = (text.encode() if text else None for text in (source, target, kind))
    _done(f"mount {target}", _C.mount(*encoded, ctypes.c_ulong(flags), options.encode() if options else None))


def _done(what: str, result: int) -> None:
    if result:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
