"""The tables that come along are those of the releases that are pinned, and a target finds its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpugate.policies.sdk.platform import Target
from gpugate.tools.schema_tables.releases import PROJECTS
from gpugate.webhook.schemas import tables
from gpugate.webhook.schemas.check import Schemas
from gpugate.webhook.schemas.tables import TableError, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TABLES = {file.stem: read(file) for file in tables.listed(tables.BUNDLED)}
MOST_BYTES = 300_000
SINCE_SOME_RELEASE = {"autoscaling.x-k8s.io.CapacityBuffer", "karpenter.sh.NodeOverlay"}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_of_the_pinned_releases(name: str) -> None:
    table = TABLES[name]
    pinned = [(module.minor, f"{module.path}@{module.version}") for module in PROJECTS[table.project]]
    found = [(release.minor, release.source) for release in table.releases]

    assert found == (pinned[-len(found) :] if name in SINCE_SOME_RELEASE else pinned)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_in_the_file_of_its_kind(name: str) -> None:
    table = TABLES[name]

    assert f"{name}.json" == tables.file_name(table.group, table.kind)


@pytest.mark.parametrize("project", PROJECTS)
def test_the_release_that_policies_assume_is_pinned(project: str) -> None:
    assert getattr(Target(), project) in {module.minor for module in PROJECTS[project]}


def test_the_tables_stay_small() -> None:
    assert sum(file.stat().st_size for file in tables.BUNDLED.glob("*.json")) < MOST_BYTES


AROUND = {"1.14": ["1.14"], "1.9": ["1.6", "1.12"], "1.20": ["1.14"], "0.37": ["1.0"], "1.2": ["1.0", "1.3"]}


@pytest.mark.parametrize("target", AROUND)
def test_a_target_finds_its_release_or_those_around_it(target: str) -> None:
    table = TABLES["karpenter.sh.NodePool"]

    assert [release.minor for release in tables.around(table, Target(karpenter=target))] == AROUND[target]


def test_an_object_is_held_against_its_target(valid: Callable[[str], Any], problems: Callable[..., Any]) -> None:
    obj = valid("NodePool")
    obj["spec"]["disruption"]["consolidationPolicy"] = "Balanced"

    found = {minor: list(problems(obj, Target(karpenter=minor))) for minor in ("1.14", "1.13", "1.12", "1.6")}

    refused = ["spec.disruption.consolidationPolicy"]
    assert found == {"1.14": [], "1.13": [], "1.12": refused, "1.6": refused}


def test_of_a_release_between_two_only_what_both_refuse_is_told(
    valid: Callable[[str], Any], problems: Callable[..., Any]
) -> None:
    obj = valid("NodePool")
    obj["spec"] |= {"replicas": 5, "wieght": 5}

    between = problems(obj, Target(karpenter="1.8"))

    assert list(between) == ["spec.wieght"]


def test_a_table_of_the_users_goes_before(tmp_path: Path, valid: Callable[[str], Any]) -> None:
    table = TABLES["karpenter.sh.NodePool"]
    empty = msgspec.structs.replace(
        table,
        project="",
        releases=(msgspec.structs.replace(table.releases[-1], minor=""),),
        nodes=tuple(msgspec.structs.replace(node, preserve=True) for node in table.nodes),
    )
    (tmp_path / "karpenter.sh.NodePool.json").write_bytes(msgspec.json.encode(empty))
    obj = valid("NodePool")
    obj["spec"]["wieght"] = 5

    assert list(Schemas(tmp_path).problems(obj, "karpenter.sh", "v1", "NodePool", Target())) == []


HEAD = '"group": "example.com", "kind": "Thing", "project": "keda", "namespaced": true'
RELEASE = '"releases": [{"minor": "", "source": "", "served": {"v1": {"root": 0}}}]'

DOUBLING = ", ".join(f'{{"any_of": [{below}, {below}]}}' for below in range(30))
DEEPENING = ", ".join(f'{{"all_of": [{below}]}}' for below in range(1_000))


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", '{"group": 5}', "[]", '{"nodes": [{"typ": "a"}]}'),
        f'{{{HEAD}, {RELEASE}, "nodes": []}}',
        f'{{{HEAD}, {RELEASE}, "nodes": [{{"properties": {{"a": 0}}}}]}}',
        f'{{{HEAD}, {RELEASE}, "nodes": [{{"items": -1}}]}}',
        f'{{{HEAD}, {RELEASE}, "nodes": [{{"defaults": {{"a": 1}}}}]}}',
        f'{{{HEAD}, {RELEASE}, "nodes": [{{}}, {DOUBLING}]}}',
        f'{{{HEAD}, {RELEASE}, "nodes": [{{}}, {DEEPENING}]}}',
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "example.com.Thing.json"
    file.write_text(content, encoding="utf-8")

    with pytest.raises(TableError, match=r"example\.com\.Thing\.json: no table.*gpugate schema add"):
        read(file)


def test_a_table_among_the_files_that_are_checked_runs_nothing_as_it_stands(tmp_path: Path) -> None:
    rules = '[{"test": "false", "message": "forged"}, {"test": "nonsense", "written": {"rule": "self.a == 1"}}]'
    nodes = f'[{{"pattern": "(a+)+b", "rules": {rules}}}]'
    file = tmp_path / "example.com.Thing.json"
    file.write_text(f'{{{HEAD}, {RELEASE}, "nodes": {nodes}}}', encoding="utf-8")

    table = read(file)

    forged, written = table.nodes[0].rules
    assert (table.project, table.nodes[0].pattern, forged.test) == ("", "", "")
    assert written.test == "self.a == 1"
