from __future__ import annotations

import json
import os
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

    ran = run([str(path)], str(tmp_path), Limits(seconds=2), threading.Event())

    assert ran.stopped == "did not end within 2 s"
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
