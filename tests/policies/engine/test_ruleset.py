from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.engine.config import ConfigError, parse_config
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.objects import POD, GroupVersionKind
from gpugate.policies.sdk.policy import Context, Params, Policy, Table, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field, Json


class Limit(Params):
    """A parameter to parse."""

    at_least: int = 2


def policy(policy_id: str, mode: Stance = Stance.ENFORCE, tables: tuple[Table[str], ...] = ()) -> Policy:
    @validates(POD, params=Limit, mode=mode, tables=tables)
    def check(_pod: Field, _ctx: Context[Limit]) -> Iterator[Violation | Skip]:
        yield from ()

    return Policy(policy_id, "A policy.", (check,))


CATALOG = (policy("pods/one"), policy("pods/two", Stance.WARN), policy("nodepools/three", Stance.OFF))


def modes(**sections: Json) -> dict[str, Stance]:
    config = parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", **sections})
    return {rule.policy.id: rule.mode for rule in bind(CATALOG, config).rules}


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({}, {"pods/one": Stance.ENFORCE, "pods/two": Stance.WARN}),
        ({"mode": "audit"}, {"pods/one": Stance.AUDIT, "pods/two": Stance.AUDIT}),
        ({"mode": "enforce"}, {"pods/one": Stance.ENFORCE, "pods/two": Stance.WARN}),
        (
            {"mode": "audit", "policies": {"pods/two": {"mode": "enforce"}}},
            {"pods/one": Stance.AUDIT, "pods/two": Stance.ENFORCE},
        ),
        (
            {"policies": {"pods/*": {"mode": "audit"}, "pods/two": {"mode": "enforce"}}},
            {"pods/one": Stance.AUDIT, "pods/two": Stance.ENFORCE},
        ),
        ({"policies": {"pods/one": {"mode": False}}}, {"pods/two": Stance.WARN}),
        (
            {"namespaces": {"research-*": {"policies": {"nodepools/three": {"mode": "warn"}}}}},
            {"pods/one": Stance.ENFORCE, "pods/two": Stance.WARN, "nodepools/three": Stance.OFF},
        ),
        ({"policies": {"*": {"mode": "warn"}}}, {"pods/one": Stance.WARN, "pods/two": Stance.WARN}),
        (
            {"namespaces": {"research-*": {"policies": {"nodepools/*": {"mode": "warn"}}}}},
            {"pods/one": Stance.ENFORCE, "pods/two": Stance.WARN},
        ),
    ],
    ids=[
        "shipped modes",
        "a ceiling lowers",
        "a ceiling never raises",
        "an entry beats the ceiling",
        "an id beats a pattern",
        "off is not bound",
        "on in some namespaces is bound",
        "a pattern turns nothing on that ships off",
        "nor does a pattern in a namespace",
    ],
)
def test_the_mode_of_a_rule(sections: dict[str, Json], expected: dict[str, Stance]) -> None:
    assert modes(**sections) == expected


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        (
            {"policies": {"pods/onne": {}}},
            'policies["pods/onne"]: unknown policy `pods/onne`; did you mean `pods/one`',
        ),
        ({"policies": {"jobs/*": {}}}, 'policies["jobs/*"]: unknown policy `jobs/*`; `gpugate policies` lists'),
        (
            {"policies": {"pods/*": {}, "*/one": {}}},
            'policies["*/one"]: `pods/*` names pods/one too: write its id, or one pattern',
        ),
        (
            {"policies": {"pods/one": {"params": {"at_last": 3}}}},
            'policies["pods/one"].params.at_last: unknown key; did you mean `at_least`?',
        ),
        (
            {"policies": {"pods/one": {"params": {"at_least": "8 GPUs"}}}},
            'policies["pods/one"].params.at_least: expected `int`, got `str`',
        ),
        ({"policies": {"pods/one": {"mode": True}}}, 'policies["pods/one"].mode: must be off, audit, warn or enforce'),
        (
            {"namespaces": {"a-*": {"policies": {}}, "*-b": {"policies": {}}}},
            'namespaces["*-b"]: some names match both `a-*` and this pattern',
        ),
        (
            {"namespaces": {"a" * 253 + "*": {"policies": {}}}},
            f'namespaces["{"a" * 253}*"]: is longer than 253 characters, the maximum of a name',
        ),
        ({"mode": True}, "mode: must be off, audit, warn or enforce"),
        (
            {"namespaces": {"a": {"policies": {"pods/one": {"mode": True}}}}},
            'namespaces.a.policies["pods/one"].mode: must be off, audit, warn or enforce',
        ),
        (
            {
                "exemptions": [
                    {"policies": ["pods/won"], "reason": "a", "owner": "b", "expires": "2027-03-31"},
                ],
            },
            "exemptions[0].policies: unknown policy `pods/won`",
        ),
        (
            {"namespaces": {"a": {"policies": {"pods/won": {"mode": "warn"}}}}},
            'namespaces.a.policies["pods/won"]: unknown policy `pods/won`',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_does_not_fit_the_catalogue_is_refused(sections: dict[str, Json], says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        modes(**sections)
    assert str(refused.value).startswith(says)


def test_a_pattern_may_be_as_long_as_a_name() -> None:
    assert modes(namespaces={"a" * 252 + "*": {"policies": {}}})


def test_the_first_pattern_that_fits_counts_and_no_other_key_does() -> None:
    assert modes(policies={"nodepools/*": {"mode": "audit"}, "pods/o*": {"mode": "audit"}}) == {
        "pods/one": Stance.AUDIT,
        "pods/two": Stance.WARN,
    }


def test_a_table_is_loaded_when_a_rule_that_reads_it_is_bound() -> None:
    loads: list[str] = []
    table = Table("types", lambda: loads.append("types") or "loaded")
    catalog = (policy("pods/one", tables=(table,)),)
    config = parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", "policies": {"*": {"mode": "off"}}})
    assert bind(catalog, config).tables == {}
    assert loads == []
    config = parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig"})
    assert bind(catalog, config).tables == {"types": "loaded"}


def test_only_some_of_the_rules_are_bound() -> None:
    ruleset = bind(CATALOG, parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig"}), only={"pods/two"})
    assert [rule.policy.id for rule in ruleset.rules] == ["pods/two"]
    assert ruleset.order == {"pods/two": 0}
    assert [rule.policy.id for rule, _ in ruleset.handlers(GroupVersionKind("", "v1", "Pod"), mutating=False)] == [
        "pods/two"
    ]
    assert ruleset.handlers(GroupVersionKind("", "v1", "Pod"), mutating=True) == ()
    assert ruleset.handlers(GroupVersionKind("", "v1", "Pod"), "ephemeralContainers", mutating=False) == ()
