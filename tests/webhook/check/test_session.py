from __future__ import annotations

import datetime as dt
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import GpugateError, PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import check
from gpugate.webhook.check.session import LocalSession
from gpugate.webhook.check.workers import WorkerError, WorkerSession
from gpugate.webhook.manifests.inputs import expand
from gpugate.webhook.own_policies.catalog import Catalog

OPTIONS = Options(dt.date(2026, 1, 1), known=frozenset(policy.id for policy in CATALOG))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fixtures of manifests, good and broken, several times."""
    fixtures = Path(__file__).parents[2] / "fixtures"
    made = tmp_path_factory.mktemp("manifests")
    for copy in range(3):
        for file in sorted([*(fixtures / "manifests").iterdir(), *(fixtures / "broken").iterdir()]):
            (made / f"{copy}-{file.name}").write_bytes(file.read_bytes())
    return made


def workers(count: int, options: Options = OPTIONS) -> WorkerSession:
    ruleset = bind(CATALOG, PolicyConfig())
    return WorkerSession(count, ruleset, Catalog(), options, LocalSession(ruleset, options))


@pytest.mark.parametrize("count", [1, 3])
def test_several_processes_find_what_one_finds(count: int, folder: Path) -> None:
    found, ruleset = list(expand([str(folder)])), bind(CATALOG, PolicyConfig())

    alone = check(found, ruleset, OPTIONS)
    together = check(found, ruleset, OPTIONS, workers(count))

    assert alone.report.findings
    assert together == alone


def test_every_file_is_a_step_when_read_and_when_judged(folder: Path) -> None:
    found, ruleset = list(expand([str(folder)])), bind(CATALOG, PolicyConfig())
    steps: list[int] = []

    check(found, ruleset, OPTIONS, step=steps.append)

    assert sum(steps) == 2 * len(found)


def test_a_process_that_dies_is_an_error_and_not_a_good_result(folder: Path) -> None:
    session = workers(2)
    os.kill(session.process_ids[0], 9)

    with pytest.raises(WorkerError, match="ended early with code -9; try --jobs 1"):
        check(list(expand([str(folder)])), bind(CATALOG, PolicyConfig()), OPTIONS, session)


def test_several_processes_report_the_errors_of_users_as_one_does(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "karpenter.sh.NodePool.json").write_text("{")
    for name in ("a", "b"):
        pool = f"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: {name}}}\n"
        (tmp_path / f"{name}.yaml").write_text(pool)
    options = replace(OPTIONS, schema_folder=tmp_path / "ours")
    found, ruleset = list(expand([str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")])), bind(CATALOG, PolicyConfig())

    said = []
    for session in (LocalSession(ruleset, options), workers(2, options)):
        with pytest.raises(GpugateError) as raised:
            check(found, ruleset, options, session)
        said.append(str(raised.value))

    assert "make it again with `gpugate schema add`" in said[0]
    assert said[0] == said[1]
