from __future__ import annotations

import pytest

from gpugate.policies.data.legacy_apis import LEGACY_APIS, LegacyApi
from gpugate.policies.nodepools import legacy_api
from gpugate.policies.sdk.objects import GroupVersionKind
from gpugate.policies.sdk.policy import policy_in

JUDGED = policy_in(legacy_api).kinds


@pytest.mark.parametrize("api", LEGACY_APIS, ids=lambda api: f"{api.group}/{api.version}-{api.kind}")
def test_the_policy_judges_the_kind(api: LegacyApi) -> None:
    assert any(kind.covers(GroupVersionKind(api.group, api.version, api.kind)) for kind in JUDGED)


@pytest.mark.parametrize("kind", JUDGED, ids=lambda kind: f"{kind.group}-{kind.name}")
def test_the_table_has_every_version_of_the_kind(kind: object) -> None:
    known = {(api.group, api.version, api.kind) for api in LEGACY_APIS}
    assert {(kind.group, version, kind.name) for version in kind.versions} <= known  # type: ignore[attr-defined] # a Kind
