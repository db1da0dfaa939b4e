"""A run whose controllers do not start, or end, says why and does not wait."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from cluster.karpenter import running_karpenter
from cluster.kubeconfig import write_kubeconfig
from cluster.ports import HOST, free_ports
from cluster.process import Process, ProcessError

from harms.watched import Watched

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

PATIENCE_SECONDS = 600


def test_a_controller_that_does_not_start_says_its_last_lines(
    api: Api, control_plane: ControlPlane, tmp_path: Path
) -> None:
    nobody = f"https://{HOST}:{free_ports(1)[0]}"
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", nobody, control_plane.ca_file, control_plane.admin)
    with (
        pytest.raises(ProcessError, match=r"karpenter ended with exit code \d+ before it was ready(.|\n)*refused"),
        running_karpenter(api, kubeconfig, tmp_path),
    ):
        pass


def test_a_controller_that_ends_ends_all_waiting(control_plane: ControlPlane, tmp_path: Path) -> None:
    ending = Process("controller", [sys.executable, "-c", "print('its last words')"], tmp_path / "log")
    with (
        closing(Watched(control_plane, ending.check)) as watched,
        pytest.raises(ProcessError, match=r"controller ended with exit code 0(.|\n)*its last words"),
    ):
        watched.until(lambda: None, "anything", PATIENCE_SECONDS)
    ending.stop()
