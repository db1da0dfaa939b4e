from __future__ import annotations

import json as decoder

from gpugate.policies.sdk.findings import Patch, Patches, Replacement, Stance
from gpugate.policies.sdk.unknown_kinds import UnknownKind
from gpugate.webhook.report import json
from gpugate.webhook.report.located import Located, Location, ObjectName, Report, Severity, Skipped, Sort, Suppressed

PATCH = Patch("append", ("spec", "tolerations"), {"key": "nvidia.com/gpu"}, "adds a toleration")
FINDING = Located(
    Sort.VIOLATION,
    Severity.ERROR,
    "is wrong",
    Location("a.yaml", 3, 5, 9, ("a: 1",), 3),
    policy="pods/wrong",
    object=ObjectName("v1", "Pod", "ml", "trainer"),
    path="spec.tolerations",
    stance=Stance.ENFORCE,
    hint="write another",
    fix=Patches((PATCH,), safe=True),
    template_of="Job",
)


def test_a_finding_has_every_field() -> None:
    (found,) = decoder.loads(json.write(Report((FINDING,))))["findings"]

    patch = {
        "op": "append",
        "path": ["spec", "tolerations"],
        "value": {"key": "nvidia.com/gpu"},
        "reason": "adds a toleration",
    }
    assert found == {
        "sort": "violation",
        "severity": "error",
        "policy": "pods/wrong",
        "docs": None,
        "message": "is wrong",
        "object": {"apiVersion": "v1", "kind": "Pod", "namespace": "ml", "name": "trainer"},
        "template_of": "Job",
        "file": "a.yaml",
        "line": 3,
        "column": 5,
        "end_column": 9,
        "related": [],
        "rendered_line": None,
        "rendered_with": [],
        "unrendered": None,
        "without_patches": False,
        "path": "spec.tolerations",
        "mode": "enforce",
        "at_admission": "Pods of this Job would be DENIED (enforce)",
        "note": "",
        "hint": "write another",
        "fix": {"safe": True, "patches": [patch]},
        "patches": [],
    }


def test_what_no_policy_found_has_nulls() -> None:
    finding = Located(Sort.UNREADABLE, Severity.ERROR, "not YAML", Location("a.yaml", 1, 1, 2))

    (found,) = decoder.loads(json.write(Report((finding,))))["findings"]

    assert [found[key] for key in ("policy", "object", "mode", "fix", "template_of")] == [None] * 5


def test_a_replacement_has_its_objects() -> None:
    finding = Located(
        Sort.VIOLATION, Severity.ERROR, "old", Location("a.yaml"), fix=Replacement(({"kind": "NodePool"},))
    )

    (found,) = decoder.loads(json.write(Report((finding,))))["findings"]

    assert found["fix"] == {"safe": False, "objects": [{"kind": "NodePool"}]}


def test_the_summary_names_schema_counts_and_exit_code() -> None:
    report = Report((FINDING,), (Skipped("a/b", "needs Jobs", 2),), 3, 2, 10, 1, (), "Kubernetes 1.36", 1)

    document = decoder.loads(json.write(report))

    assert document["schema"] == "gpugate.dev/check/v1"
    assert document["skipped"] == [{"policy": "a/b", "reason": "needs Jobs", "objects": 2}]
    assert document["summary"] == {
        "objects": 3,
        "files": 2,
        "policies": 10,
        "passed_over": 1,
        "passed_over_by_reason": {},
        "hidden_files": 0,
        "errors": 1,
        "warnings": 0,
        "notes": 0,
        "suppressed": 0,
        "fixed": 0,
        "target": "Kubernetes 1.36",
        "exit_code": 1,
    }


def test_kinds_that_no_policy_knows_are_listed() -> None:
    unknown = (UnknownKind("example.com/v1", "Train", 3, 2),)
    document = decoder.loads(json.write(Report((), unknown_kinds=unknown)))
    assert document["unknown_kinds"] == [
        {"apiVersion": "example.com/v1", "kind": "Train", "objects": 3, "gpu_objects": 2}
    ]


def test_what_a_comment_lets_pass_has_its_reason() -> None:
    document = decoder.loads(json.write(Report((), suppressed=(Suppressed(FINDING, "agreed"),))))

    (passing,) = document["suppressed"]
    assert (passing["policy"], passing["line"], passing["reason"]) == ("pods/wrong", 3, "agreed")
    assert (document["findings"], document["summary"]["suppressed"]) == ([], 1)
