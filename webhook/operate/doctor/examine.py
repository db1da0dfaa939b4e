"""Looks at every subject, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.webhook.operate.doctor import (
    authorities,
    certificates,
    endpoints,
    handshake,
    lease,
    reached,
    registration,
    rights,
)
from gpugate.webhook.operate.installation import Unread
from gpugate.webhook.report.diagnosis import Diagnosis, Gap
from gpugate.webhook.report.located import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpugate.webhook.operate.doctor.case import Case
    from gpugate.webhook.report.diagnosis import Problem


class Check(NamedTuple):
    """A subject.

    Attributes:
        what: what is looked at; `{rules}` and fields of `Names` are filled in.
        problems: looks at it.
        idle: says why there is nothing to look at; empty where there is.
        needs: returns facts without which nothing can be said.
    """

    what: str
    problems: Callable[[Case], Iterable[Problem]]
    idle: Callable[[Case], str] = lambda _: ""
    needs: Callable[[Case], Iterable[object]] = lambda _: ()


def _by_url(case: Case) -> str:
    return "the webhook configurations send requests to a URL" if case.installation.by_url else ""


def _not_kept(case: Case) -> str:
    return "" if case.keeps_authorities else "no Secret was named, and nothing says that gpugate is its own authority"


def _not_probed(case: Case) -> str:
    return "" if case.probed else "--probe sends one"


def _no_account(case: Case) -> str:
    account = case.installation.service_account
    return "there is no such ServiceAccount: --service-account names another" if account is None else ""


def _nobody_reached(case: Case) -> str:
    if case.handshakes is None:
        return "--probe connects to it"
    if not case.handshakes:
        return "there is no address to connect to"
    unreached = {str(each.target): each.unreached for each in case.handshakes if each.unreached}
    if len(unreached) == len({str(each.target) for each in case.handshakes}):
        return f"not reached from here: {', '.join(f'{target} ({why})' for target, why in unreached.items())}"
    return ""


def _unprobed(case: Case) -> Unread | None:
    if case.probed and case.probed.incomplete and case.probed.trouble:
        return Unread("a probe through the API server", f"{case.probed.trouble.what}: {case.probed.trouble.remedy}")
    return None


CHECKS: Final = (
    Check(
        "webhook configurations {configuration}, against {rules}",
        registration.check,
        needs=lambda case: registration.needs(case.installation),
    ),
    Check(
        "how long the authorities in every caBundle are valid",
        certificates.check,
        needs=lambda case: registration.needs(case.installation),
    ),
    Check("kinds that rules judge and the cluster serves", registration.kinds, needs=lambda case: (case.served,)),
    Check("Secret {namespace}/{secret}", authorities.check, _not_kept, lambda case: (case.installation.secret,)),
    Check("Lease {namespace}/{lease}", lease.check, _not_kept, lambda case: (case.installation.lease,)),
    Check(
        "Service {namespace}/{service} and its endpoints",
        endpoints.check,
        _by_url,
        lambda case: (case.installation.service, case.installation.endpoint_slices),
    ),
    Check(
        "rights of ServiceAccount {namespace}/{service_account}",
        rights.check,
        _no_account,
        lambda case: (case.installation.service_account, case.rights),
    ),
    Check("a probe through the API server", reached.check, _not_probed, lambda case: (_unprobed(case),)),
    Check("the certificate that the webhook shows", handshake.check, _nobody_reached),
)


def examine(case: Case) -> Diagnosis:
    """Return what is wrong, the worst first, and what was looked at."""
    names = case.installation.names
    words = {each: getattr(names, each) for each in names.__slots__} | {"rules": case.rules_from}
    problems: list[Problem] = []
    looked_at: list[str] = []
    unread = (*case.installation.unread, case.served, case.rights, _unprobed(case))
    gaps = [Gap(each.what, each.reason) for each in unread if isinstance(each, Unread)]
    for check in CHECKS:
        what, why = check.what.format(**words), check.idle(case)
        if why:
            gaps.append(Gap(what, why, asked=False))
        elif not any(isinstance(need, Unread) for need in check.needs(case)):
            looked_at.append(what)
            problems += check.problems(case)
    order = list(Severity)
    worst_first = sorted(dict.fromkeys(problems), key=lambda problem: order.index(problem.severity))
    return Diagnosis(tuple(worst_first), tuple(looked_at), tuple(gaps), case.installation.server)
