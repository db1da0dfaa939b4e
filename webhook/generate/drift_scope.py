"""What a webhook entry of a cluster sends beside what is judged."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from gpugate.webhook.generate.coverage import DEFAULT_MATCH_POLICY, covers
from gpugate.webhook.generate.drift_reasons import APPLY_AGAIN, Drift, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.webhook.generate.coverage import Sent

# What a cluster cannot be without for the seconds that a webhook takes to come back: how nodes join and stay, how
# leaders are elected, how Pods are reached, and the API server's own questions.
NEEDED_TO_HEAL: Final = frozenset(
    {
        ("", "nodes"),
        ("", "nodes/status"),
        ("", "events"),
        ("", "endpoints"),
        ("", "secrets"),
        ("", "configmaps"),
        ("", "serviceaccounts"),
        ("", "pods/binding"),
        ("", "pods/status"),
        ("apps", "daemonsets/status"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("coordination.k8s.io", "leases"),
        ("discovery.k8s.io", "endpointslices"),
        ("events.k8s.io", "events"),
    }
)


def too_much(place: str, live: Iterable[Sent], judged: Sequence[Sent], match_policy: str) -> Iterator[Drift]:
    """Yield the requests that the rules of an entry send and no rule of ours judges."""
    exact = set(judged)
    extra = [each for each in live if each not in exact and not any(_within(each, one, match_policy) for one in judged)]
    for name, group in groupby(sorted(extra, key=lambda each: each.name), key=lambda each: each.name):
        several = list(group)
        operations = " and ".join(sorted({each.operation for each in several}))
        what = f"{'every operation' if operations == '*' else operations} of {_read(name)}"
        if any(_needed(each) for each in several):
            text = f"{what} is sent, which a cluster needs in order to heal while nobody answers"
            yield Drift(Reason.TOO_WIDE, place, text, APPLY_AGAIN)
        else:
            yield Drift(Reason.NOT_JUDGED, place, f"{what} is sent, but no rule judges it", APPLY_AGAIN)


def _within(live: Sent, judged: Sent, match_policy: str) -> bool:
    """Tell whether a rule sends no more than what is judged: the other way round than it is covered."""
    return covers(judged._replace(scope="*"), live, match_policy)


def _needed(live: Sent) -> bool:
    return any(
        covers(live._replace(scope="*"), live._replace(group=group, resource=resource, scope="*"), DEFAULT_MATCH_POLICY)
        for group, resource in NEEDED_TO_HEAL
    )


def _read(name: str) -> str:
    return "whatever there is" if name in {"*", "*.*", "*/*", "*.*/*"} else name
