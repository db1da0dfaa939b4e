"""Evaluate one object as if it were created now, and describe its findings for reports.

The result is the object as a user would send it now, as far as it can be reconstructed. Sources: Kubernetes v1.36
(`pkg/apis/core/v1/defaults.go`, `plugin/pkg/admission/{defaulttolerationseconds,priority,serviceaccount}`,
`pkg/controller/daemon/util/daemonset_util.go`), and Pods as kube-apiserver v1.36.3 stores them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.enforcement import ExemptionUse
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import Operation, Request
from gpugate.webhook.audit.model import Action, Finding, Fix
from gpugate.webhook.report.policy_text import patch_groups, reasons

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping

    from gpugate.policies.engine import verdict as engine
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.findings import Other
    from gpugate.policies.sdk.objects import GroupVersionKind

Object = dict[str, Any]  # Any: the JSON edge

_METADATA: Final = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
_ANNOTATIONS: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deployment.kubernetes.io/revision",
        "kubernetes.io/limit-ranger",
        # Networks write addresses into every Pod: Calico, Multus, OVN-Kubernetes, Amazon VPC CNI.
        "cni.projectcalico.org/containerID",
        "cni.projectcalico.org/podIP",
        "cni.projectcalico.org/podIPs",
        "k8s.ovn.org/pod-networks",
        "k8s.v1.cni.cncf.io/network-status",
        "k8s.v1.cni.cncf.io/networks-status",
        "vpc.amazonaws.com/pod-eni",
        "vpc.amazonaws.com/pod-ips",
    }
)
# Fields that admission plugins derive from others, such as the priority from its class.
_RESOLVED: Final = ("priority", "preemptionPolicy", "serviceAccount", "ephemeralContainers")
_DEFAULTS: Final = {"serviceAccountName": "default", "enableServiceLinks": True}
_TOKEN_VOLUME: Final = re.compile(r"kube-api-access-[a-z0-9]{5}|default-token-[a-z0-9]{5}")
_ABSENT: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_OF_DAEMON_SETS: Final = frozenset(
    f"node.kubernetes.io/{condition}"
    for condition in (
        *("not-ready", "unreachable", "disk-pressure", "memory-pressure"),
        *("pid-pressure", "unschedulable", "network-unavailable"),
    )
)


def as_created(obj: Object, *, keep_version: bool = False) -> Object:
    """Return an object without its status and the metadata that the API server sets; the argument is unchanged.

    With `keep_version` the `resourceVersion` stays, by which a policy sees that others may have changed the object since.
    """
    metadata = obj.get("metadata")
    created = {key: value for key, value in obj.items() if key != "status"}
    if isinstance(metadata, dict):
        created["metadata"] = _metadata(metadata)
        if keep_version and "resourceVersion" in metadata:
            created["metadata"]["resourceVersion"] = metadata["resourceVersion"]
    return created


def pod_as_created(pod: Object, owner_kind: str = "") -> Object:
    """Return a Pod or Pod template like `as_created`, also without the fields that admission and controllers add to its spec.

    `owner_kind` is the kind of its controller, because a DaemonSet binds its Pods to nodes by affinity. `nodeName` is kept if
    the creator of the Pod set it. The managed fields show that, because a binding does not appear in them.
    """
    created = as_created(pod)
    spec = pod.get("spec")
    if isinstance(spec, dict):
        created["spec"] = _spec(spec, owner_kind, names_node=_wrote_node_name(pod))
    return created


def _metadata(metadata: Object) -> Object:
    created = {key: metadata[key] for key in _METADATA if metadata.get(key) is not None}
    annotations = created.get("annotations")
    if isinstance(annotations, dict) and not _ANNOTATIONS.isdisjoint(annotations):
        created["annotations"] = {key: value for key, value in annotations.items() if key not in _ANNOTATIONS}
    return created


def _wrote_node_name(pod: Object) -> bool:
    metadata = pod.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    fields = (e.get("fieldsV1") for e in entries if isinstance(e, dict)) if isinstance(entries, list) else ()
    specs = (fields_v1.get("f:spec") for fields_v1 in fields if isinstance(fields_v1, dict))
    return any(isinstance(spec, dict) and "f:nodeName" in spec for spec in specs)


def _spec(spec: Object, owner_kind: str, *, names_node: bool) -> Object:
    created = {
        key: value
        for key, value in spec.items()
        if key not in _RESOLVED and not (key in _DEFAULTS and value == _DEFAULTS[key])
    }
    if not names_node:
        created.pop("nodeName", None)
    of_daemon_set = owner_kind == "DaemonSet"
    _leave_out(created, "tolerations", lambda toleration: _is_added_toleration(toleration, of_daemon_set=of_daemon_set))
    tokens = {_name(volume) for volume in _list(created.get("volumes")) if _TOKEN_VOLUME.fullmatch(_name(volume))}
    if tokens:
        _leave_out(created, "volumes", lambda volume: _name(volume) in tokens)
        for containers in ("containers", "initContainers"):
            if containers in created:
                created[containers] = [_without_mounts(container, tokens) for container in _list(created[containers])]
    if of_daemon_set:
        _forget_node(created)
    return created


def _leave_out(obj: Object, key: str, unwanted: Any) -> None:
    left = [element for element in _list(obj.get(key)) if not unwanted(element)]
    if left:
        obj[key] = left
    elif isinstance(obj.get(key), list):
        del obj[key]


def _is_added_toleration(toleration: object, *, of_daemon_set: bool) -> bool:
    if not isinstance(toleration, dict) or toleration.get("operator") != "Exists":
        return False
    key, seconds = toleration.get("key"), toleration.get("tolerationSeconds")
    if seconds is not None:
        return key in _ABSENT and seconds == 300 and toleration.get("effect") == "NoExecute"
    return of_daemon_set and key in _OF_DAEMON_SETS


def _without_mounts(container: object, volumes: set[str]) -> object:
    if not isinstance(container, dict) or "volumeMounts" not in container:
        return container
    changed = dict(container)
    _leave_out(changed, "volumeMounts", lambda mount: _name(mount) in volumes)
    return changed


def _forget_node(spec: Object) -> None:
    """Remove the node that the DaemonSet controller chose: a field selector in each term."""
    affinity = spec.get("affinity")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    node_affinity = affinity.get("nodeAffinity") if isinstance(affinity, dict) else None
    selector = node_affinity.get(required) if isinstance(node_affinity, dict) else None
    terms = selector.get("nodeSelectorTerms") if isinstance(selector, dict) else None
    left = [{k: v for k, v in term.items() if k != "matchFields"} for term in _list(terms) if isinstance(term, dict)]
    others = {key: value for key, value in node_affinity.items() if key != required} if node_affinity else {}
    if any(left):
        others[required] = {"nodeSelectorTerms": [term for term in left if term]}
    other_affinity = (
        {key: value for key, value in affinity.items() if key != "nodeAffinity"} if isinstance(affinity, dict) else {}
    )
    changed_affinity = {**other_affinity, **({"nodeAffinity": others} if others else {})}
    if changed_affinity:
        spec["affinity"] = changed_affinity
    else:
        spec.pop("affinity", None)


def _name(obj: object) -> str:
    name = obj.get("name") if isinstance(obj, dict) else None
    return name if isinstance(name, str) else ""


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


# The policy of a finding for a field of the wrong type.
MALFORMED: Final = ""
_ACTIONS: Final = {Stance.ENFORCE: Action.DENY, Stance.WARN: Action.WARN}


@dataclass(frozen=True, slots=True)
class Stated:
    """A finding, and its relation to other findings, which the report resolves.

    Attributes:
        finding: the finding.
        others: further objects that share the cause, as in `policies.sdk.findings.Violation`.
        follows: whether findings at all of `others` replace this one.
        covers: policies whose findings at the same path this finding replaces.
    """

    finding: Finding
    others: tuple[Other, ...] = ()
    follows: bool = False
    covers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The evaluation of one object.

    Attributes:
        findings: the findings of all policies.
        skipped: policy -> why it was not evaluated, or its error.
        called: the number of called policies, including skipped ones.
        exemptions: the indices of the exemptions that lowered a finding.
    """

    findings: tuple[Stated, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    called: int = 0
    exemptions: frozenset[int] = frozenset()


class Judging:
    """Evaluates objects with a ruleset, cluster data and a date."""

    def __init__(self, ruleset: Ruleset, facts: Facts, today: dt.date) -> None:
        self._ruleset = ruleset
        self._facts = facts
        self._today = today
        self._reasons = reasons(rule.policy for rule in ruleset.rules)
        self._exemptions = ExemptionUse(ruleset, today)

    def judge(self, request: Request) -> Judgement:
        """Evaluate the creation of an object, its mutation and validation, and its Pod templates."""
        verdict = evaluate(
            self._ruleset,
            with_defaults(request),
            self._facts,
            today=self._today,
            phase=Phase.BOTH,
            template_ceiling=Stance.ENFORCE,
        )
        if not verdict.outcomes and not verdict.malformed:
            return _NOTHING
        return Judgement(
            tuple(self._findings(verdict)),
            dict(_skipped(verdict)),
            len(verdict.outcomes),
            self._exemptions.of(verdict),
        )

    def _findings(self, verdict: engine.Verdict) -> Iterator[Stated]:
        for wrong in verdict.malformed:
            action = _ACTIONS.get(wrong.at_most, Action.RECORD)
            yield Stated(
                Finding(MALFORMED, render(wrong.path), wrong.message, wrong.at_most.word, action, hint=wrong.hint)
            )
        for outcome in verdict.outcomes:
            for violation in outcome.findings:
                finding = Finding(
                    policy=violation.policy,
                    path=render(violation.path),
                    message=violation.message,
                    mode=violation.stance.word,
                    action=_ACTIONS.get(violation.stance, Action.RECORD),
                    why=violation.why or self._reasons.get(violation.policy, ""),
                    hint=violation.hint,
                    note=violation.note,
                    remedy=Fix.of(violation.fix),
                    template_of=violation.template_of.kind if violation.template_of else "",
                )
                yield Stated(finding, violation.others, violation.follows, violation.covers)
            for group in patch_groups(outcome):
                yield Stated(
                    Finding(
                        policy=outcome.policy,
                        path=render(group.patches[0].path),
                        message=group.message,
                        mode="enforce",
                        action=Action.MUTATE,
                        why=self._reasons.get(outcome.policy, ""),
                        patches=group.patches,
                        template_of=group.template_of,
                    )
                )


_NOTHING: Final = Judgement()


def creation(kind: GroupVersionKind, obj: Object, user: str = "", groups: tuple[str, ...] = ()) -> Request:
    """Return the request with which a user of some groups would create an object."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = str(metadata.get("name") or "")
    # The request that creates a Namespace has the Namespace itself as its namespace (apiserver v0.36 handlers/create.go).
    namespace = name if (kind.group, kind.kind) == ("", "Namespace") else str(metadata.get("namespace") or "")
    return Request(
        kind=kind,
        operation=Operation.CREATE,
        object=obj,
        name=name,
        generate_name=str(metadata.get("generateName") or ""),
        namespace=namespace,
        user=user,
        groups=groups,
    )


def _skipped(verdict: engine.Verdict) -> Iterator[tuple[str, str]]:
    for outcome in verdict.outcomes:
        missing_data = "; ".join(outcome.skipped)
        failed = f"raised an error: {outcome.error}" if outcome.error else ""
        if missing_data or failed:
            yield outcome.policy, missing_data or failed
