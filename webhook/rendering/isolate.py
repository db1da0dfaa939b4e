"""Starts a program without a network and, where that is possible, with a view of the files that it may read only.

Run as a script: `python -I isolate.py SETTINGS PROGRAM ARGUMENT...`, SETTINGS being JSON. It takes what the system allows,
because containers and hardened systems forbid some of it, and then becomes the program:

- a network namespace of its own, in which not even loopback is up: unshare(2), by privilege or in a user namespace of its
  own (network_namespaces(7), user_namespaces(7); Ubuntu 24.04 forbids the latter to programs without a profile);
- Landlock (landlock(7)): files by path from Linux 5.13, TCP from 6.7, abstract sockets from 6.10.

What is remote is refused before this starts, so that this is a second wall and not the only one.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from contextlib import suppress

try:
    import ctypes
except ImportError:  # a Python that was built without libffi
    ctypes = None  # type: ignore[assignment]  # looked at before it is used

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_NO_NEW_PRIVS = 38
# The same on every architecture (Linux, include/uapi/asm-generic/unistd.h).
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
PATH_BENEATH = 1
# Bits of include/uapi/linux/landlock.h.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
# How many bits each version of the interface knows.
BITS = {1: 13, 2: 14, 3: 15, 4: 15}
NEWEST_BITS = 16
TCP, SCOPES = 0b11, 0b11

SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store", "/gnu/store")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group", "/etc/localtime")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


def main(arguments: list[str]) -> None:
    """Give up what is not needed, and become the program.

    Args:
        arguments: JSON with `home`, `programs` that the first one starts, `readable` (null where files are not to be
            restricted) and then the command.
    """
    settings, command = json.loads(arguments[0]), arguments[1:]
    if sys.platform == "linux" and ctypes is not None:
        without_network()
        restrict([command[0], *settings["programs"]], settings["home"], settings["readable"])
    os.execv(command[0], command)  # noqa: S606 -- without a shell, which is wanted


def without_network() -> bool:
    """Leave the network of the machine; tell whether that was possible."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) == 0:
        return True
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        return False
    # Without them the program would have the user nobody; access to files is the same.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with suppress(OSError), open(f"/proc/self/{name}", "w", encoding="ascii") as opened:  # noqa: PTH123 -- starts sooner
            opened.write(text)
    return True


def restrict(programs: list[str], home: str, readable: list[str] | None) -> bool:
    """Let the process read some files only, write below a directory, and use no TCP; tell whether that was possible.

    Args:
        programs: what will run; where one is a script or runs by privilege, what it needs is not known, and nothing is
            restricted.
        home: a directory for what it writes.
        readable: files and directories that it may read beside those of the system; None restricts no files.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(CREATE_RULESET, None, 0, 1)
    if version < 1 or not all(map(is_plain, programs)):
        return False
    known = (1 << BITS.get(version, NEWEST_BITS)) - 1
    files = known if readable is not None else 0
    tcp = TCP if version >= 4 else 0
    fields = [files, tcp, SCOPES if version >= 6 else 0][: 1 if version < 4 else 2 if version < 6 else 3]
    if not any(fields):
        return False
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    rules = libc.syscall(CREATE_RULESET, attributes, len(attributes), 0)
    if rules < 0:
        return False
    read, run = (READ_FILE | READ_DIR), (READ_FILE | READ_DIR | EXECUTE)
    allowed = [(path, run) for path in (*SYSTEM, *(file for program in programs for file in with_versions(program)))]
    allowed += [
        *((path, read) for path in (*SYSTEM_FILES, *(readable or ()))),
        *((path, read | WRITE_FILE) for path in DEVICES),
    ]
    allowed += [(home, known & ~(EXECUTE | IOCTL_DEV))]
    for path, access in allowed if files else ():
        _allow(libc, rules, path, access & known)
    return bool(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.syscall(RESTRICT_SELF, rules, 0) == 0)


def is_plain(program: str) -> bool:
    """Tell whether a program is a binary that runs by itself, and not a script or a front for another one."""
    real = os.path.realpath(program)
    try:
        with open(real, "rb") as opened:  # noqa: PTH123 -- starts sooner
            return opened.read(4) == b"\x7fELF" and os.path.basename(real) != "snap"  # noqa: PTH119 -- as above
    except OSError:
        return False


def with_versions(program: str) -> list[str]:
    """Return the file of a program, and those beside it whose names begin so: kubectl of Google Cloud starts `kubectl.1.32`."""
    folder, name = os.path.split(os.path.realpath(program))
    try:
        return [os.path.join(folder, entry) for entry in os.listdir(folder) if entry.startswith(name)]  # noqa: PTH118, PTH208 -- starts sooner
    except OSError:
        return [os.path.join(folder, name)]  # noqa: PTH118 -- as above


def _allow(libc: ctypes.CDLL, rules: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):
        return
    try:
        of_files = access if os.path.isdir(path) else access & OF_FILES  # noqa: PTH112 -- as above
        libc.syscall(ADD_RULE, rules, PATH_BENEATH, struct.pack("=Qi", of_files, descriptor), 0)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(sys.argv[1:])
