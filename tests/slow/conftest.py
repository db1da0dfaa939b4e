"""Whole servers under load and faults: `pytest tests/slow [--counts full]`.

Fixtures: `serve(...)` starts a server, `load(server, ...)` a checked load on it, `stall(server, kind, ...)` stalled
connections, `balance(lag)` a balancer, and `fleet` replicas with their own certificates behind a balancer. All end with
the test. `counts(small, full)` selects the number of repetitions, and `show(name, figures)` prints a line at the end of
the run.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from harness.fleet import Fleet
from harness.load import Plan
from harness.running import RunningBalancer, RunningLoad, RunningStalls
from harness.server import Server
from harness.stall_kinds import kinds
from harness.stalls import SOURCES
from kept.cluster import KeptCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harness.balancer import Address

FIGURES = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, default=1, help="how long the soak goes on")
    parser.addoption("--counts", choices=("small", "full"), default="small", help="how often the slow tests do a thing")


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    # These tests run only if the command line names this folder or one of its tests.
    folder = Path(__file__).parent
    named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return None if any(path.resolve().is_relative_to(folder) for path in named) else True


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if lines := config.stash.get(FIGURES, []):
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture
def counts(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    full = request.config.getoption("counts") == "full"
    return lambda few, many: many if full else few


@pytest.fixture
def show(request: pytest.FixtureRequest) -> Callable[[str, Mapping[str, object]], None]:
    def write(name: str, figures: Mapping[str, object]) -> None:
        line = f"{name:<36} " + "  ".join(f"{key} {value}" for key, value in figures.items())
        request.config.stash.setdefault(FIGURES, []).append(line)

    return write


@pytest.fixture
def closing() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def serve(closing: contextlib.ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Server]:
    def start(*flags: str, **how: Any) -> Server:
        server = Server(tmp_path_factory.mktemp("server"), *flags, **how)
        closing.callback(server.stop)
        return server

    return start


@pytest.fixture
def load(closing: contextlib.ExitStack) -> Callable[..., RunningLoad]:
    def start(target: Server | Address, ca_file: Path | None = None, **plan: Any) -> RunningLoad:
        address = target.address if isinstance(target, Server) else target
        trusted = ca_file or (target.ca_file if isinstance(target, Server) else Path())
        running = RunningLoad(Plan(address, trusted, **plan))
        closing.callback(running.close)
        return running

    return start


@pytest.fixture
def stall(closing: contextlib.ExitStack) -> Callable[..., RunningStalls]:
    def start(
        server: Server, kind: str, number: int, sources: tuple[str, ...] = SOURCES, *, again: bool = True
    ) -> RunningStalls:
        running = RunningStalls(server.address, kinds()[kind], number, sources, again=again)
        closing.callback(running.close)
        return running

    return start


@pytest.fixture
def balance(closing: contextlib.ExitStack) -> Callable[[float], RunningBalancer]:
    def start(lag: float) -> RunningBalancer:
        running = RunningBalancer(lag)
        closing.callback(running.close)
        return running

    return start


@pytest.fixture
def fleet_in(
    closing: contextlib.ExitStack,
    balance: Callable[[float], RunningBalancer],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[KeptCluster], Fleet]:
    def start(cluster: KeptCluster) -> Fleet:
        closing.callback(cluster.api.stop)
        cluster.api.start()
        return Fleet(cluster, balance(1), lambda: tmp_path_factory.mktemp("replica"), closing)

    return start


@pytest.fixture
def fleet(fleet_in: Callable[[KeptCluster], Fleet]) -> Fleet:
    return fleet_in(KeptCluster())
