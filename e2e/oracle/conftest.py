"""The field's own code as the judge of ours: `make oracle`, or `pytest e2e/oracle [--counts full]`.

Fixture: `oracle`, one process for all tests. `small` asks the same questions each time, `full` others.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest
from oracle.process import Oracle
from property_inputs import load_profile

import tools

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

CASES = {"small": 500, "full": 20_000}
FIGURES = pytest.StashKey[list[str]]()
ORACLE = pytest.StashKey[Oracle]()


def pytest_addoption(parser: pytest.Parser) -> None:
    # Where the slow tests are collected too, they have made the same option.
    with contextlib.suppress(ValueError):
        parser.addoption("--counts", choices=tuple(CASES), default="small", help="how many random cases there are")


def pytest_configure(config: pytest.Config) -> None:
    counts = config.getoption("counts")
    load_profile("oracle", max_examples=CASES[counts], same=counts == "small")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    oracle = item.config.stash.get(ORACLE, None)
    before, started = oracle.asked if oracle else 0, time.monotonic()
    result = yield
    if oracle:
        asked, seconds = oracle.asked - before, time.monotonic() - started
        line = f"{item.name:<72} {asked:>6} cases {seconds:>6.1f} s {asked / seconds:>8,.0f}/s"
        item.config.stash.setdefault(FIGURES, []).append(line)
    return result


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if lines := config.stash.get(FIGURES, []):
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def oracle(pytestconfig: pytest.Config) -> Iterator[Oracle]:
    with contextlib.closing(Oracle(tools.path("oracle"))) as process:
        pytestconfig.stash[ORACLE] = process
        yield process
