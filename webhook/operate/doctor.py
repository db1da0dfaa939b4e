"""Collect the data that `gpugate doctor` needs; nothing in the cluster is changed."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.generate.rbac import keeper_rbac, rbac
from gpugate.webhook.manifests.policy_file import parse_policy_file
from gpugate.webhook.operate.doctor_case import Case, completed, mounted_policy, shake, targets
from gpugate.webhook.operate.doctor_checks import ask, failing_groups, needed
from gpugate.webhook.operate.installation import Unread, found_names
from gpugate.webhook.operate.reachability import probe
from gpugate.webhook.operate.reading import Reader, read_installation

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.generate.meant import Meant
    from gpugate.webhook.operate.installation import Installation, Names


def served(reader: Reader, groups: Iterable[str]) -> Mapping[str, frozenset[str]] | Unread:
    """Return group -> its resources in any version; a group that is not served has none."""
    found: dict[str, frozenset[str]] = {}
    for group in groups:
        resources: set[str] = set()
        for path in _versions(reader, group):
            listed = reader.one(path, f"resources of {group or 'the core group'}")
            if isinstance(listed, Unread):
                return listed
            resources |= {each["name"] for each in (listed or {}).get("resources") or ()}
        found[group] = frozenset(resources)
    return found


def _versions(reader: Reader, group: str) -> list[str]:
    if not group:
        return ["/api/v1"]
    described = reader.one(f"/apis/{group}", f"versions of {group}")
    versions = [] if described is None or isinstance(described, Unread) else described.get("versions") or []
    return [f"/apis/{group}/{each['version']}" for each in versions]


@dataclass(frozen=True, slots=True)
class Asked:
    """What to examine; None where it is to be found out.

    Attributes:
        namespace: where the webhook runs.
        service: its Service.
        service_account: its ServiceAccount; as the configurations are called where nobody says.
        configuration: what both webhook configurations are called.
        secret: the Secret of its authorities, which must exist if it is named.
        lease: the Lease by which one replica leads; called like them too.
        url: where it is meant to answer; empty where it is behind a Service, or nobody says.
        meant: what was chosen where the configurations were generated; what nobody says is looked up in the Deployment.
        probe: whether to ask the webhook too.
        policy_file: where the rules come from that are given; empty where they are to be found.
    """

    namespace: str | None
    service: str | None
    service_account: str | None
    configuration: str
    secret: str | None
    lease: str | None
    url: str
    meant: Meant
    probe: bool
    policy_file: str


def collect(connection: Connection, asked: Asked, ruleset: Ruleset | None, now: dt.datetime) -> Case:
    """Read the cluster, and ask the webhook if that is wanted.

    Args:
        connection: the cluster.
        asked: what to examine.
        ruleset: the rules in force; None reads them from where the webhook does.
        now: the time.

    Raises:
        UnreachableError: the API server does not answer.
        ApiError: it takes nobody with these credentials.
        PolicyFileError: the policy file that the webhook reads is refused.
    """
    reader = Reader(connection)
    reader.version()
    installation = read_installation(connection, _names(connection, asked), now)
    rules, rules_from = (ruleset, asked.policy_file) if ruleset else _rules(installation)
    case = Case(
        installation,
        rules,
        rules_from=f"{len(rules.rules)} policies ({rules_from})",
        meant=completed(asked.meant, installation),
        url=asked.url,
        wants_secret=asked.secret is not None,
    )
    names = installation.names
    account = installation.service_account
    has_account = account is not None and not isinstance(account, Unread)
    rights = (
        *needed(rbac(rules, names.namespace, names.service_account)),
        *(needed(keeper_rbac(*_kept(names))) if case.keeps_authorities else ()),
    )
    return replace(
        case,
        served=served(reader, failing_groups(case)),
        rights=ask(connection, names, rights) if has_account else None,
        probed=probe(connection, names.namespace, secrets.token_hex(16)) if asked.probe else None,
        handshakes=[shake(each) for each in targets(installation)] if asked.probe else None,
    )


def _names(connection: Connection, asked: Asked) -> Names:
    found = found_names(connection, asked.configuration, asked.namespace)
    return replace(
        found,
        service=asked.service or found.service,
        service_account=asked.service_account or found.service_account,
        secret=asked.secret or found.secret,
        lease=asked.lease or found.lease,
    )


def _kept(names: Names) -> tuple[str, str, str, str, str]:
    return names.namespace, names.service_account, names.secret, names.lease, names.configuration


def _rules(installation: Installation) -> tuple[Ruleset, str]:
    mounted = mounted_policy(installation)
    if mounted is None:
        return bind(CATALOG, PolicyConfig()), "as shipped: no policy file was given or found"
    data = mounted.text.encode()
    return parse_policy_file(Path(mounted.where), data, lambda config: bind(CATALOG, config)), mounted.where
