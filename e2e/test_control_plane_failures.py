"""How the control plane ends when something is wrong: with the reason, and with nothing left behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cluster import components
from cluster.control_plane import running_control_plane
from cluster.custom_resources import CustomResourceError, install
from cluster.ports import HOST, free_ports
from cluster.process import ProcessError
from cluster.stand_ins import stand_in

import tools
from gpugate.policies.sdk.objects import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.api import Api

HERE = Path(__file__).parent
PATIENCE_SECONDS = 60
# Starts a control plane in a folder, and waits to be ended.
RUN = """
import signal, sys, time
from pathlib import Path
# A shell that starts something in the background has it ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
from cluster.control_plane import running_control_plane
with running_control_plane(Path(sys.argv[2])):
    time.sleep(600)
"""


def running_from(folder: Path) -> list[str]:
    """The processes that name a folder in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command:
            found.append(command)
    return found


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the real programs, of which a test replaces one."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for tool in tools.TOOLS:
        (folder / tool.name).symlink_to(tools.path(tool.name))
    monkeypatch.setenv("GPUGATE_E2E_BIN", str(folder))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def replace(program: Path, script: str) -> None:
    program.unlink()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_a_program_that_is_missing(programs: Path, data: Path) -> None:
    (programs / "kwok").unlink()
    with pytest.raises(tools.ToolsError, match="make e2e-tools"), running_control_plane(data):
        pass
    assert running_from(data) == []


def test_a_program_that_dies_at_start(programs: Path, data: Path) -> None:
    replace(programs / "kube-apiserver", "seq 1 20; echo the last word >&2; exit 3")
    with pytest.raises(ProcessError) as told, running_control_plane(data):
        pass
    assert str(told.value).splitlines() == [
        f"kube-apiserver ended with exit code 3 before it was ready; the end of {data / 'kube-apiserver.log'}:",
        *(f"  {number}" for number in range(7, 21)),
        "  the last word",
    ]
    assert running_from(data) == []


def test_a_program_that_cannot_be_run(programs: Path, data: Path) -> None:
    (programs / "etcd").unlink()
    (programs / "etcd").write_text("")
    failure = pytest.raises(ProcessError, match=r"etcd ended with .*\n  cannot be run: .*Permission denied")
    with failure, running_control_plane(data):
        pass
    assert running_from(data) == []


def test_free_ports_are_of_one_process() -> None:
    ports = free_ports(20)

    reserve = [sys.executable, "-c", "import sys; from cluster.ports import _reserve; _reserve(int(sys.argv[1]))"]
    for port in ports[:2]:
        ran = subprocess.run([*reserve, str(port)], cwd=HERE, capture_output=True, check=False)  # noqa: S603 -- ours
        assert b"already in use" in ran.stderr
    assert len(set(ports)) == 20
    for port in ports:
        socket.create_server((HOST, port)).close()


def test_a_port_in_use(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = [taken.getsockname()[1], *free_ports(5)]
        monkeypatch.setattr(components, "free_ports", lambda _: ports)
        failure = pytest.raises(ProcessError, match=r"(?s)etcd ended with .*address already in use")
        with failure, running_control_plane(data):
            pass
    assert running_from(data) == []


def test_a_definition_that_is_refused(api: Api) -> None:
    refused = stand_in(Kind("example.com", ("v1",), "Widget", "widgets"))
    refused["spec"]["versions"][0]["storage"] = False
    with pytest.raises(CustomResourceError, match=r"widgets\.example\.com cannot be installed: .*storage version"):
        install(api, [refused])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_half_way(programs: Path, data: Path, number: signal.Signals) -> None:
    replace(programs / "kube-apiserver", "exec sleep 600")
    command = [sys.executable, "-c", RUN, str(HERE), str(data)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as run:  # noqa: S603 -- ours
        wait_until((data / "kube-apiserver.log").exists)
        assert len(running_from(data)) > 1
        run.send_signal(number)
        run.wait(PATIENCE_SECONDS)
    wait_until(lambda: running_from(data) == [])
