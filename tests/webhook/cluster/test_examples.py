"""Test that policies find the same with cluster data as with a complete set of files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

from example_laws import for_each_example
from library_examples import library_example, ruleset_of

import gpugate.policies
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import Needs
from gpugate.webhook.cluster.facts import ClusterFacts
from gpugate.webhook.cluster.objects import Objects, Projection
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.objects import Kind, Request

ROOT = Path(gpugate.policies.__file__).parent
FILES = sorted(ROOT.glob("*/examples/*/*.yaml"))
TODAY = dt.date(2026, 11, 21)


def objects(kind: Kind, needs: Needs, requests: Sequence[Request]) -> Objects:
    """Return the objects as the API server lists them, each with its namespace."""
    project = Projection(kind, needs)
    stored = [
        {**request.object, "metadata": {**request.object["metadata"], "namespace": request.namespace}}  # type: ignore[dict-item] # examples have metadata
        for request in requests
        if kind.covers(request.kind) and request.object
    ]
    return Objects.of(project(obj) for obj in stored)


@for_each_example(FILES)
def test_verdicts_are_equal_with_cluster_data_and_files(file: Path) -> None:
    example = library_example(file)
    ruleset = ruleset_of(example.config)
    needs = Needs(ruleset.rules)
    requests = [with_defaults(request) for request in (*example.context, example.request)]
    facts = ClusterFacts()
    for kind in needs.kinds:
        facts.accept_writer(kind, "test")
        facts.put(kind, "test", objects(kind, needs, requests))

    verdicts = [
        evaluate(ruleset, requests[-1], known, today=TODAY) for known in (RunFacts(requests, complete=True), facts)
    ]

    assert verdicts[1] == verdicts[0]
