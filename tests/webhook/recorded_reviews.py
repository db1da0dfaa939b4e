"""Records of reviews, written by the recorder of a server whose event loop is turned by hand."""

from __future__ import annotations

import datetime as dt
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from manual_loop import Loop

from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.decisions import Observation
from gpugate.webhook.admission.gate import Rules
from gpugate.webhook.admission.record_file import Folder
from gpugate.webhook.admission.recorder import Recorder
from gpugate.webhook.admission.redaction import Vocabulary, library_texts
from gpugate.webhook.admission.review import Review

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import Kind

TIME: Final = dt.datetime(2026, 11, 21, 10, tzinfo=dt.UTC)


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary(library_texts())


class Source:
    """Cluster data of an example."""

    def __init__(self, facts: Facts, kinds: tuple[Kind, ...]) -> None:
        self.kinds = kinds
        self._facts = facts

    def snapshot(self) -> Facts:
        return self._facts


def observed(ruleset: Ruleset, request: Request, facts: Facts, phase: Phase) -> Observation:
    verdict = evaluate(ruleset, request, facts, today=TIME.date(), phase=phase, template_ceiling=Stance.WARN)
    return Observation(phase, 0.001, "current", Review("u", "admission.k8s.io/v1", request), verdict, size=1000)


def record(folder: Path, ruleset: Ruleset, observations: Iterable[Observation], facts: Source | None = None) -> None:
    loop = Loop()
    recorder = Recorder(
        Folder(folder, "host-0", 1 << 28, 1 << 28),
        1.0,
        vocabulary,
        lambda: Rules(ruleset, "current"),
        lambda: TIME,
        lambda _result, _count: None,
        facts=facts,
    )
    recorder.attach(loop, SimpleNamespace(waiting=0))  # type: ignore[arg-type] -- as much of both as a recorder uses
    recorder.tick(may_snapshot=True)
    for observation in observations:
        recorder.offer(observation)
        loop.run(1)
    loop.run(600)
    recorder.close()


def hidden(number: int) -> Request:
    variables = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, {"name": "TOKEN", "value": "x"}]
    spec = {"containers": [{"name": "c", "image": "i:1", "env": variables}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{number}", "namespace": "ml"}, "spec": spec}
    kind = GroupVersionKind("", "v1", "Pod")
    return Request(kind, Operation.CREATE, pod, name=f"p-{number}", namespace="ml", user="alice")
