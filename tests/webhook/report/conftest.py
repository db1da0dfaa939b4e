from __future__ import annotations

import pytest

from gpugate.policies.sdk.findings import Patch, Patches, Stance
from gpugate.webhook.report.located import Located, Location, ObjectName, Report, Severity, Skipped, Sort

POD = ObjectName("v1", "Pod", "ml", "trainer")


@pytest.fixture
def denial() -> Located:
    return Located(
        Sort.VIOLATION,
        Severity.ERROR,
        "is wrong | 100%",
        Location("a b/pod.yaml", 3, 5, 9, ("a: 1",), 3),
        policy="pods/missing-gpu-toleration",
        object=POD,
        path="spec.tolerations",
        stance=Stance.ENFORCE,
        hint="write another",
        fix=Patches((Patch("set", ("spec", "a"), 1, "adds a"),), safe=True),
    )


@pytest.fixture
def report(denial: Located) -> Report:
    """Two errors, a warning and a note in two files; one of three files is clean."""
    warning = Located(
        Sort.VIOLATION,
        Severity.WARNING,
        "is doubtful",
        Location("a b/pod.yaml", 2, 1, 4),
        policy="pods/doubtful",
        object=POD,
        path="spec",
        stance=Stance.WARN,
    )
    note = Located(
        Sort.PATCH, Severity.NOTE, "adds a", Location("a b/pod.yaml", 9, 1, 2), policy="pods/adds", object=POD
    )
    lost = Located(Sort.UNREADABLE, Severity.ERROR, "not YAML", Location("b.yaml", 1, 2, 3), hint="remove it")
    return Report(
        (warning, denial, note, lost),
        (Skipped("pods/blind", "needs Jobs", 2),),
        objects=3,
        files=3,
        policies=4,
        exit_code=1,
        names=("a b/pod.yaml", "b.yaml", "clean.yaml"),
    )
