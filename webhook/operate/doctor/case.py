"""Everything that is known of an installation when it is examined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.certs.authorities import COMMON_NAME
from gpugate.certs.pki import common_name, split
from gpugate.webhook.generate.drift_bundles import decoded
from gpugate.webhook.operate.certificate_secret import CertificateSecret
from gpugate.webhook.report.diagnosis import Problem
from gpugate.webhook.report.located import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.generate.meant import Meant
    from gpugate.webhook.operate.doctor.handshake import Handshake
    from gpugate.webhook.operate.doctor.rights import Right
    from gpugate.webhook.operate.installation import Installation, Unread
    from gpugate.webhook.operate.probing import Probed


@dataclass(frozen=True, slots=True)
class Case:
    """An installation, and what it is held against.

    Attributes:
        installation: what the cluster holds.
        ruleset: the rules in force.
        rules_from: where they were read, for people.
        meant: what was chosen where the configurations were generated.
        url: where the webhook is meant to answer; empty where nobody said.
        wants_secret: whether somebody named the certificate Secret, so that there must be one.
        served: API group -> the resources that the cluster serves in it.
        rights: what the ServiceAccount should be allowed to do; None where there is none.
        probed: what became of a probe through the API server, None where none was sent.
        handshakes: what the webhook showed when it was connected to, None where nobody did.
    """

    installation: Installation
    ruleset: Ruleset
    rules_from: str
    meant: Meant
    url: str = ""
    wants_secret: bool = False
    served: Mapping[str, frozenset[str]] | Unread | None = None
    rights: Sequence[Right] | Unread | None = None
    probed: Probed | None = None
    handshakes: Sequence[Handshake] | None = None

    @property
    def secret(self) -> CertificateSecret | None:
        """The certificate Secret, where it was read."""
        found = self.installation.secret
        return found if isinstance(found, CertificateSecret) else None

    @property
    def keeps_authorities(self) -> bool:
        """Whether the webhook is an authority of its own, as far as one can tell."""
        bundles = [decoded(entry) for _, entry in self.installation.entries]
        ours = any(common_name(pem).startswith(COMMON_NAME) for bundle in bundles for pem in split(bundle))
        return ours or self.wants_secret or self.secret is not None


def error(code: str, found: str, where: str, remedy: str) -> Problem:
    """Return something to act on now."""
    return Problem(Severity.ERROR, code, found, where, remedy)


def warning(code: str, found: str, where: str, remedy: str) -> Problem:
    """Return something to act on soon."""
    return Problem(Severity.WARNING, code, found, where, remedy)


def note(code: str, found: str, where: str, remedy: str) -> Problem:
    """Return something to be known."""
    return Problem(Severity.NOTE, code, found, where, remedy)
