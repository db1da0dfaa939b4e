from __future__ import annotations

import pytest

from gpugate.policies.data.legacy_apis import LEGACY_APIS, LegacyApi
from gpugate.policies.nodepools.legacy_api import check
from gpugate.policies.sdk.kinds import GroupVersionKind


@pytest.mark.parametrize("api", LEGACY_APIS, ids=lambda api: f"{api.group}/{api.version}-{api.kind}")
def test_the_policy_judges_the_kind(api: LegacyApi) -> None:
    assert any(kind.covers(GroupVersionKind(api.group, api.version, api.kind)) for kind in check.kinds)


@pytest.mark.parametrize("kind", check.kinds, ids=lambda kind: f"{kind.group}-{kind.name}")
def test_the_table_has_every_version_of_the_kind(kind: object) -> None:
    known = {(api.group, api.version, api.kind) for api in LEGACY_APIS}
    assert {(kind.group, version, kind.name) for version in kind.versions} <= known  # type: ignore[attr-defined] # a Kind
