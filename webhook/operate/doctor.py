"""Collect the data that `gpugate doctor` needs, without changes to the cluster."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.clusters import EVERYWHERE
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.manifests.policy_file import parse_policy_file
from gpugate.webhook.operate.doctor_case import (
    Case,
    complete_options,
    loads_own_policies,
    make_handshake,
    mounted_policy,
    targets,
    used_bundle,
)
from gpugate.webhook.operate.doctor_checks import failing_groups, required_rights, review_rights
from gpugate.webhook.operate.installation import Unread, find_names
from gpugate.webhook.operate.reachability import probe
from gpugate.webhook.operate.reading import Reader, read_installation
from gpugate.webhook.own_policies.catalog import catalog_from, library_families
from gpugate.webhook.own_policies.sources import read_directories
from gpugate.webhook.registration.rbac import event_rbac, keeper_rbac, rbac

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.platform import ClusterIdentity
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.cluster.connection import Connection
    from gpugate.webhook.operate.installation import Installation, Names
    from gpugate.webhook.registration.meant import Meant


def served(reader: Reader, groups: Iterable[str]) -> Mapping[str, frozenset[str]] | Unread:
    """Return API group -> its resources in all versions; a group that is not served has none."""
    by_group: dict[str, frozenset[str]] = {}
    for group in groups:
        resources: set[str] = set()
        for path in _versions(reader, group):
            listed = reader.read_object(path, f"resources of {group or 'the core group'}")
            if isinstance(listed, Unread):
                return listed
            resources |= {resource["name"] for resource in (listed or {}).get("resources") or ()}
        by_group[group] = frozenset(resources)
    return by_group


def _versions(reader: Reader, group: str) -> list[str]:
    if not group:
        return ["/api/v1"]
    described = reader.read_object(f"/apis/{group}", f"versions of {group}")
    versions = [] if described is None or isinstance(described, Unread) else described.get("versions") or []
    return [f"/apis/{group}/{version['version']}" for version in versions]


@dataclass(frozen=True, slots=True)
class DoctorOptions:
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
        policy_paths: directories of policies outside the library.
        identity: the cluster for which the installed policy file is read; None is the one that the file names.
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
    policy_paths: tuple[Path, ...] = ()
    identity: ClusterIdentity | None = None


def collect(connection: Connection, options: DoctorOptions, ruleset: Ruleset | None, now: dt.datetime) -> Case:
    """Read the cluster, and probe the webhook if `options.probe` is set.

    Args:
        connection: the cluster.
        options: the installation to check.
        ruleset: the ruleset in force; None reads it from the ConfigMap of the webhook.
        now: the time.

    Raises:
        UnreachableError: the API server does not answer.
        ApiError: the API server does not accept these credentials.
        OwnPolicyError: a policy outside the library cannot be loaded.
        PolicyFileError: the policy file of the webhook is invalid.
    """
    own = () if ruleset else catalog_from(read_directories(options.policy_paths)).own
    reader = Reader(connection)
    reader.version()
    installation = read_installation(connection, _names(connection, options), now)
    rules, rules_from = (
        (ruleset, options.policy_file)
        if ruleset
        else _find_ruleset(installation, [policy.policy for policy in own], options.identity)
    )
    uses_own = loads_own_policies(installation)
    case = Case(
        installation,
        rules,
        rules_from=f"{len(rules.rules)} policies ({rules_from})",
        meant=complete_options(options.meant, installation),
        url=options.url,
        wants_secret=options.secret is not None,
        knows_own=bool(options.policy_paths) or not (uses_own or rules.config.policy_paths),
    )
    names = installation.names
    account = installation.service_account
    has_account = account is not None and not isinstance(account, Unread)
    rights = (
        *required_rights(rbac(rules, names.namespace, names.service_account)),
        *(required_rights(keeper_rbac(*_keeper_names(names))) if case.keeps_authorities else ()),
        *(required_rights(event_rbac(names.namespace, names.service_account)) if uses_own else ()),
    )
    return replace(
        case,
        served=served(reader, failing_groups(case)),
        rights=review_rights(connection, names, rights) if has_account else None,
        probed=probe(connection, names.namespace, secrets.token_hex(16)) if options.probe else None,
        handshakes=[make_handshake(target) for target in targets(installation)] if options.probe else None,
    )


def _names(connection: Connection, options: DoctorOptions) -> Names:
    names = find_names(connection, options.configuration, options.namespace)
    return replace(
        names,
        service=options.service or names.service,
        service_account=options.service_account or names.service_account,
        secret=options.secret or names.secret,
        lease=options.lease or names.lease,
    )


def _keeper_names(names: Names) -> tuple[str, str, str, str, str]:
    return names.namespace, names.service_account, names.secret, names.lease, names.configuration


def _find_ruleset(
    installation: Installation, own: Sequence[Policy], identity: ClusterIdentity | None
) -> tuple[Ruleset, str]:
    policies = (*CATALOG, *own)
    mounted = mounted_policy(installation)
    if mounted is None:
        bundle = used_bundle(installation)
        reason = "no policy file was given or found"
        if bundle:
            reason = f"the policy file is in the bundle {bundle}: pull it, and set --policy-file"
        return bind(policies, PolicyConfig()), f"shipped modes: {reason}"

    def bound(config: PolicyConfig) -> Ruleset:
        # Unless they are given, the policies outside the library that the policy file names are in the Pods of the webhook.
        return bind(policies, config, closed_families=library_families())

    ruleset = parse_policy_file(Path(mounted.where), mounted.text.encode(), bound, identity or EVERYWHERE)
    return ruleset, mounted.where
