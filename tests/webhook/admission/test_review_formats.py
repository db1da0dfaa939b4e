"""Every part of a verdict in the text and the JSON of `gpugate review`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gpugate.policies.engine.verdict import Finding, Outcome, TemplatePatch, Verdict
from gpugate.policies.sdk.findings import Patch, Stance, Violation
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.review_formats import write_json, write_text

JOB = GroupVersionKind("batch", "v1", "Job")
BEFORE = {"metadata": {"name": "train"}, "spec": {"a": 1}}
AFTER = {"metadata": {"name": "train"}, "spec": {"a": 2}}
SET = Patch("set", ("spec", "a"), 2, "sets a")
REQUEST = Request(JOB, Operation.CREATE, BEFORE, name="train", namespace="ml", user="alice")
WRONG = Violation(("spec",), "must be an object")
DENIED = Finding("jobs/a", ("spec", "a"), "is 1", Stance.ENFORCE, "Set it to 2", template_of=JOB, note="as before")
ALL = Verdict(
    REQUEST,
    (
        Outcome("jobs/a", Stance.ENFORCE, (DENIED,)),
        Outcome("jobs/b", Stance.WARN, (Finding("jobs/b", (), "warns", Stance.WARN),)),
        Outcome("jobs/c", Stance.AUDIT, (Finding("jobs/c", (), "records", Stance.AUDIT),)),
        Outcome("jobs/d", Stance.OFF, (Finding("jobs/d", (), "notes", Stance.OFF),)),
        Outcome("jobs/e", Stance.ENFORCE, patches=(SET,), template_patches=(TemplatePatch(SET, JOB),)),
        Outcome("jobs/f", Stance.ENFORCE, skipped=("no NodePools",)),
        Outcome("jobs/g", Stance.WARN, error="KeyError"),
    ),
    (WRONG, replace(WRONG, at_most=Stance.WARN), replace(WRONG, at_most=Stance.OFF)),
    AFTER,
    ({"op": "replace", "path": "/spec/a", "value": 2},),
)
# The decision, the reasons by kind, and the difference between what was sent and what is stored.
TEXT = """\
DENIED: CREATE of Job train in ml by alice
  deny   spec: must be an object
  warn   spec: must be an object
  note   spec: must be an object
  deny   [jobs/a] spec.a: is 1 (Pods of this Job)
         Set it to 2
         as before
  warn   [jobs/b] warns
  record [jobs/c] records
  note   [jobs/d] notes
  mutate [jobs/e] sets a
         set spec.a: 2
  mutate [jobs/e] sets a (Pods of this Job, when they are created)
         set spec.a: 2
  skip   [jobs/f] not evaluated: no NodePools
  error  [jobs/g] failed on this object: KeyError

--- Job/train as sent
+++ Job/train as stored
@@ -1,4 +1,4 @@
 metadata:
   name: train
 spec:
-  a: 1
+  a: 2
"""


def test_the_text_of_a_verdict() -> None:
    assert write_text(ALL) == TEXT


@pytest.mark.parametrize(
    ("verdict", "first"),
    [
        (Verdict(REQUEST, object=BEFORE), "ALLOWED: CREATE of Job train in ml by alice"),
        (
            Verdict(REQUEST, (Outcome("jobs/e", Stance.ENFORCE, patches=(SET,)),)),
            "ALLOWED, mutated: CREATE of Job train in ml by alice",
        ),
        (Verdict(replace(REQUEST, namespace="", user="")), "ALLOWED: CREATE of Job train"),
        (Verdict(replace(REQUEST, name="a\x1b[2J")), "ALLOWED: CREATE of Job a\ufffd[2J in ml by alice"),
    ],
    ids=["allowed", "mutated", "neither namespace nor user", "control characters"],
)
def test_the_first_line_is_the_decision(verdict: Verdict, first: str) -> None:
    assert write_text(verdict).splitlines()[0] == first


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(REQUEST, object=AFTER),
        Verdict(REQUEST, operations=ALL.operations),
        Verdict(replace(REQUEST, object=None), object=AFTER, operations=ALL.operations),
    ],
    ids=["no operations", "nothing stored", "nothing sent"],
)
def test_without_a_change_there_is_no_difference(verdict: Verdict) -> None:
    assert write_text(verdict) == "ALLOWED: CREATE of Job train in ml by alice\n"


def test_control_characters_of_an_object_are_replaced() -> None:
    found = Finding("jobs/a", (), "is \x1b[2J", Stance.WARN)
    sent, stored = ({**BEFORE, "spec": {"\x9b": value}} for value in "ab")
    verdict = Verdict(
        replace(REQUEST, object=sent), (Outcome("jobs/a", Stance.WARN, (found,)),), (), stored, ALL.operations
    )
    assert write_text(verdict).replace("\n", "").isprintable()


def test_the_json_of_a_verdict() -> None:
    text = write_json(ALL)
    assert text.startswith('{\n  "schema": "gpugate.dev/review/v1",\n')
    assert text.endswith("\n}\n")
    plain = {"hint": "", "note": "", "path": "", "template_of": None}
    assert json.loads(text) == {
        "schema": "gpugate.dev/review/v1",
        "allowed": False,
        "denials": ["spec: must be an object", "[jobs/a] spec.a: is 1"],
        "warnings": ["spec: must be an object", "[jobs/b] warns", "[jobs/g] failed: KeyError"],
        "findings": [
            {
                "policy": "jobs/a",
                "path": "spec.a",
                "message": "is 1",
                "mode": "enforce",
                "hint": "Set it to 2",
                "note": "as before",
                "template_of": "Job",
            },
            {"policy": "jobs/b", "message": "warns", "mode": "warn", **plain},
            {"policy": "jobs/c", "message": "records", "mode": "audit", **plain},
            {"policy": "jobs/d", "message": "notes", "mode": "off", **plain},
        ],
        "malformed": [{"path": "spec", "message": "must be an object"}] * 3,
        "skipped": [{"policy": "jobs/f", "reason": "no NodePools"}],
        "errors": [{"policy": "jobs/g", "error": "KeyError"}],
        "patch": [{"op": "replace", "path": "/spec/a", "value": 2}],
        "object": AFTER,
    }
