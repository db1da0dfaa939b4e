from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from library_examples import read_example

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.webhook.manifests.load import RunFacts

ROOT = Path(gpugate.policies.__file__).parent
FILES = sorted(ROOT.glob("*/examples/*/*.yaml"))
TODAY = dt.date(2026, 11, 21)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)).replace("/examples", ""))
def test_policies_read_no_more_of_other_objects_than_they_declare(file: Path) -> None:
    example = read_example(file.name, file.read_text())
    ruleset = bind(CATALOG, example.config)
    whole = [with_defaults(request) for request in (*example.context, example.request)]
    projected = [fact for fact in map(Needs(ruleset.rules).project, whole) if fact]

    verdicts = [
        evaluate(ruleset, whole[-1], RunFacts(facts, complete=example.complete), today=TODAY)
        for facts in (whole, projected)
    ]

    assert verdicts[1] == verdicts[0]
