"""Runs a program that renders, within bounds of time and output, and without a way to a network."""

from __future__ import annotations

import errno
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.webhook.rendering import isolate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event

    from gpugate.webhook.rendering.options import Limits

_CHUNK: Final = 1 << 16
_LOOK: Final = 0.2  # seconds between looks at whether to stop
_MAX_ERROR_BYTES: Final = 1 << 20
# What a program may need to start at all; nothing that holds a secret or names a cluster.
_KEPT: Final = ("PATH", "LANG", "SYSTEMROOT", "CLOUDSDK_PYTHON")
# A port without a listener: connections that the isolation does not prevent are refused at once.
_NOWHERE: Final = "http://127.0.0.1:9"
_BLOCKED: Final = {
    name: _NOWHERE for proxy in ("http_proxy", "https_proxy", "all_proxy") for name in (proxy, proxy.upper())
}


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended: its code and what it wrote; `stopped` says why it was not left to end by itself."""

    code: int
    out: bytes
    err: str
    stopped: str = ""


def environment(home: str) -> dict[str, str]:
    """Return the variables of a program whose home is an empty directory: no plugins, no repositories, no kubeconfig."""
    inherited = {name: os.environ[name] for name in _KEPT if name in os.environ}
    helm = {f"HELM_{kind}_HOME": os.path.join(home, kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}  # noqa: PTH118 -- a text
    return {
        **inherited,
        **_BLOCKED,
        **helm,
        "HOME": home,
        "TMPDIR": home,
        "LC_ALL": "C",
        "KUBECONFIG": os.devnull,
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
    }


def run(
    command: Sequence[str],
    home: str,
    limits: Limits,
    stop: Event,
    readable: Sequence[str] | None = None,
    programs: Sequence[str] = (),
) -> Ran:
    """Run a program to its end, to a limit, or until `stop` is set; as far as the system allows, without a network.

    Args:
        command: the program and its arguments.
        home: an empty directory for what it writes.
        limits: what it may take.
        stop: ends it.
        readable: what it may read beside the files of the system; None for everything.
        programs: what it starts itself.

    Raises:
        OSError: it cannot be started.
    """
    with subprocess.Popen(  # noqa: S603 -- a program from PATH, as the user asked for; arguments, no shell
        _isolated(command, home, readable, programs),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
        process_group=0,
    ) as process:
        try:
            _bound_memory(process.pid, limits.memory)
            out, err, stopped = _read(process, limits, stop)
        finally:
            # Also what it started itself; when all has ended, there is no such group any more.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return Ran(process.returncode, out, err.decode(errors="replace"), stopped)


def _isolated(command: Sequence[str], home: str, readable: Sequence[str] | None, programs: Sequence[str]) -> list[str]:
    """Return the command that isolates a program before it starts; itself where there is nothing to isolate it with."""
    program = shutil.which(command[0])
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    if any("\0" in part for part in command):
        raise ValueError("embedded null byte")
    whole = [os.path.abspath(program), *command[1:]]  # noqa: PTH100 -- a link may be called as it is called
    if sys.platform != "linux" or not sys.executable:
        return whole
    allowed = list(readable) if readable is not None else None
    settings = {"home": os.path.realpath(home), "programs": list(programs), "readable": allowed}
    return [sys.executable, "-I", "-S", "-B", isolate.__file__, json.dumps(settings), *whole]


def _bound_memory(pid: int, wanted: int) -> None:
    """Bound what a program may write to in memory, with all that it starts; a template can ask for more than there is.

    Not its address space, of which Go reserves far more than it uses. Linux 4.7, getrlimit(2): RLIMIT_DATA is for private
    writable mappings too. Where the system has no such call, the limit of time is all.
    """
    try:
        import resource  # noqa: PLC0415 -- not on Windows

        _, most = resource.prlimit(pid, resource.RLIMIT_DATA)
        bound = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.prlimit(pid, resource.RLIMIT_DATA, (bound, bound))
    except (ImportError, AttributeError, OSError):
        return


def _read(process: subprocess.Popen[bytes], limits: Limits, stop: Event) -> tuple[bytes, bytes, str]:
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 -- for mypy: both are pipes
    out, err = bytearray(), bytearray()
    deadline = time.monotonic() + limits.seconds
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, out)
        selector.register(process.stderr, selectors.EVENT_READ, err)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return bytes(out), bytes(err), f"did not end within {limits.seconds:g} s"
            if stop.is_set():
                return bytes(out), bytes(err), "was stopped"
            for key, _ in selector.select(min(left, _LOOK)):
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data is out or len(err) < _MAX_ERROR_BYTES:
                    key.data.extend(chunk)
            if len(out) > limits.bytes:
                return bytes(out), bytes(err), f"wrote more than {limits.bytes >> 20} MiB"
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
            return bytes(out), bytes(err), ""
    return bytes(out), bytes(err), f"did not end within {limits.seconds:g} s"
