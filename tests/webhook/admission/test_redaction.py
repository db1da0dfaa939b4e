"""What stays of an object in a record: no secret, and everything that decides."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_pods import Secrets

import gpugate.policies.catalog  # noqa: F401 -- the library whose words are read
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk import commands
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission import redaction
from gpugate.webhook.admission.redaction import REDACTED, Vocabulary, library_texts, redacted

if TYPE_CHECKING:
    from gpugate.policies.engine.ruleset import Ruleset

POD = GroupVersionKind("", "v1", "Pod")
TODAY = dt.date(2026, 11, 21)


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary(library_texts())


def test_what_a_record_keeps_does_not_depend_on_what_is_imported() -> None:
    program = (
        "from gpugate.webhook.admission.redaction import library_texts; print(*sorted(library_texts()), sep='\\n')"
    )
    with_nothing = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout  # noqa: S603
    assert with_nothing == "\n".join([*sorted(library_texts()), ""])


def test_the_words_of_the_library_are_those_of_its_texts() -> None:
    texts = library_texts()
    # A constant of policies, and one of a module that commands import when they need it.
    assert {"nvidia.com/gpu", "HelmChart"} <= texts
    # The name of an import, and a word of a message.
    assert texts.isdisjoint({"TYPE_CHECKING", "Pod without"})


@cache
def rules() -> Ruleset:
    return bind(CATALOG, PolicyConfig())


def of_container(**fields: Any) -> dict[str, Any]:
    pod = {"kind": "Pod", "spec": {"containers": [{"name": "c", **fields}]}}
    container: dict[str, Any] = redacted(pod, vocabulary())["spec"]["containers"][0]
    return container


def leaked(secrets: Secrets, text: str) -> list[str]:
    """Return the planted secrets of which a run of eight characters or more is in a text."""
    return [
        secret for secret in secrets.planted if any(len(run) >= 8 and run in text for run in re.split(r"[^\w]", secret))
    ]


def record_of_pods(secrets: Secrets, pods: int) -> str:
    return "\n".join(json.dumps(redacted(secrets.pod(number), vocabulary())) for number in range(pods))


def test_no_planted_secret_stays() -> None:
    """`test_record.py` writes a thousand Pods to a file."""
    secrets = Secrets(1)
    text = record_of_pods(secrets, 100)
    assert len(secrets.planted) > 2_000
    assert leaked(secrets, text) == []


def unchanged(value: Any, *_: Any, **__: Any) -> Any:
    return value


MUTANTS: dict[str, tuple[object, str, object]] = {
    "values of variables": (redaction._Redaction, "_variable", lambda _self, _name, value: value),
    "words of commands": (redaction._Redaction, "_texts", lambda _self, texts: texts),
    "hidden values": (redaction, "_hidden", unchanged),
    "managed fields": (redaction, "_LEFT_OUT", frozenset()),
    "every word is known": (Vocabulary, "knows", lambda _self, _word: True),
    "every annotation is read": (Vocabulary, "reads", lambda _self, _annotation: True),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_without_a_rule_a_secret_would_stay(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, name, replacement = MUTANTS[mutant]
    monkeypatch.setattr(target, name, replacement)
    secrets = Secrets(1)
    assert leaked(secrets, record_of_pods(secrets, 50))


def decisions(pod: dict[str, Any]) -> list[tuple[object, ...]]:
    request = Request(POD, Operation.CREATE, pod, name="p", namespace="ml", user="alice")
    verdict = evaluate(rules(), request, NoFacts(), today=TODAY, phase=Phase.BOTH)
    return [
        (outcome.policy, sorted(finding.stance for finding in outcome.findings), bool(outcome.patches), outcome.skipped)
        for outcome in verdict.outcomes
    ]


def test_random_pods_are_decided_alike() -> None:
    secrets = Secrets(2)
    decided: set[str] = set()
    for number in range(150):
        pod = secrets.pod(number)
        before = decisions(pod)
        assert decisions(redacted(pod, vocabulary())) == before
        decided.update(str(policy) for policy, stances, *_ in before if stances)
    # The Pods are denied and reported for several reasons, else the comparison would show nothing.
    assert len(decided) >= 5


CASES: dict[str, tuple[list[str], list[str]]] = {
    "the value after an option": (["--token", "gpu"], ["--token", REDACTED]),
    "the value of an option": (["--api-key=gpu", "--tp=2"], [f"--api-key={REDACTED}", "--tp=2"]),
    "options with a similar name": (["--max-tokens", "512"], ["--max-tokens", "512"]),
    "a value in quotes": (["vllm --token 'gpu node pool' --tp 2"], [f"vllm --token {REDACTED} {REDACTED} {REDACTED} --tp 2"]),
    "a header": (["Authorization: Bearer gpu"], [f"{REDACTED}: {REDACTED} {REDACTED}"]),
    "a user in a URL": (["http://gpu:node@node"], [f"http://{REDACTED}@node"]),
    "numbers": (["--memory=0.95", "16Gi", "70B", "1234567"], ["--memory=0.95", "16Gi", "70B", REDACTED]),
    "a script": (["torchrun finetune_lora.py"], ["torchrun finetune_lora.py"]),
    "another alphabet": (["--name", "пароль"], ["--name", REDACTED]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_words_of_a_command(case: str) -> None:
    args, expected = CASES[case]
    assert of_container(args=args)["args"] == expected


def test_of_a_variable_only_what_policies_read_stays() -> None:
    env = {
        "NVIDIA_VISIBLE_DEVICES": ("0,1", "0,1"),
        "ANYTHING": ("gpu", REDACTED),
        "EMPTY": ("", ""),
        "STORE": ("s3://bucket", f"{REDACTED} s3://"),
        "INDEX": ("x-$(JOB_COMPLETION_INDEX)-$(OTHERTHING)", f"{REDACTED} $(JOB_COMPLETION_INDEX)"),
    }
    container = of_container(env=[{"name": name, "value": value} for name, (value, _) in env.items()])
    assert {each["name"]: each["value"] for each in container["env"]} == {name: left for name, (_, left) in env.items()}


def test_paths_and_names_of_the_object_stay_in_its_command() -> None:
    mounts = [{"name": "weights", "mountPath": "/mnt/fastcache"}]
    container = of_container(args=["--download-dir", "/mnt/fastcache", "/mnt/othercache"], volumeMounts=mounts)
    assert container["args"] == ["--download-dir", "/mnt/fastcache", f"/mnt/{REDACTED}"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/healthz", "/healthz"),
        ("/healthz?", "/healthz?"),
        ("/healthz?code=Zebra42x", f"/healthz?{REDACTED}"),
        ("/healthz?a=1?b=Zebra42x", f"/healthz?{REDACTED}"),
    ],
)
def test_the_query_of_a_probe_is_removed(path: str, expected: str) -> None:
    container = of_container(livenessProbe={"httpGet": {"path": path, "port": 80}})
    assert container["livenessProbe"]["httpGet"] == {"path": expected, "port": 80}


@pytest.mark.parametrize(
    "field",
    [
        pytest.param({"livenessProbe": {"httpGet": {"path": "/healthz?code=Zebra42x"}}}, id="the query of a path"),
        pytest.param({"image": "https://acme:Zebra42x@registry.example/a"}, id="the user in a URL"),
    ],
)
def test_the_words_of_a_removed_value_do_not_stay_in_a_command(field: dict[str, Any]) -> None:
    assert of_container(args=["Zebra42x"], **field)["args"] == [REDACTED]


def test_a_key_that_is_named_like_a_secret_hides_what_is_below() -> None:
    obj = {"spec": {"apiToken": "gpu", "auth": {"user": ["gpu"], "port": 80}, "topologyKeys": ["gpu"]}}
    expected = {"spec": {"apiToken": REDACTED, "auth": {"user": [REDACTED], "port": 80}, "topologyKeys": ["gpu"]}}
    assert redacted(obj, vocabulary()) == expected


def test_the_object_is_unchanged() -> None:
    secrets = Secrets(3)
    pod = secrets.pod(0)
    before = json.dumps(pod)
    redacted(pod, vocabulary())
    assert json.dumps(pod) == before


def test_words_of_a_policy_file_are_known() -> None:
    extended = vocabulary().extended(["params: {prefixes: ['acme-store://']}", "acme.example/annotation"])
    assert (extended.knows("acme"), vocabulary().knows("acme")) == (True, False)
    assert extended.reads("acme.example/annotation")


PATTERNS = {
    name: pattern
    for name in ("_TRAINING", "_BENCH", "_OTHERWISE")
    for pattern in [getattr(commands, name)]
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_what_a_pattern_of_the_library_finds_stays(name: str, data: st.DataObject) -> None:
    """Its code contains the words only in parts, so `_FORMS` has them."""
    pattern: re.Pattern[str] = PATTERNS[name]
    word = data.draw(st.from_regex(pattern, fullmatch=True))
    (text,) = of_container(args=[f"{word}.py"])["args"]
    assert pattern.search(text)


@pytest.mark.parametrize("unit", ["eyJ", "://", "--token ", "a=", "'", "sk-", "{{", "0", "hf_", "$(", "-----BEGIN "])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    """With quadratic time it would take minutes."""
    (text,) = of_container(args=[unit * 300_000])["args"]
    assert len(text) <= 10 * len(unit) * 300_000
