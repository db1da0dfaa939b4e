from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

SUBCOMMANDS = ("status", "wait", "disable", "enable", "rotate", "uninstall")


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_each_is_listed_and_has_help(gpugate: Callable[..., Any], subcommand: str) -> None:
    assert f"  {subcommand} " in gpugate("webhook", "--help").out
    ran = gpugate("webhook", subcommand, "--help")

    assert (ran.code, f"usage: gpugate webhook {subcommand}" in ran.out) == (0, True)


@pytest.mark.parametrize("arguments", [(), ("explode",), ("wait", "--unknown"), ("disable", "--timeout", "1")])
def test_wrong_usage(gpugate: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    assert gpugate("webhook", *arguments).code == 2


@pytest.mark.parametrize("subcommand", [("status",), ("wait",), ("disable", "--yes"), ("rotate", "--yes")])
def test_there_is_no_way_to_a_cluster(gpugate: Callable[..., Any], subcommand: tuple[str, ...], tmp_path: Any) -> None:
    ran = gpugate("webhook", *subcommand, "--kubeconfig", tmp_path / "none")

    assert (ran.code, "no kubeconfig at" in ran.err) == (2, True)
