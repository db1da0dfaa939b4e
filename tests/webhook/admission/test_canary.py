"""A secret anywhere in a review is in no answer, log line, metric or span."""

from __future__ import annotations

import base64
import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission.decisions import Observation, evaluated_kinds
from gpugate.webhook.admission.gate import Gate
from gpugate.webhook.admission.log import Log
from gpugate.webhook.admission.metrics import Metrics
from gpugate.webhook.admission.policy_reload import load_rules
from gpugate.webhook.admission.tracing import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REVIEWS = Path(__file__).parents[2] / "fixtures" / "reviews"
CANARY = "AKIACANARY-hunter2"
CONTAINER = ("request", "object", "spec", "containers", 0)


class Everything:
    """A gate, and all its output: response, log, metrics and spans."""

    def __init__(self, log_file: Path, descriptor: int) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._log_file = log_file
        self._log = Log(descriptor=descriptor)
        self._metrics = Metrics(CATALOG)
        self._tracer = Tracer(provider, evaluated_kinds(CATALOG))
        self._gate = Gate(load_rules(None), NoFacts(), lambda: dt.datetime.now(dt.UTC), self._observe)

    def _observe(self, observation: Observation) -> None:
        self._log.observe(observation)
        self._metrics.observe(observation)
        self._tracer.observe(observation)
        self._tracer.span()

    def outputs(self, phase: Phase, review: bytes) -> str:
        answer = self._gate.answer(phase, review).body
        patch = json.loads(answer).get("response", {}).get("patch", "")
        spans = [span.to_json() for span in self._exporter.get_finished_spans()]
        parts = [answer, base64.b64decode(patch), self._log_file.read_bytes(), self._metrics.exposition("")[1]]
        return "\n".join([*(part.decode() for part in parts), *spans])


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[Everything]:
    log_file = tmp_path / "log"
    with log_file.open("wb") as file:
        yield Everything(log_file, file.fileno())


def with_canary(name: str, path: tuple[str | int, ...], value: Any) -> bytes:
    review = json.loads((REVIEWS / f"{name}.json").read_bytes())
    at = review
    for key in path[:-1]:
        at = at[key] if isinstance(key, int) else at.setdefault(key, {})
    at[path[-1]] = value
    written = json.dumps(review).encode()
    assert CANARY.encode() in written
    return written


PLACES = [
    pytest.param((*CONTAINER, "env"), [{"name": "TOKEN", "value": CANARY}], id="env-value"),
    pytest.param((*CONTAINER, "env"), [{"name": "TOKEN", "value": {"a": CANARY}}], id="env-value-of-a-wrong-type"),
    pytest.param((*CONTAINER, "args"), ["--password", CANARY], id="argument"),
    pytest.param((*CONTAINER, "command"), ["sh", "-c", f"login {CANARY}"], id="command"),
    pytest.param((*CONTAINER, "image"), f"registry.example/{CANARY}:1", id="image"),
    pytest.param((*CONTAINER, "lifecycle"), {"postStart": {"exec": {"command": [CANARY]}}}, id="lifecycle-hook"),
    pytest.param(("request", "object", "metadata", "annotations"), {"example.com/token": CANARY}, id="annotation"),
    pytest.param(("request", "object", "metadata", "labels"), {"example.com/token": CANARY}, id="label"),
    pytest.param(("request", "object", "metadata", "labels"), [CANARY], id="labels-of-a-wrong-type"),
    pytest.param(("request", "object", "spec", "tolerations"), CANARY, id="tolerations-of-a-wrong-type"),
    pytest.param(("request", "object", "spec", "userData"), f"export TOKEN={CANARY}", id="user-data"),
    pytest.param(("request", "object", "data"), {"token": CANARY}, id="data"),
    pytest.param(("request", "object", CANARY), "x", id="unknown-key"),
    pytest.param(("request", "oldObject"), {"metadata": {"annotations": {"token": CANARY}}}, id="old-object"),
    pytest.param(("request", "oldObject"), CANARY, id="old-object-of-a-wrong-type"),
    pytest.param(("request", "options"), {"kind": "CreateOptions", "fieldManager": CANARY}, id="options"),
    pytest.param(("request", "userInfo", "extra"), {"token": [CANARY]}, id="user-extra"),
    pytest.param(("request", "userInfo", "groups"), [CANARY], id="group"),
    pytest.param(("request", "userInfo", "uid"), CANARY, id="user-uid"),
    pytest.param(("request", "dryRun"), CANARY, id="dry-run-of-a-wrong-type"),
    pytest.param(("request", "operation"), CANARY, id="unknown-operation"),
    pytest.param(("request", "uid"), {"a": CANARY}, id="uid-of-a-wrong-type"),
    pytest.param(("apiVersion",), CANARY, id="version"),
]


@pytest.mark.parametrize("phase", [Phase.MUTATE, Phase.VALIDATE], ids=["mutate", "validate"])
@pytest.mark.parametrize(
    "name", ["pod-create-gpu-untolerated.mutate", "pod-create-training.validate", "pod-update-by-job-controller.mutate"]
)
@pytest.mark.parametrize(("path", "value"), PLACES)
def test_a_secret_in_a_pod(
    everything: Everything, path: tuple[str | int, ...], value: Any, name: str, phase: Phase
) -> None:
    assert CANARY not in everything.outputs(phase, with_canary(name, path, value))


@pytest.mark.parametrize("name", ["ec2nodeclass-create.mutate", "nodepool-update.validate", "deployment-create.mutate"])
@pytest.mark.parametrize(("path", "value"), [place for place in PLACES if CONTAINER[-1] not in place.values[0]])
def test_a_secret_in_another_object(everything: Everything, path: tuple[str | int, ...], value: Any, name: str) -> None:
    assert CANARY not in everything.outputs(Phase.VALIDATE, with_canary(name, path, value))


def test_a_secret_in_invalid_json(everything: Everything) -> None:
    assert CANARY not in everything.outputs(Phase.VALIDATE, f'{{"token": "{CANARY}'.encode())


def test_a_secret_in_a_broken_policy(everything: Everything, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Callable[[], None]:
        raise ValueError(CANARY)

    monkeypatch.setattr("gpugate.webhook.admission.gate.evaluate", fail)
    review = (REVIEWS / "pod-create-training.validate.json").read_bytes()
    assert CANARY not in everything.outputs(Phase.VALIDATE, review)
