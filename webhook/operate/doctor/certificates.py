"""How long the certificates last that are in use: authorities in each `caBundle` and in the Secret, and what the server shows."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.certs.pki import common_name, fingerprint, split, validity
from gpugate.webhook.generate.drift_bundles import decoded
from gpugate.webhook.operate.doctor.case import error, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.operate.doctor.case import Case
    from gpugate.webhook.report.diagnosis import Problem

_DAY: Final = dt.timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort of certificate.

    Attributes:
        word: what it is called.
        last_part: the share of its life, counted from the end, in which it should have been replaced already.
        urgent: the share of its life, counted from the end, in which it is an error if that is less than a day.
        renew: who replaces it.
    """

    word: str
    last_part: float
    urgent: float
    renew: str


# Authorities are replaced when a third of their life is left, servers' certificates a tenth of it earlier or later.
AUTHORITY: Final = Sort(
    "authority",
    1 / 3,
    1.0,
    "gpugate makes new authorities by itself: see why it does not in the log of the replica that leads; "
    "with certificates of your own, make a new one and write its authority into every caBundle first",
)
SERVER: Final = Sort(
    "certificate of the server",
    1 / 5,
    1 / 10,
    "gpugate renews it by itself: see why it does not in the log of this replica; with certificates of your own, put a new "
    "one into the files of --tls-cert and --tls-key",
)


def check(case: Case) -> Iterator[Problem]:
    """Yield which authorities in a `caBundle` or in the Secret expired or will soon, each once."""
    names, now = case.installation.names, case.installation.now
    holders: dict[bytes, list[str]] = {}
    lasting: set[str] = set()
    for kind, entry in case.installation.entries:
        lasting |= _collect(holders, decoded(entry), f"{kind} {names.configuration}, webhook {entry['name']}")
    if case.secret:
        lasting |= _collect(holders, case.secret.bundle, f"Secret {names.namespace}/{names.secret}")
    for pem, where in holders.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        yield from expiring(pem, f"{where[0]}{more}", now, AUTHORITY, last=fingerprint(pem) in lasting)


def expiring(pem: bytes, where: str, now: dt.datetime, sort: Sort, *, last: bool) -> Iterator[Problem]:
    """Yield whether a certificate is not valid, or will not be for long; `last` where none lasts longer in its place."""
    begin, end = validity(pem)
    left, life = end - now, end - begin
    name = f"the {sort.word} {common_name(pem) or 'without a name'!r}"
    if end <= now:
        yield error("expired", f"{name} expired {_span(-left)} ago ({_date(end)})", where, sort.renew)
    elif begin > now:
        clock = "compare the clocks of this machine, of the nodes and of the API server"
        yield error("not-yet-valid", f"{name} is valid only from {_date(begin)}", where, clock)
    elif left < min(_DAY, life * sort.urgent):
        level = error if last else warning
        yield level("expires-soon", f"{name} expires in {_span(left)} ({_date(end)})", where, sort.renew)
    elif last and left < life * sort.last_part:
        found = f"{name} should have been replaced already: it expires in {_span(left)} ({_date(end)})"
        yield warning("renewal-overdue", found, where, sort.renew)


def _collect(holders: dict[bytes, list[str]], bundle: bytes, where: str) -> set[str]:
    """Note who holds which certificates; returns the fingerprint of the one that lasts longest."""
    found = split(bundle)
    for pem in found:
        holders.setdefault(pem, []).append(where)
    return {fingerprint(max(found, key=lambda pem: validity(pem)[1]))} if found else set()


def _span(span: dt.timedelta) -> str:
    hours = span.total_seconds() / 3600
    if hours >= 48:
        return f"{hours / 24:.0f} days"
    return f"{hours:.0f} hours" if hours >= 2 else f"{hours * 60:.0f} minutes"


def _date(time: dt.datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
