"""Audits for tests: what the shipped policies find in their own examples, in a cluster of any size."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.audit.model import (
    Action,
    AllocatedGpus,
    Audited,
    AuditReport,
    Cluster,
    Cost,
    Finding,
    Fix,
    NotEvaluated,
    PendingOwner,
    PendingPods,
    PoolFailure,
    PoolUse,
    Summary,
    Unbounded,
    Wasted,
    worst,
)
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import check
from gpugate.webhook.manifests.inputs import expand
from gpugate.webhook.report.located import Located, ObjectName, Sort

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TIME: Final = dt.datetime(2026, 8, 24, 10, 17, tzinfo=dt.UTC)
POLICIES: Final = Path(__file__).parents[2] / "policies"
TEAMS: Final = ("llm", "vision", "speech", "search", "research", "recommendations", "robotics", "platform")
NAMES: Final = ("pretrain", "finetune", "embedder", "ranker", "notebooks", "chat", "vllm", "whisper", "eval", "batch")
PRICES: Final = {"h100": 6.88, "a100": 2.74, "l40s": 2.62, "l4": 0.8}
WORKLOADS: Final = {"Deployment", "StatefulSet", "Job", "CronJob", "Pod", "ReplicaSet", "DaemonSet"}
NAMESPACED: Final = WORKLOADS | {
    "ScaledObject",
    "ScaledJob",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "ResourceClaim",
    "ResourceClaimTemplate",
}
_ACTIONS: Final = {Stance.ENFORCE: Action.DENY, Stance.WARN: Action.WARN, Stance.AUDIT: Action.RECORD}
_ORDER: Final = list(Action)


@cache
def findings_by_object() -> tuple[tuple[ObjectName, tuple[Finding, ...]], ...]:
    """Objects of the bad examples of every policy, with what was found in them."""
    folders = sorted(str(path) for path in POLICIES.glob("*/examples/*"))
    files = [str(path) for folder in folders for path in sorted(Path(folder).glob("bad-*.yaml"))[:3]]
    options = Options(today=TIME.date(), known=frozenset(policy.id for policy in CATALOG))
    report = check(list(expand(files)), bind(CATALOG, PolicyConfig()), options).report
    by_object: dict[tuple[str, ObjectName], list[Finding]] = {}
    for located in report.findings:
        if located.object is not None and located.policy:
            by_object.setdefault((located.location.file, located.object), []).append(finding(located))
    return tuple((name, tuple(found)) for (_, name), found in by_object.items())


def finding(located: Located) -> Finding:
    stance = located.stance if located.stance is not None else Stance.AUDIT
    action = Action.MUTATE if located.sort is Sort.PATCH else _ACTIONS[stance]
    return Finding(
        located.policy,
        located.path,
        located.message,
        stance.word,
        action,
        located.why,
        located.hint,
        located.note,
        Fix.of(located.fix),
        located.patches,
        located.template_of,
    )


def objects(findings: int) -> Iterator[Audited]:
    """Objects of a cluster, with at least so many findings in all."""
    chance, count = random.Random(7), 0  # noqa: S311 -- figures for a table
    # One object is only mutated, regardless of the number of examples.
    mutated = next(each for each in findings_by_object() if worst(each[1]) is Action.MUTATE)
    for number in itertools.count():
        if count >= findings:
            return
        name, found = mutated if number == 1 else findings_by_object()[number * 17 % len(findings_by_object())]
        namespace = f"team-{TEAMS[number % len(TEAMS)]}" if name.kind in NAMESPACED else ""
        suffix = f"-{number // 10}" if number >= 10 else ""
        renamed = replace(name, namespace=namespace, name=f"{NAMES[number * 7 % len(NAMES)]}{suffix}")
        allocated, pods = (), 0
        if name.kind in WORKLOADS:
            model, pods = chance.choice(list(PRICES)), chance.randint(1, 4)
            gpus = float(pods * chance.choice((1, 1, 2, 8)))
            allocated = (AllocatedGpus("nvidia.com/gpu", model, gpus, round(gpus * PRICES[model], 3)),)
        count += len(found)
        yield Audited.of(renamed, found, uid=f"uid-{number}", pods=pods, allocated=allocated)


def with_audited(report: AuditReport, audited: Iterable[Audited]) -> AuditReport:
    """The same audit of other objects."""
    objects = tuple(audited)
    return replace(report, audited=objects, summary=Summary.of(objects))


def all_different(report: AuditReport, *, namespaces: bool = False, alone: bool = False) -> AuditReport:
    """The same findings, each with a message of its own; each object in a namespace of its own, or each finding in one."""
    made = []
    for number, each in enumerate(report.audited):
        said = [replace(found, message=f"{found.message} ({number}.{n})") for n, found in enumerate(each.findings)]
        for n, findings in enumerate([(found,) for found in said] if alone else [tuple(said)]):
            name = each.object
            if namespaces or alone:
                name = replace(name, namespace=f"tenant-{number}-{n}", name=f"{name.name}-{n}")
            made.append(replace(each, object=name, uid=f"{each.uid}-{n}", action=worst(findings), findings=findings))
    return with_audited(report, sorted(made, key=lambda a: _ORDER.index(a.action)))


def audit(findings: int = 120) -> AuditReport:
    """An audit as one of a cluster looks like."""
    found = list(objects(findings))
    lone = next(index for index, each in enumerate(found) if len(each.findings) == 1)
    (exempt,) = found[lone].findings
    exempt = replace(exempt, mode="audit", action=Action.RECORD, note="exempt until 2026-12-31: INC-4312")
    found[lone] = replace(found[lone], action=exempt.action, findings=(exempt,))
    found += [
        Audited.of(
            ObjectName("apps/v1", "Deployment", f"team-{TEAMS[n % len(TEAMS)]}", f"web-{n}"), uid=f"ok-{n}", pods=2
        )
        for n in range(findings)
    ]
    found[-1] = replace(found[-1], skipped={"scaling/gpu-ceiling": "NodePools could not be listed"})
    found.sort(key=lambda a: (_ORDER.index(a.action), -sum(h.usd_per_hour or 0 for h in a.allocated), str(a.object)))
    prices = [(a.action, h.usd_per_hour or 0.0) for a in found for h in a.allocated]
    pool = ObjectName("karpenter.sh/v1", "NodePool", "", "gpu-h100")
    return AuditReport(
        gpugate="0.1.0",
        summary=Summary.of(found),
        cluster=Cluster("prod-us-east-1", "v1.36.3", "arn:aws:sts::111122223333:assumed-role/platform/ana"),
        time=TIME,
        generation="3f9c2a71",
        target="Kubernetes 1.36, Karpenter 1.14, KEDA 2.20",
        audited=tuple(found),
        counts={
            "NodePool": 6,
            "EC2NodeClass": 2,
            "Node": 42,
            "Pod": 1412,
            "ScaledObject": 18,
            "ResourceClaimTemplate": 7,
        },
        not_evaluated=(
            NotEvaluated("ResourceClaim", "forbidden: may not list resourceclaims in resource.k8s.io"),
            NotEvaluated("DeviceClass", "the API server does not serve it"),
            NotEvaluated("Pod", "their owner could not be read", 2),
        ),
        coverage=0.973,
        cost=Cost(
            prices="On-demand list prices, us-east-1, table of 2026-07-20; Spot, savings plans and discounts not counted",
            at_risk=round(sum(usd for action, usd in prices if action is Action.DENY), 2),
            allocated=round(sum(usd for _, usd in prices), 2),
            idle=27.52,
            unbounded=(
                Unbounded(pool, "has no limit for nvidia.com/gpu", None),
                Unbounded(
                    ObjectName("keda.sh/v1alpha1", "ScaledObject", "team-llm", "chat"),
                    "has no maxReplicaCount",
                    688.0,
                    "chat",
                ),
            ),
            wasted=(
                Wasted(replace(pool, name="gpu-mixed"), "1-GPU Pods on p5.48xlarge leave 7 GPUs to nobody", 7.0, 48.16),
            ),
            pools=(
                PoolUse("gpu-h100", "p5.48xlarge", 6, 48.0, 44.0, 330.24),
                PoolUse("gpu-h100", "p5.4xlarge", 4, 4.0, 4.0, 27.52),
                PoolUse("gpu-l40s", "g6e.12xlarge", 5, 20.0, 12.0, 52.46),
                PoolUse("inference", "g6.xlarge", 14, 14.0, 13.0, 11.27),
                PoolUse("", "p4d.24xlarge", 1, 8.0, 8.0, 21.96),
                PoolUse("mig", "p4d.24xlarge", 2, 16.0, 9.5, 43.92),
            ),
            unpriced_gpus=3.0,
            spend=round(sum(usd for _, usd in prices), 2) + 27.52,
            unallocated=27.52,
        ),
        pending=(
            PendingPods(
                "NodePool gpu-h100: its limit leaves 4 nvidia.com/gpu, and every instance type that fits the Pod has more; "
                "NodePool inference: taint nvidia.com/gpu:NoSchedule is not tolerated",
                "in NodePool gpu-h100, raise its limit of nvidia.com/gpu",
                3,
                (
                    PendingOwner(ObjectName("batch/v1", "Job", "team-llm", "pretrain"), 2, "pretrain-x7x2k"),
                    PendingOwner(ObjectName("v1", "Pod", "research", "notebook-1"), 1, "notebook-1"),
                ),
                (
                    PoolFailure("gpu-h100", "limits", "its limit leaves 4 nvidia.com/gpu", "raise its limit"),
                    PoolFailure("inference", "taints", "taint nvidia.com/gpu:NoSchedule is not tolerated", ""),
                ),
            ),
        ),
        expired=("“notebooks until the move” of research ended on 2026-06-30",),
        unused=("“legacy-*” of platform matches no NodePool",),
        remarks=("ScaledObject team-llm/chat changed while it was read; the second reading counts",),
    )


def hostile() -> AuditReport:
    """An audit whose every text tries to be more than a text."""
    nasty = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!--\u202egnp.exe\u2066\x1b[31m\r\n::error::x"
    one = findings_by_object()[0][1][0]
    evil = replace(one, policy=nasty, path=nasty, message=nasty, why=nasty, hint=nasty, note=nasty, template_of=nasty)
    name = ObjectName(nasty, nasty, nasty, nasty)
    whole = audit(10)
    cost = whole.cost
    assert cost is not None
    gpus = AllocatedGpus(nasty, nasty, 1.0, 1.0)
    return replace(
        with_audited(whole, [Audited.of(name, (evil,), uid=nasty, pods=1, allocated=(gpus,), skipped={nasty: nasty})]),
        cluster=Cluster(nasty, nasty, nasty),
        generation=nasty,
        target=nasty,
        counts={nasty: 1},
        not_evaluated=(NotEvaluated(nasty, nasty, 1),),
        cost=replace(
            cost,
            prices=nasty,
            unbounded=(Unbounded(name, nasty, 1.0, nasty),),
            wasted=(Wasted(name, nasty, 1.0, None),),
            pools=(PoolUse(nasty, nasty, 1, 2.0, 1.0, None),),
        ),
        pending=(
            PendingPods(nasty, nasty, 1, (PendingOwner(name, 1, nasty),), (PoolFailure(nasty, nasty, nasty, nasty),)),
        ),
        expired=(nasty,),
        unused=(nasty,),
        remarks=(nasty,),
    )
