"""Whether the webhook's ServiceAccount may do what it needs, asked of the API server right by right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import orjson

from gpugate.webhook.cluster.errors import CallError
from gpugate.webhook.operate.doctor.case import error
from gpugate.webhook.operate.installation import Unread
from gpugate.webhook.operate.reading import unread_because

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.doctor.case import Case
    from gpugate.webhook.operate.installation import Names
    from gpugate.webhook.report.diagnosis import Problem

_API: Final = "authorization.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Right:
    """Something that a ServiceAccount should be allowed to do, and whether it is; in all namespaces where none is named."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""
    allowed: bool = False

    @property
    def object(self) -> str:
        """What it is about."""
        plural, slash, subresource = self.resource.partition("/")
        kind = f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource
        return f"{kind}{f' {self.name}' if self.name else ''}{f' in {self.namespace}' if self.namespace else ''}"


def needed(roles: Iterable[dict[str, Any]]) -> Iterator[Right]:
    """Yield each right that some Roles and ClusterRoles give; other objects among them give none."""
    for role in roles:
        namespace = role["metadata"].get("namespace", "")
        for rule in role.get("rules") or ():
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    for name in rule.get("resourceNames") or ("",):
                        for verb in rule["verbs"]:
                            yield Right(verb, group, resource, name, namespace)


def ask(connection: Connection, names: Names, rights: Iterable[Right]) -> Sequence[Right] | Unread:
    """Return which of some rights the ServiceAccount has; asking changes nothing."""
    account = f"{names.namespace}:{names.service_account}"
    # As the API server takes one for (`k8s.io/apiserver` pkg/authentication/serviceaccount/util.go, v0.36).
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{names.namespace}", "system:authenticated"]
    spec = {"user": f"system:serviceaccount:{account}", "groups": groups}
    try:
        return [_answered(connection, spec, each) for each in rights]
    except CallError as failure:
        return Unread(f"rights of ServiceAccount {names.namespace}/{names.service_account}", unread_because(failure))


def check(case: Case) -> Iterator[Problem]:
    """Yield what the ServiceAccount may not do."""
    if case.rights is None or isinstance(case.rights, Unread):
        return
    lacking = sorted((each for each in case.rights if not each.allowed), key=lambda each: each.object)
    for what, group in groupby(lacking, key=lambda each: each.object):
        verbs = ", ".join(dict.fromkeys(each.verb for each in group))
        where = f"ServiceAccount {case.installation.names.namespace}/{case.installation.names.service_account}"
        remedy = "apply the roles again: `helm upgrade`, or `gpugate registration ... | kubectl apply -f -`"
        yield error("right-missing", f"may not {verbs} {what}", where, remedy)


def _answered(connection: Connection, user: dict[str, Any], right: Right) -> Right:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "name": right.name,
        "namespace": right.namespace,
    }
    review = {"apiVersion": _API, "kind": "SubjectAccessReview", "spec": {**user, "resourceAttributes": attributes}}
    answer = orjson.loads(connection.create(f"/apis/{_API}/subjectaccessreviews", review))
    return replace(right, allowed=bool(answer["status"].get("allowed")))
