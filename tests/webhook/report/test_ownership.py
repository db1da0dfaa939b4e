"""The controller of an object, as its owner references name it."""

from __future__ import annotations

from typing import Any

import pytest

from gpugate.webhook.report.ownership import controller

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "1", "controller": True}


@pytest.mark.parametrize(
    ("references", "kind"),
    [
        pytest.param([JOB], "Job", id="a-controller"),
        pytest.param([{**JOB, "controller": False}], None, id="an-owner-that-is-no-controller"),
        pytest.param([{**JOB, "kind": "Node"}], None, id="a-node"),
        pytest.param([{**JOB, "kind": ["Node"]}], "['Node']", id="a-kind-of-a-wrong-type"),
        pytest.param(["Job", None, JOB], "Job", id="after-references-of-a-wrong-type"),
        pytest.param({"kind": "Job"}, None, id="no-list"),
    ],
)
def test_the_controller_of_an_object(references: Any, kind: str | None) -> None:
    found = controller({"metadata": {"ownerReferences": references}})
    assert (found.kind if found else None) == kind
