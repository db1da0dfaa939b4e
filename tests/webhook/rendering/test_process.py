from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.rendering.options import Limits
from gpugate.webhook.rendering.process import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_program_says_what_it_has_to(program: Callable[[str, str], Path], tmp_path: Path) -> None:
    path = program("p", "import sys\nprint('out'); print('err', file=sys.stderr); sys.exit(3)")

    ran = run([str(path)], str(tmp_path), Limits(), threading.Event())

    assert (ran.code, ran.out, ran.err, ran.stopped) == (3, b"out\n", "err\n", "")


def test_a_program_that_hangs_is_ended_with_what_it_started(
    program: Callable[[str, str], Path], tmp_path: Path
) -> None:
    path = program(
        "p",
        "import os, sys, time\nif os.fork() == 0:\n    time.sleep(600)\nprint(os.getpid(), flush=True)\ntime.sleep(600)",
    )

    for seconds in (2, 20, 60):
        ran = run([str(path)], str(tmp_path), Limits(seconds=seconds), threading.Event())
        assert ran.stopped == f"did not end within {seconds} s"
        # On a busy machine it needs longer than the first limit to start.
        if ran.out:
            break
    with pytest.raises(ProcessLookupError):
        os.kill(int(ran.out), 0)


def test_a_program_that_writes_without_end_is_ended(program: Callable[[str, str], Path], tmp_path: Path) -> None:
    path = program("p", "while True: print('x' * 10000)")

    ran = run([str(path)], str(tmp_path), Limits(bytes=1 << 20), threading.Event())

    assert ran.stopped == "wrote more than 1 MiB"


def test_a_program_is_ended_when_nobody_waits_for_it(program: Callable[[str, str], Path], tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()

    ran = run([str(program("p", "import time\ntime.sleep(600)"))], str(tmp_path), Limits(), stop)

    assert ran.stopped == "was stopped"


def test_a_program_sees_no_secret_and_no_network(
    program: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "HELM_PLUGINS", "KUBECONFIG", "GIT_DIR"):
        monkeypatch.setenv(name, "mine")
    path = program("p", "import json, os\nprint(json.dumps(dict(os.environ)))")

    seen = json.loads(run([str(path)], str(tmp_path), Limits(), threading.Event()).out)

    assert "mine" not in seen.values()
    assert seen["HOME"] == str(tmp_path)
    assert seen["HTTPS_PROXY"] == seen["https_proxy"] == "http://127.0.0.1:9"
    assert seen["KUBECONFIG"] == os.devnull


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the memory of another process")
def test_a_program_that_wants_all_memory_does_not_get_it(program: Callable[[str, str], Path], tmp_path: Path) -> None:
    wait = "import resource, time\nwhile resource.getrlimit(resource.RLIMIT_DATA)[0] < 0: time.sleep(0.01)\n"
    path = program("p", f"{wait}print(len(bytearray(3 << 30)))")

    ran = run([str(path)], str(tmp_path), Limits(memory=1 << 30), threading.Event())

    assert (ran.code, ran.out) == (1, b"")
    assert "MemoryError" in ran.err


# Runs in a process of its own, which it isolates.
PROBE = "import sys; from gpugate.webhook.rendering import isolate; sys.exit(not {})"


def possible(probe: str) -> bool:
    return subprocess.run([sys.executable, "-c", PROBE.format(probe)], check=False).returncode == 0  # noqa: S603 -- ours


def test_a_program_does_not_reach_the_loopback_of_the_machine(
    program: Callable[[str, str], Path], tmp_path: Path
) -> None:
    if sys.platform != "linux" or not possible("isolate.without_network()"):
        pytest.skip("this system gives no network namespace")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        path = program("p", f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 5)")

        ran = run([str(path)], str(tmp_path), Limits(), threading.Event())

    assert ran.code == 1
    assert "Error" in ran.err


READABLE = {
    "a file that it is given": (["given"], "given", True),
    "a file in a directory that it is given": (["folder"], "folder/a", True),
    "a file beside": (["given"], "secret", False),
    "a link to a file beside": (["folder"], "folder/link", False),
    "anything where nothing is said": (None, "secret", True),
}


@pytest.mark.parametrize(("given", "read", "shown"), READABLE.values(), ids=READABLE)
def test_a_program_reads_what_it_is_given(
    given: list[str] | None,
    read: str,
    shown: bool,  # noqa: FBT001 -- a column of the table
    tree: Callable[..., Path],
    tmp_path: Path,
) -> None:
    if sys.platform != "linux" or not possible("isolate.restrict(['/bin/cat'], '/nowhere', [])"):
        pytest.skip("this system has no Landlock")
    root = tree({"given": "text", "folder/a": "text", "secret": "text"})
    (root / "folder/link").symlink_to("../secret")
    (tmp_path / "home").mkdir()
    readable = None if given is None else [str(root / each) for each in given]

    ran = run(["/bin/cat", str(root / read)], str(tmp_path / "home"), Limits(), threading.Event(), readable)

    assert (ran.out == b"text") is shown


def test_a_script_is_not_restricted_as_nobody_knows_what_it_needs(
    program: Callable[[str, str], Path], tree: Callable[..., Path], tmp_path: Path
) -> None:
    secret = tree({"secret": "text"}) / "secret"
    path = program("p", f"print(open({str(secret)!r}).read())")

    assert run([str(path)], str(tmp_path), Limits(), threading.Event(), []).out == b"text\n"


def test_a_program_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run([str(tmp_path / "gone")], str(tmp_path), Limits(), threading.Event())
