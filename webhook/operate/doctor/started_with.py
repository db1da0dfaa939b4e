"""What the webhook is told when it is started: the flags in its Deployment."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from gpugate.webhook.generate.risk_groups import RiskGroup
from gpugate.webhook.operate.installation import Unread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.generate.meant import Meant
    from gpugate.webhook.operate.installation import Installation, Object

_USERS: Final = "--karpenter-user"
# Stands for an empty list.
_NONE: Final = "none"
_GROUPS: Final = {group.value: group for group in RiskGroup}


def completed(meant: Meant, installation: Installation) -> Meant:
    """Fill in what nobody said of the webhook configurations from what the webhook itself is told of them."""
    container = next(_serving(installation), None)
    if container is None:
        return meant
    users = tuple(given(container, _USERS))
    found = replace(
        meant,
        # Without the flag the usual ones are meant.
        karpenter_users=tuple(each for each in users if each != _NONE) if users else None,
        without=tuple(_GROUPS[each] for each in given(container, "--without") if each in _GROUPS),
        only_namespaces=tuple(given(container, "--only-namespace")),
    )
    said = ("karpenter_users", "without", "only_namespaces")
    return replace(found, **{name: getattr(meant, name) for name in said if getattr(meant, name) is not None})


def containers(installation: Installation) -> Iterator[tuple[Object, Object]]:
    """Yield each container of the namespace's Deployments, with the Pod that it is in."""
    deployments = () if isinstance(installation.deployments, Unread) else installation.deployments
    for deployment in deployments:
        pod = deployment["spec"]["template"]["spec"]
        for container in pod.get("containers") or ():
            yield pod, container


def given(container: Object, flag: str) -> Iterator[str]:
    """Yield what a flag of a container is given, each time; last by its variable."""
    words = _words(container)
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if word.startswith(f"{flag}="):
            yield word.removeprefix(f"{flag}=")
        elif word == flag:
            yield following
    variable = f"GPUGATE_{flag.removeprefix('--').replace('-', '_').upper()}"
    yield from (each["value"] for each in container.get("env") or () if each["name"] == variable and each.get("value"))


def _serving(installation: Installation) -> Iterator[Object]:
    wanted = installation.names.configuration
    for _, container in containers(installation):
        if "serve" in _words(container) and next(given(container, "--webhook-configuration"), wanted) == wanted:
            yield container


def _words(container: Object) -> list[str]:
    return [*(container.get("command") or ()), *(container.get("args") or ())]
