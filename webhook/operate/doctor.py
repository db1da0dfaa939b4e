"""Collect the data that `gpugate doctor` needs, without changes to the cluster."""

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
    """Return API group -> its resources in all versions; a group that is not served has none."""
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
    """The installation to check, from the flags; None means to look it up in the cluster.

    Attributes:
        namespace: the namespace of the webhook.
        service: the Service of the webhook.
        service_account: the ServiceAccount of the webhook; the default is the name of the configurations.
        configuration: the name of both webhook configurations.
        secret: the Secret of the authorities, which must exist if it is set.
        lease: the Lease of the leader; the default is the name of the configurations.
        url: the expected URL of the webhook; empty if it is reached through a Service or unknown.
        meant: the options with which the configurations were generated; unset ones are read from the Deployment.
        probe: whether to probe the webhook too.
        policy_file: the source of the given policies; empty if they are looked up.
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
    """Read the cluster, and probe the webhook if `asked.probe` is set.

    Args:
        connection: the cluster.
        asked: the installation to check.
        ruleset: the ruleset in force; None reads it from the ConfigMap of the webhook.
        now: the time.

    Raises:
        UnreachableError: the API server does not answer.
        ApiError: the API server does not accept these credentials.
        PolicyFileError: the policy file of the webhook is invalid.
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
        return bind(CATALOG, PolicyConfig()), "shipped modes: no policy file was given or found"
    data = mounted.text.encode()
    return parse_policy_file(Path(mounted.where), data, lambda config: bind(CATALOG, config)), mounted.where
