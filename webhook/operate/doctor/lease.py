"""Whether a replica leads, which alone publishes authorities."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from gpugate.webhook.operate.doctor.case import error
from gpugate.webhook.operate.installation import Unread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.operate.doctor.case import Case
    from gpugate.webhook.report.diagnosis import Problem

# The times in a Lease are those of the holder's clock, which may differ from ours by so much.
_SKEW: Final = dt.timedelta(seconds=60)
_DURATION_SECONDS: Final = 15


def check(case: Case) -> Iterator[Problem]:
    """Yield that nobody leads: no caBundle is mended, and no authority replaced."""
    names, found = case.installation.names, case.installation.lease
    where = f"Lease {names.namespace}/{names.lease}"
    remedy = f"kubectl -n {names.namespace} get pods: one of them takes over within seconds, if it may write the Lease"
    if isinstance(found, Unread):
        return
    if found is None:
        yield error("no-leader", "there is no such Lease: no replica has ever led", where, remedy)
        return
    spec = found.get("spec") or {}
    renewed = _time(spec.get("renewTime"))
    lasts = dt.timedelta(seconds=spec.get("leaseDurationSeconds") or _DURATION_SECONDS)
    if not spec.get("holderIdentity"):
        yield error("no-leader", "nobody holds it: the last replica that did has ended", where, remedy)
    elif renewed is None or case.installation.now - renewed > lasts + _SKEW:
        since = f"since {renewed:%Y-%m-%d %H:%M:%S} UTC" if renewed else "ever"
        yield error("no-leader", f"{spec['holderIdentity']} holds it, but has not renewed it {since}", where, remedy)


def _time(text: object) -> dt.datetime | None:
    try:
        return dt.datetime.fromisoformat(str(text))
    except ValueError:
        return None
