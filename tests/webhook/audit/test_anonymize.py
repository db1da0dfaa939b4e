from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
from pathlib import Path

import pytest
from clusters import costed, inventory, node, pod
from dumps import CATALOG, scanned
from msgspec.structs import replace

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.engine.config import Exemption, PolicyConfig
from gpugate.policies.sdk.findings import Patch, Patches, Replacement
from gpugate.webhook.audit.anonymize import anonymize, anonymize_comparison, pseudonyms
from gpugate.webhook.audit.comparison import Changed, Comparison
from gpugate.webhook.audit.cost.prices import Prices
from gpugate.webhook.audit.formats.names import FORMATS, render
from gpugate.webhook.audit.formats.presentation import Presentation
from gpugate.webhook.audit.model import (
    Action,
    Audited,
    AuditReport,
    Cluster,
    Finding,
    Fix,
    NotEvaluated,
    PendingOwner,
    PendingPods,
    PoolFailure,
    Summary,
)
from gpugate.webhook.report.located import ObjectName

MANIFESTS = Path(__file__).parents[2] / "fixtures" / "manifests"
CANARY = "zq"
TIME = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
NAME = ObjectName("apps/v1", "Deployment", "zqspace", "zqapp")


def report(**finding: object) -> AuditReport:
    found = Finding(
        **{"policy": "pods/x", "path": "", "message": "", "mode": "enforce", "action": Action.DENY, **finding}
    )  # type: ignore[arg-type]
    audited = (Audited.of(NAME, (found,), uid="zquid"),)
    return AuditReport(
        "0.1.0",
        Cluster("zqcluster", "v1.36.0", "zq@corp"),
        TIME,
        "g",
        "Kubernetes 1.36",
        1.0,
        Summary.of(audited),
        {},
        audited,
    )


@pytest.mark.parametrize(
    "text",
    [
        "Deployment zqapp in namespace zqspace",
        "Job zqspace/zqother, which nobody reports on",
        'label "team" says zqpeople',
        'metadata.labels["zq.example.com/zqkey"]',
        "spec.nodeSelector.zqpool",
        "spec.containers[0].resources",
        "zqapp-5d9f-x2x4z.zqspace.svc:8080",
        "arn:aws:iam::123456789012:role/zqrole",
        "arn:aws:sts::123456789012:assumed-role/zqrole/zquser@zq.com",
        "registry.zq.io/zqteam/zqimage@sha256:0123456789abcdef",
        "exempt until 2027-01-31 (zqowner: zqreason, INC-4312)",
        "zqa,zqb;zqc|zqd zqe=zqf (zqg) 'zqh' <zqi> {zqj} zqk\\zql #zqm $zqn ~zqo %zqp zqq.",
        "ip-10-0-1-2.zqregion.compute.internal",
        "(for example, 4 of 8 GPUs of 123.45.67.89 are allocated)",
    ],
)
@pytest.mark.parametrize("field", ["message", "hint", "note", "path"])
def test_no_name_is_left_in_a_text(field: str, text: str) -> None:
    named = report(**{field: text})
    names = pseudonyms(named, "salt")

    left = json.dumps([str(getattr(each, field)) for each in anonymize(named, names).audited[0].findings])

    assert CANARY not in left
    assert "123456789012" not in left
    assert "123.45.67.89" not in left


@pytest.mark.parametrize(
    "text",
    [
        "adds the toleration nvidia.com/gpu:NoSchedule, the usual taint of nodes with nvidia.com/gpu",
        "no maxReplicaCount, so KEDA uses 100: 100 Pods x 8 GPUs = 800 GPUs; worst case as p5.48xlarge",
        "Pods of this Deployment would be denied",
        "resource.k8s.io/v1beta1 is off by default, deprecated since Kubernetes 1.35, and removed in 1.38",
        'spec.template.spec.containers[0].resources.limits["nvidia.com/mig-1g.10gb"]',
        "write karpenter.sh/nodepool, with the name of a NodePool",
        "prices are for us-east-1, but there are GPU nodes in eu-central-1 and ap-southeast-2",
        "clusterpolicies.nvidia.com, machines.karpenter.sh: not in the dump",
        "prices are those of us-east-1; $1,204.50 an hour, 12.5% of 64Gi",
    ],
)
def test_what_gpugate_says_of_itself_stays(text: str) -> None:
    named = report(message=text)

    assert anonymize(named, pseudonyms(named)).audited[0].findings[0].message == text


def test_a_name_that_is_a_word_goes_where_it_can_be_one() -> None:
    named = replace(report(message="Deployment training asks for nvidia.com/gpu"), counts={"Deployment": 1})
    other = replace(named, audited=(replace(named.audited[0], object=replace(NAME, namespace="gpu")),))

    left = anonymize(other, pseudonyms(other)).audited[0].findings[0].message

    assert re.fullmatch(r"Deployment name-[0-9a-f]{12} asks for nvidia\.com/gpu", left)


def test_patches_and_fixes_hold_no_name() -> None:
    patch = Patch("set", ("metadata", "labels", "zq.io/zqkey"), {"zqk": ["zqv", 1, True, None]}, "adds zqkey")
    named = report(patches=(patch,), remedy=Fix.of(Patches((patch,), safe=True)))
    other = report(remedy=Fix.of(Replacement(({"kind": "NodePool", "metadata": {"name": "zqpool"}},))))

    for each in (named, other):
        found = anonymize(each, pseudonyms(each)).audited[0]
        assert CANARY not in repr(found)
    assert anonymize(named, pseudonyms(named)).audited[0].findings[0].patches[0].path[:2] == ("metadata", "labels")
    assert "'kind': 'NodePool'" in repr(anonymize(other, pseudonyms(other)))


def test_the_same_name_has_the_same_pseudonym_under_one_salt() -> None:
    named = report(message="zqapp")

    first, second, other = (anonymize(named, pseudonyms(named, salt)).audited[0] for salt in ("a", "a", "b"))

    assert first == second
    assert first.object != other.object
    assert first.findings[0].message == first.object.name


def test_without_a_salt_each_run_has_pseudonyms_of_its_own() -> None:
    named = report()

    assert anonymize(named, pseudonyms(named)).audited != anonymize(named, pseudonyms(named)).audited


def test_different_names_have_different_pseudonyms() -> None:
    names = pseudonyms(report(), "salt")

    assert len({names.of(f"app-{number}") for number in range(20_000)}) == 20_000


def renamed(manifests: str) -> str:
    """Return manifests whose objects, namespaces and containers bear canary names."""
    return re.sub(
        r"(?m)^(\s*(?:- )?(?:name|namespace|app|team|workload|node-type|serviceAccountName): *)[\"']?(?!nvidia|GPU)([A-Za-z][\w.-]*)[\"']?$",
        r"\1zq\2",
        manifests,
    )


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditReport, Comparison]:
    text = "\n---\n".join(path.read_text() for path in sorted(MANIFESTS.glob("*.yaml")))
    folder = tmp_path_factory.mktemp("zqdump")
    until = dt.date(2026, 1, 1)
    over = Exemption(policies=("pods/*",), reason="zqreason", owner="zqowner", expires=until, names=("zq-*",))
    config = PolicyConfig(exemptions=(over,), excluded_namespaces=("zqsystem",))
    found = scanned(folder, renamed(text), config)
    owner = next(each.object for each in found.report.audited if each.object.kind == "Deployment")
    seen = inventory(
        [node("zqnode", gpu=8, pool="zqpool"), node("zqlone", gpu=8, pool="")],
        [pod(1, on="zqnode", owner=owner, name="zqpod"), pod(1, on="zqlone", owner=owner, name="zqq")],
        node_pools=found.inventory.node_pools,
        scalers=found.inventory.scalers,
        templates=found.inventory.templates,
    )
    money = costed(seen, found.report.audited, Prices(load_instance_types(), {}, "zqprices.csv"))
    whole = replace(
        found.report,
        audited=tuple(replace(each, allocated=money.allocated.get(each.object, ())) for each in found.report.audited),
        cost=money.cost,
        remarks=(*found.report.remarks, *money.remarks),
        pending=(
            PendingPods(
                "NodePool zqh100: label zqteam is required, which it does not define",
                "in NodePool zqh100, add the label zqteam=zqvalue to its template",
                1,
                (PendingOwner(owner, 1, "zqserve-1"),),
                (PoolFailure("zqh100", "labels", "label zqteam is required", "add the label zqteam=zqvalue"),),
            ),
        ),
        cluster=Cluster("zqcluster", "v1.36.0", "zquser"),
        not_evaluated=(
            *found.report.not_evaluated,
            NotEvaluated("owners of kind zqKind", "zquser may not list them", 2),
        ),
    )
    changes = tuple(Changed(each.object, f) for each in whole.audited for f in each.findings)
    return whole, Comparison(TIME, changes[:9], changes[9:20], 3)


@pytest.mark.parametrize("name", FORMATS)
def test_no_name_is_left_in_what_is_written(everything: tuple[AuditReport, Comparison], name: str) -> None:
    whole, comparison = everything
    names = pseudonyms(whole, "salt", comparison)
    shown = Presentation(CATALOG, include_passed=True, top=0, comparison=anonymize_comparison(comparison, names))

    text = render(name, anonymize(whole, names), shown)

    assert CANARY in render(name, whole, dataclasses.replace(shown, comparison=comparison))
    assert not re.findall(rf".{{0,80}}{CANARY}.{{0,40}}", text)


def test_figures_stay(everything: tuple[AuditReport, Comparison]) -> None:
    whole, _ = everything
    left = anonymize(whole, pseudonyms(whole))

    assert whole.cost is not None
    assert left.cost is not None
    assert (left.cost.allocated, left.cost.unpriced_gpus) == (whole.cost.allocated, whole.cost.unpriced_gpus)
    assert [each.action for each in left.audited] == [each.action for each in whole.audited]
    assert [each.allocated for each in left.audited] == [each.allocated for each in whole.audited]
