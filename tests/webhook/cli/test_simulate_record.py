"""`gpugate simulate` on a record of reviews: a replay decides like the servers did, and like their shadow policy file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from example_laws import for_each_example
from library_examples import library_example, ruleset_of
from manual_loop import Loop
from recorded_pods import Secrets
from recorded_reviews import TIME, Source, hidden, observed, record

import gpugate.policies.catalog
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.cpu_budget import CpuBudget
from gpugate.webhook.admission.gate import Rules
from gpugate.webhook.admission.record_file import record_files
from gpugate.webhook.admission.shadow import Shadow
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.simulate.model import Simulation
from gpugate.webhook.simulate.recorded import Current, RecordReplay

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.engine.ruleset import Ruleset

    Run = Callable[..., Any]

# Every fifteenth, because each is a record of its own; `tests/policies/test_examples.py` redacts all.
FILES = sorted(Path(gpugate.policies.__file__).parent.glob("*/examples/*/*.yaml"))[::15]
HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
WARNS = f"{HEAD}policies:\n  pods/hidden-gpu-access: {{mode: warn}}\n"


@for_each_example(FILES)
def test_a_replay_with_the_same_policies_gives_the_recorded_decisions(
    file: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    example, folder = library_example(file), tmp_path_factory.mktemp("record")
    ruleset = ruleset_of(example.config)
    facts = RunFacts((*example.context, example.request), complete=True)
    observations = [observed(ruleset, example.request, facts, phase) for phase in (Phase.MUTATE, Phase.VALIDATE)]
    record(folder, ruleset, observations, Source(facts, Needs(ruleset.rules).kinds))
    replay = RecordReplay(record_files(folder), ruleset, Current(ruleset, "current"))
    assert (replay.coverage().requests, replay.coverage().not_evaluated, replay.differing) == (2, {}, 0)


@cache
def rules(mode: str) -> Ruleset:
    return bind(
        gpugate.policies.catalog.CATALOG, PolicyConfig(mode=mode)  # type: ignore[arg-type] -- a mode
    )  # fmt: skip


def requests(pods: int) -> list[Request]:
    secrets, kind = Secrets(5), GroupVersionKind("", "v1", "Pod")
    users = ("alice", "system:serviceaccount:ml:ci")
    return [
        Request(
            kind, Operation.CREATE, secrets.pod(number), name=f"pod-{number}", namespace="ml", user=users[number % 2]
        )
        for number in range(pods)
    ]


class Counted:
    def result(self, _result: str) -> None: ...

    def pair(self, *_: object) -> None: ...

    def new(self, *_: object) -> None: ...


def test_a_replay_and_a_shadow_agree_on_every_pair(tmp_path: Path) -> None:
    current, candidate = rules("warn"), rules("enforce")
    observations = [
        observed(current, request, NoFacts(), phase)
        for request in requests(60)
        for phase in (Phase.MUTATE, Phase.VALIDATE)
    ]
    loop = Loop()
    shadow = Shadow(
        NoFacts, lambda: TIME, SimpleNamespace(start=lambda _: None, stop=lambda: None, paused=CpuBudget.paused),  # type: ignore[arg-type] -- without a limit
        1.0, Counted(), tmp_path / "0.shadow", current=lambda: "current",
    )  # fmt: skip
    shadow.use(Rules(candidate, "candidate"))
    shadow.attach(loop, SimpleNamespace(waiting=0))  # type: ignore[arg-type] -- as above
    for observation in observations:
        shadow.offer(observation)
        loop.run(1)
    record(tmp_path / "record", current, observations)
    recorded = RecordReplay(record_files(tmp_path / "record"), candidate, Current(current, "current"))
    unverified = RecordReplay(record_files(tmp_path / "record"), candidate)
    expected = pairs(msgspec.json.decode(shadow.document())["owners"])
    assert len(expected) > 60
    assert pairs(msgspec.to_builtins(recorded.shadow.document)["owners"]) == expected
    assert pairs(msgspec.to_builtins(unverified.shadow.document)["owners"]) == expected


def pairs(owners: list[dict[str, Any]]) -> dict[tuple[str, ...], int]:
    return {
        (owner["object"]["name"], pair["policy"], pair["requester"], pair["current"], pair["candidate"]): pair[
            "requests"
        ]
        for owner in owners
        for pair in owner["pairs"]
    }


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A record of 20 Pods that the shipped modes deny."""
    ruleset = bind(gpugate.policies.catalog.CATALOG, PolicyConfig())
    observations = [observed(ruleset, hidden(number), NoFacts(), Phase.VALIDATE) for number in range(20)]
    record(tmp_path / "record", ruleset, observations)
    return tmp_path / "record"


def simulate(gpugate: Run, tmp_path: Path, candidate: str, *flags: str) -> Any:
    (tmp_path / "candidate.yaml").write_text(candidate)
    return gpugate("simulate", "--candidate", str(tmp_path / "candidate.yaml"), *flags, "-o", "json")


def test_the_recorded_decisions_are_those_of_the_current_policies(gpugate: Run, tmp_path: Path, recorded: Path) -> None:
    run = simulate(gpugate, tmp_path, WARNS, "--from", str(recorded))
    simulation = msgspec.json.decode(run.out, type=Simulation)
    assert (run.code, simulation.coverage.requests, simulation.current) == (0, 20, "the recorded decisions")
    assert {change.source for change in simulation.changes} == {"requests"}
    changed = {(p.policy, p.current, p.candidate) for change in simulation.changes for p in change.policies}
    assert changed == {("pods/hidden-gpu-access", "deny", "warn")}


def test_new_denials_fail_the_command(gpugate: Run, tmp_path: Path, recorded: Path) -> None:
    (tmp_path / "current.yaml").write_text(WARNS)
    flags = ("--from", str(recorded), "--current", str(tmp_path / "current.yaml"), "--max-new-denials", "0")
    run = simulate(gpugate, tmp_path, HEAD, *flags)
    simulation = msgspec.json.decode(run.out, type=Simulation)
    assert (run.code, bool(simulation.newly_denied)) == (1, True)
    assert any("was not in force" in remark for remark in simulation.remarks)


def test_a_record_is_simulated_alone(gpugate: Run, tmp_path: Path, recorded: Path) -> None:
    (tmp_path / "dump.json").write_text('{"kind": "List", "apiVersion": "v1", "items": []}')
    run = simulate(gpugate, tmp_path, HEAD, "--from", str(recorded), "--from", str(tmp_path / "dump.json"))
    assert run.code == 2
    assert "simulate logs, dumps and clusters separately" in run.err


def test_a_record_that_ends_within_a_line_is_read_up_to_there(gpugate: Run, tmp_path: Path, recorded: Path) -> None:
    (file,) = record_files(recorded)
    file.write_bytes(file.read_bytes()[:-200])
    run = simulate(gpugate, tmp_path, WARNS, "--from", str(file))
    assert run.code == 0
    assert 0 < msgspec.json.decode(run.out, type=Simulation).coverage.requests < 20


def test_an_empty_record_is_nothing_to_evaluate(gpugate: Run, tmp_path: Path, recorded: Path) -> None:
    (file,) = record_files(recorded)
    file.write_bytes(b"")
    run = simulate(gpugate, tmp_path, WARNS, "--from", str(recorded))
    assert (run.code, "no recorded requests" in run.err) == (3, True)
