"""Whether the Secret of the authorities is there and whole, and whether what people asked for was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.certs.plan import DISTRUST, ROTATE
from gpugate.webhook.operate.doctor.case import error, warning
from gpugate.webhook.operate.installation import Unread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.operate.doctor.case import Case
    from gpugate.webhook.report.diagnosis import Problem


def check(case: Case) -> Iterator[Problem]:
    """Yield what is wrong with the Secret."""
    names = case.installation.names
    where = f"Secret {names.namespace}/{names.secret}"
    log = f"kubectl -n {names.namespace} logs -l app.kubernetes.io/name=gpugate --prefix"
    found = case.installation.secret
    if isinstance(found, Unread):
        return
    if found is None:
        text = "there is no such Secret: no authority can be kept, and a replica that starts has no certificate"
        yield error(
            "secret-missing", text, where, f"the replica that leads makes it at once; see why it does not: {log}"
        )
    elif found.corrupt:
        text = f"holds no authority that can be used: {found.corrupt}"
        remedy = f"kubectl -n {names.namespace} delete secret {names.secret}: the replica that leads makes a new one"
        yield error("secret-corrupt", text, where, remedy)
    else:
        if not found.next:
            text = "holds no next authority, so that the active one cannot be replaced"
            yield warning("no-next-authority", text, where, f"the replica that leads makes one at once: {log}")
        for asked in (ROTATE, DISTRUST):
            wanted = found.annotations.get(asked)
            if wanted is not None and found.answered.get(asked) != wanted:
                text = f"the annotation {asked}={wanted} asks for what was not done yet"
                yield warning("not-answered", text, where, f"see what the replica that leads waits for: {log}")
