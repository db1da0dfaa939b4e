"""CPU time of one review from bytes to bytes, without a server."""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from captured import review
from figures import Measured, figure

from gpugate.policies.catalog import CATALOG
from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.facts import NoFacts
from gpugate.webhook.admission.gate import Gate, Rules
from gpugate.webhook.admission.policy_guard import Guard, Guarding
from gpugate.webhook.own_policies.load import load_sources
from gpugate.webhook.own_policies.sources import PolicySource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.policy import Policy

RUNS: Final = 15
FIRST_TEN: Final = {
    "nodeclasses/missing-cost-tags",
    "nodepools/incomplete-node-class-ref",
    "nodepools/legacy-api",
    "nodepools/single-instance-type",
    "pods/mig-without-claim",
    "pods/missing-cost-labels",
    "pods/missing-gpu-toleration",
    "pods/unprotected-training",
    "scaling/hpa-conflict",
    "scaling/unbounded-replicas",
}


class _Work(NamedTuple):
    name: str
    unit: str
    aim: float
    times: int
    call: Callable[[], object]


def measure() -> Iterator[Measured]:
    """Measure reviews with ten, thirty and all policies bound, with policies outside the library, and what loading takes.

    All are run in turns, so that a slow minute of the machine does not fall on one of them.
    """
    guarding = Guarding(Guard(1))
    guarding.enter(0, counts_cpu=True)
    works = (
        *_reviews("10 policies", tuple(policy for policy in CATALOG if policy.id in FIRST_TEN), 200, 400),
        *_reviews("30 policies", _share(30), 300, 1000),
        *_reviews("all policies", CATALOG, 300, 1000),
        *_largest(),
        *_own_policies(guarding),
        _Work("instance types loaded, CPU", "ms", 15, 5, load_instance_types),
    )
    runs: dict[str, list[float]] = {work.name: [] for work in works}
    for repetition in range(-1, RUNS):
        for work in works:
            seconds = _cpu(work)
            if repetition >= 0:
                runs[work.name].append(seconds)
    guarding.leave()
    for work in works:
        yield Measured(figure(work.name, runs[work.name], work.unit), work.aim)


def _reviews(bound: str, policies: tuple[Policy, ...], pod_aim: float, pool_aim: float) -> Iterator[_Work]:
    gate = Gate(Rules(bind(policies, PolicyConfig()), "bench"), NoFacts(), lambda: dt.datetime.now(dt.UTC))
    pod, pool = review("pod-create-by-job.mutate", 6144), review("nodepool-create.validate")
    patched = review("pod-create-gpu-untolerated.mutate", 6144)
    yield _Work(f"{bound}: /mutate, a Pod of 6 KB, CPU", "us", pod_aim, 400, lambda: gate.mutate(pod))
    yield _Work(f"{bound}: /mutate, a Pod of 6 KB, patched, CPU", "us", pod_aim, 400, lambda: gate.mutate(patched))
    yield _Work(f"{bound}: /validate, a Pod of 6 KB, CPU", "us", pod_aim, 400, lambda: gate.validate(pod))
    yield _Work(f"{bound}: /validate, a NodePool of 2 KB, CPU", "us", pool_aim, 200, lambda: gate.validate(pool))


def _largest() -> Iterator[_Work]:
    """Objects as large as they are evaluated, and one that is not."""
    gate = Gate(Rules(bind(CATALOG, PolicyConfig()), "bench"), NoFacts(), lambda: dt.datetime.now(dt.UTC))
    for name, containers, variables in (("at its bounds", 250, 20), ("of 2 MB", 2500, 20)):
        body = _gpu_pod(containers, variables)
        yield _Work(f"all policies: /validate, a Pod {name}, CPU", "ms", 100, 2, lambda body=body: gate.validate(body))


def _gpu_pod(containers: int, variables: int) -> bytes:
    captured = json.loads(review("pod-create-gpu-untolerated.mutate"))
    first = captured["request"]["object"]["spec"]["containers"][0]
    env = [{"name": f"SETTING_{number}", "value": "a value of ordinary length"} for number in range(variables)]
    many = [{**first, "name": f"c{number}", "env": env} for number in range(containers)]
    captured["request"]["object"]["spec"]["containers"] = many
    return json.dumps(captured).encode()


_PYTHON: Final = '''"""Pod on hardware that team {number} does not use."""

from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates

SDK = 1


@validates(POD, needs=CLAIM_NEEDS, concerns=MAY_DEMAND)
def check(pod, ctx):
    name = pod["spec", "nodeSelector", "karpenter.k8s.aws/instance-gpu-name"]
    if name.text == "h{number}" and pod["metadata", "namespace"].text and ctx.derived(gpu_demand):
        yield Violation(name.path, "selects hardware of another team")
'''
_CEL: Final = """apiVersion: gpugate.dev/v1
kind: Policy
id: acme/rule-{number}
title: Pod on hardware that team {number} does not use
why: It is reserved.
match:
  kinds: [Pod]
validations:
  - expression: >-
      gpu.pod.gpus <= {number}00 && (!has(object.spec.nodeSelector) ||
      object.spec.?nodeSelector['karpenter.k8s.aws/instance-gpu-name'].orValue('') != 'h{number}')
    message: selects hardware of another team
    path: spec.nodeSelector
"""


def _sources(count: int, language: str) -> tuple[PolicySource, ...]:
    """So many policies outside the library, each in a file of its own."""
    text, suffix = {"Python": (_PYTHON, "py"), "CEL": (_CEL, "yaml")}[language]
    return tuple(
        PolicySource("acme", f"rule_{number}", f"acme/rule_{number}.{suffix}", text.format(number=number).encode(), "")
        for number in range(1, count + 1)
    )


def _own_policies(guarding: Guarding) -> Iterator[_Work]:
    """Policies outside the library, guarded as in the server, and what it takes to load fifty."""
    guarding.guard.accept(b"bench".ljust(16))
    review_of_pod = review("pod-create-gpu-untolerated.mutate", 6144)
    aims = {0: 300, 10: 400, 25: 600, 50: 900}
    for language in ("Python", "CEL"):
        for count, aim in aims.items():
            own = [policy.policy for policy in load_sources(_sources(count, language))]
            policies = (*CATALOG, *guarding.guarded(own, b"bench".ljust(16)))
            rules = Rules(bind(policies, PolicyConfig()), "bench")
            gate = Gate(rules, NoFacts(), lambda: dt.datetime.now(dt.UTC))
            yield _Work(
                f"all policies and {count} own in {language}: /validate, a Pod of 6 KB, CPU",
                "us",
                aim,
                200,
                lambda gate=gate: gate.validate(review_of_pod),
            )
        fifty = _sources(50, language)
        yield _Work(f"50 own policies in {language} loaded, CPU", "ms", 150, 1, lambda fifty=fifty: load_sources(fifty))


def _share(count: int) -> tuple[Policy, ...]:
    """So many policies, evenly from every part of the catalogue."""
    return tuple(CATALOG[place * len(CATALOG) // count] for place in range(count))


def _cpu(work: _Work) -> float:
    """Return the seconds of CPU of one call, measured over many."""
    started = time.process_time()
    for _ in range(work.times):
        work.call()
    return (time.process_time() - started) / work.times
