from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.clusters import EVERYWHERE, labels_of, settle, source_of, unmatched
from gpugate.policies.engine.config import ClusterEntry, ConfigError, PolicyConfig, parse_config
from gpugate.policies.engine.ruleset import Ruleset, bind
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.platform import ClusterIdentity

PROD = ClusterIdentity(name="gpu-1", region="eu-west-1", labels={"env": "prod", "tier": "gold"})
TOLERATION, POOL, CLAIM = "pods/missing-gpu-toleration", "nodepools/single-instance-type", "pods/mig-without-claim"
SHIPPED = {policy.id: policy.mode for policy in CATALOG}
OFF = next(policy.id for policy in CATALOG if policy.mode is Stance.OFF)
OPINION = {"reason": "moving", "owner": "ml", "expires": "2027-03-31"}


def config(**sections: Any) -> PolicyConfig:
    return parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", **sections})


def in_prod(entry: dict[str, Any], *later: dict[str, Any], **sections: Any) -> Ruleset:
    entries = [{"match": {"env": "prod"}, **each} for each in (entry, *later)]
    return bind(CATALOG, settle(config(clusters=entries, **sections), PROD))


def modes(ruleset: Ruleset) -> dict[str, Stance]:
    return {policy.id: Stance.OFF for policy in CATALOG} | {rule.policy.id: rule.mode for rule in ruleset.rules}


MATCHES = {
    "a label": ({"env": "prod"}, ""),
    "a pattern": ({"env": "pr*"}, ""),
    "the name": ({"name": "gpu-*"}, ""),
    "the region": ({"region": "eu-*"}, ""),
    "one of several": ({"region": ["us-*", "eu-*"]}, ""),
    "all labels": ({"env": "prod", "region": "eu-west-1", "tier": "*"}, ""),
    "another value": ({"env": "dev"}, "env"),
    "a part of the value": ({"env": "pro"}, "env"),
    "none of several": ({"region": ["us-*", "ap-*"]}, "region"),
    "one label of two": ({"env": "prod", "region": "us-*"}, "region"),
    "a label that the cluster does not have": ({"owner": "*"}, "owner"),
}


@pytest.mark.parametrize(("match", "label"), MATCHES.values(), ids=MATCHES)
def test_a_selector_needs_all_labels(match: dict[str, Any], label: str) -> None:
    entry = config(clusters=[{"match": match}]).clusters[0]

    assert unmatched(entry, labels_of(PROD)) == label


def test_nothing_matches_a_cluster_of_which_nothing_is_known() -> None:
    entries = tuple(ClusterEntry(match={label: "*"}) for label in ("name", "region", "env"))

    assert all(unmatched(entry, labels_of(EVERYWHERE)) for entry in entries)


MODES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], dict[str, Stance]]] = {
    "an id over an id": (
        {"policies": {POOL: {"mode": "enforce"}}},
        [{"policies": {POOL: {"mode": "audit"}}}],
        {POOL: Stance.AUDIT},
    ),
    "a pattern over an id": (
        {"policies": {POOL: {"mode": "enforce"}}},
        [{"policies": {"nodepools/*": {"mode": "audit"}}}],
        {POOL: Stance.AUDIT},
    ),
    "a pattern over an overlapping pattern": (
        {"policies": {"nodepools/*": {"mode": "enforce"}}},
        [{"policies": {"*": {"mode": "audit"}}}],
        {POOL: Stance.AUDIT},
    ),
    "an id over a pattern of the same entry": (
        {},
        [{"policies": {"*": {"mode": "audit"}, POOL: {"mode": "warn"}}}],
        {POOL: Stance.WARN, TOLERATION: Stance.AUDIT},
    ),
    "a later entry over an earlier one": (
        {},
        [{"policies": {POOL: {"mode": "warn"}}}, {"policies": {"*": {"mode": "audit"}}}],
        {POOL: Stance.AUDIT},
    ),
    "an entry with parameters only keeps the mode": (
        {"policies": {POOL: {"mode": "audit"}}},
        [{"policies": {POOL: {"params": {"at_least": {"spot": 7}}}}}],
        {POOL: Stance.AUDIT},
    ),
    "the maximum of a cluster lowers what the file sets": (
        {"policies": {POOL: {"mode": "enforce"}}},
        [{"mode": "audit"}],
        {POOL: Stance.AUDIT, TOLERATION: min(Stance.AUDIT, SHIPPED[TOLERATION])},
    ),
    "the maximum of a cluster replaces that of the file": (
        {"mode": "audit", "policies": {POOL: {"mode": "warn"}}},
        [{"mode": "enforce"}],
        {POOL: Stance.WARN, TOLERATION: SHIPPED[TOLERATION]},
    ),
    "the maximum of a cluster does not lower what the same entry sets": (
        {},
        [{"mode": "audit", "policies": {POOL: {"mode": "enforce"}}}],
        {POOL: Stance.ENFORCE},
    ),
    "a pattern does not enable a policy that is off": (
        {},
        [{"policies": {"*": {"mode": "enforce"}}}],
        {OFF: Stance.OFF},
    ),
    "a pattern sets the mode of a policy that its id enabled": (
        {"policies": {OFF: {"mode": "enforce"}}},
        [{"policies": {"*": {"mode": "audit"}}}],
        {OFF: Stance.AUDIT},
    ),
    "off": ({}, [{"policies": {POOL: {"mode": False}}}], {POOL: Stance.OFF}),
}


@pytest.mark.parametrize(("sections", "entries", "expected"), MODES.values(), ids=MODES)
def test_an_entry_takes_precedence(
    sections: dict[str, Any], entries: list[dict[str, Any]], expected: dict[str, Stance]
) -> None:
    found = modes(in_prod(*entries, **sections))

    assert {policy: found[policy] for policy in expected} == expected


def test_parameters_are_merged_by_name() -> None:
    other = "pods/missing-cost-labels"
    ruleset = in_prod(
        {"policies": {other: {"params": {"required": ["team", "project"]}}}},
        policies={other: {"params": {"required": ["team"], "formats": {"team": ["*"]}}}},
    )

    params = next(rule.params for rule in ruleset.rules if rule.policy.id == other)

    assert (params.required, params.formats) == (("team", "project"), {"team": ("*",)})  # type: ignore[attr-defined]


def test_modes_of_namespaces() -> None:
    ruleset = in_prod(
        {"mode": "warn", "namespaces": {"team-b": {"policies": {POOL: {"mode": "audit"}}}}},
        namespaces={
            "team-a": {"policies": {POOL: {"mode": "enforce"}}},
            "team-b": {"policies": {POOL: {"mode": "enforce"}}},
        },
    )

    rule = next(rule for rule in ruleset.rules if rule.policy.id == POOL)

    assert rule.namespace_modes == {"team-a": Stance.WARN, "team-b": Stance.AUDIT}


def test_other_sections() -> None:
    hours = {"namespaces": ["lab"], "time_zone": "Europe/Berlin"}
    settled = settle(
        config(
            target={"karpenter": "1.12"},
            platform={"ec2": True},
            exemptions=[{"policies": ["pods/*"], **OPINION}],
            clusters=[
                {"match": {"env": "dev"}, "target": {"keda": "2.18"}},
                {
                    "match": {"env": "prod"},
                    "target": {"kubernetes": "1.35"},
                    "platform": {"ec2": False, "working_hours": [hours]},
                    "exemptions": [{"policies": ["nodepools/*"], **OPINION}],
                },
            ],
        ),
        PROD,
    )

    assert (settled.target.kubernetes, settled.target.karpenter, settled.target.keda) == ("1.35", "1.12", "2.20")
    assert (settled.platform.ec2, settled.platform.working_hours[0].time_zone) == (False, "Europe/Berlin")
    assert settled.platform.cluster == PROD
    assert [exemption.policies for exemption in settled.exemptions] == [("pods/*",), ("nodepools/*",)]
    assert source_of(settled, ("exemptions", 0)) == ("exemptions", 0)
    assert source_of(settled, ("exemptions", 1, "reason")) == ("clusters", 1, "exemptions", 0, "reason")
    assert source_of(settled, ("target", "kubernetes")) == ("clusters", 1, "target", "kubernetes")
    assert source_of(settled, ("target", "karpenter")) == ("target", "karpenter")


def test_the_cluster_of_the_file_is_completed_by_the_caller() -> None:
    of_file = config(platform={"cluster": {"name": "gpu-1", "labels": {"env": "dev", "tier": "gold"}}})

    settled = settle(of_file, ClusterIdentity(region="eu-west-1", labels={"env": "prod"}))

    assert settled.platform.cluster == PROD


def test_the_cluster_must_be_known() -> None:
    with pytest.raises(ConfigError, match="depends on the cluster, but its name and labels are unknown"):
        settle(config(clusters=[{"match": {"env": "prod"}}]), None)


MODE = st.sampled_from(["off", "audit", "warn", "enforce"])
KEY = st.sampled_from(["*", TOLERATION, POOL, CLAIM, OFF])
SECTION = st.fixed_dictionaries(
    {},
    optional={
        "mode": MODE,
        "policies": st.dictionaries(KEY, st.builds(dict, mode=MODE)),
        "namespaces": st.dictionaries(
            st.sampled_from(["a", "b"]),
            st.builds(dict, policies=st.dictionaries(KEY, st.builds(dict, mode=MODE))),
        ),
        "target": st.sampled_from([{"kubernetes": "1.35"}, {"keda": "2.19"}]),
        "exemptions": st.just([{"policies": ["pods/*"], **OPINION}]),
    },
)
IDENTITIES = st.sampled_from([None, EVERYWHERE, PROD, ClusterIdentity(name="gpu-2", labels={"env": "dev"})])


@given(SECTION, IDENTITIES)
def test_a_file_without_clusters_means_what_it_meant(sections: dict[str, Any], cluster: ClusterIdentity | None) -> None:
    plain = bind(CATALOG, config(**sections))

    settled = bind(CATALOG, settle(config(**sections), cluster))

    assert settled.rules == plain.rules
    assert (settled.config.exemptions, settled.config.target) == (plain.config.exemptions, plain.config.target)


@given(SECTION, st.lists(SECTION, max_size=3), st.sampled_from([EVERYWHERE, PROD]))
def test_entries_that_do_not_match_change_nothing(
    sections: dict[str, Any], others: list[dict[str, Any]], cluster: ClusterIdentity
) -> None:
    entries = [{"match": {"env": "dev"}, **other} for other in others]
    plain = bind(CATALOG, config(**sections))

    settled = bind(CATALOG, settle(config(**sections, clusters=entries), cluster))

    assert settled.rules == plain.rules
    assert settled.config.namespaces == plain.config.namespaces
    assert (settled.config.exemptions, settled.config.target) == (plain.config.exemptions, plain.config.target)


@given(SECTION)
def test_an_entry_in_an_empty_file_is_the_file_of_its_clusters(sections: dict[str, Any]) -> None:
    of_file = bind(CATALOG, config(**sections))

    of_cluster = bind(CATALOG, settle(config(clusters=[{"match": {"env": "prod"}, **sections}]), PROD))

    assert of_cluster.rules == of_file.rules
    assert (of_cluster.config.exemptions, of_cluster.config.target) == (
        of_file.config.exemptions,
        of_file.config.target,
    )
