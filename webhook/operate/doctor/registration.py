"""Whether the API server sends what the rules judge: both webhook configurations, against what is generated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gpugate.webhook.generate.drift import drift
from gpugate.webhook.generate.drift_reasons import Reason
from gpugate.webhook.generate.judged_resources import mutated, validated
from gpugate.webhook.generate.registration import Server
from gpugate.webhook.operate.doctor.case import note
from gpugate.webhook.operate.installation import Unread
from gpugate.webhook.report.diagnosis import Problem
from gpugate.webhook.report.located import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.webhook.operate.doctor.case import Case
    from gpugate.webhook.operate.installation import Installation, Object

# Nothing escapes by these, and nothing is refused that should not be.
_WARNINGS: Final = frozenset(
    {
        Reason.NOT_PROBED,
        Reason.NOT_JUDGED,
        Reason.UNCONDITIONAL,
        Reason.MATCH_POLICY,
        Reason.REINVOCATION,
        Reason.TIMEOUT,
    }
)


def check(case: Case) -> Iterator[Problem]:
    """Yield how the live configurations differ from what is generated for the rules in force."""
    installation, secret = case.installation, case.secret
    found = drift(
        case.ruleset,
        live(installation),
        server(installation, case.url),
        secret.bundle if secret else b"",
        now=installation.now,
        name=installation.names.configuration,
        meant=case.meant,
    )
    unread = [each.what for each in installation.configurations.values() if isinstance(each, Unread)]
    for each in found:
        if each.reason is Reason.MISSING and each.where in unread:
            continue
        severity = Severity.WARNING if each.reason in _WARNINGS else Severity.ERROR
        yield Problem(severity, each.reason.value, each.found, each.where, each.remedy)


def needs(installation: Installation) -> Iterable[object]:
    """Return the configurations, where none of them could be read."""
    found = tuple(installation.configurations.values())
    return found if all(isinstance(each, Unread) for each in found) else ()


def live(installation: Installation) -> list[Object]:
    """Return every webhook configuration that was read."""
    own = [each for each in installation.configurations.values() if each is not None and not isinstance(each, Unread)]
    others = () if isinstance(installation.others, Unread) else installation.others
    return [*own, *others]


def server(installation: Installation, url: str) -> Server:
    """Return where the webhook is meant to answer; without a URL, where most entries go."""
    names = installation.names
    if not url and installation.by_url:
        urls = [urlsplit(entry["clientConfig"]["url"]) for _, entry in installation.entries]
        hosts = [f"{each.scheme}://{each.netloc}" for each in urls]
        url = max(hosts, key=hosts.count)
    return Server(b"", names.namespace, url, names.service)


def kinds(case: Case) -> Iterator[Problem]:
    """Yield a note on the kinds that rules judge and this cluster does not have."""
    judged = {(each.group, each.plural) for each in (*mutated(case.ruleset), *validated(case.ruleset))}
    if case.served is None or isinstance(case.served, Unread):
        return
    missing = _names((group, plural) for group, plural in judged if plural not in case.served.get(group, frozenset()))
    if missing:
        yield note(
            "not-served",
            f"the cluster does not serve {len(missing)} of {len(judged)} kinds that rules judge: {', '.join(missing)}",
            "the API server",
            "nothing, unless one of them should be there: then install its CustomResourceDefinition",
        )


def groups(case: Case) -> set[str]:
    """Return the API groups of what rules judge."""
    return {each.group for each in (*mutated(case.ruleset), *validated(case.ruleset))}


def _names(resources: Iterable[tuple[str, str]]) -> list[str]:
    return sorted(f"{plural}.{group}" if group else plural for group, plural in resources)
