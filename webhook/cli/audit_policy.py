"""Which policy file `gpugate audit` uses: the one that is named, else the installed one, else none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cluster.errors import ApiError, CallError
from gpugate.webhook.manifests.policy_file import (
    SHIPPED,
    generation,
    load_policy_file,
    parse_policy_file,
    read_policy_file,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.cluster.connection import Connection

_KEY: Final = "policy.yaml"
_LABEL: Final = {"labelSelector": "app.kubernetes.io/name=gpugate"}
_EVERYWHERE: Final = "/api/v1/configmaps"
_USUAL: Final = "/api/v1/namespaces/gpugate/configmaps"


class Rules(NamedTuple):
    """The rules, the generation of the file that they are from, and a sentence on where it is."""

    ruleset: Ruleset
    generation: str
    remark: str


class _ConfigMap(msgspec.Struct):
    metadata: dict[str, Any]
    data: dict[str, str] | None = None

    @property
    def name(self) -> str:
        return f"ConfigMap {self.metadata['namespace']}/{self.metadata['name']}"


class _ConfigMaps(msgspec.Struct):
    items: list[_ConfigMap]


class Wanted(NamedTuple):
    """What was said on the command line: a file, that the installed one is meant, the mode or None, and the policies' ids."""

    file: Path | None
    installed: bool
    mode: str | None
    only: Collection[str] | None

    def bound(self, config: PolicyConfig) -> Ruleset:
        """Bind a configuration as was said."""
        given = config if self.mode is None else msgspec.structs.replace(config, mode=self.mode)
        return bind(CATALOG, given, self.only)


def rules(wanted: Wanted, connection: Connection | None) -> Rules:
    """Return the rules to judge with; `connection` leads to the cluster, None where a dump is audited.

    Raises:
        GpugateError: the file cannot be read or is refused; none is installed, and one should be.
    """
    if wanted.file is not None:
        data = read_policy_file(wanted.file)
        return Rules(parse_policy_file(wanted.file, data, wanted.bound), generation(data), f"policy file {wanted.file}")
    if wanted.installed and connection is None:
        raise UsageError("--with-installed reads a cluster: leave out --from, or name the file with --policy-file")
    found = _installed(connection, asked=wanted.installed) if connection else "no policy file was given"
    if isinstance(found, str):
        return Rules(load_policy_file(None, wanted.bound), SHIPPED, f"{found}: every policy has its shipped mode")
    data = (found.data or {})[_KEY].encode()
    ruleset = parse_policy_file(Path(f"{found.name}, {_KEY}"), data, wanted.bound)
    return Rules(ruleset, generation(data), f"policy file of {found.name}")


def _installed(connection: Connection, *, asked: bool) -> _ConfigMap | str:
    """Return the ConfigMap that the chart makes, or why there is none."""
    try:
        found = _config_maps(connection)
    except (CallError, msgspec.DecodeError) as error:
        if asked:
            raise UsageError(f"--with-installed: the policy file cannot be read: {error}") from None
        return "no policy file was given, and an installed one cannot be looked for"
    holding = [each for each in found if _KEY in (each.data or {})]
    if len(holding) > 1:
        names = ", ".join(each.name for each in holding)
        raise UsageError(f"there are several installed policy files ({names}): name one with --policy-file")
    if asked and not holding:
        raise UsageError(f"--with-installed: no ConfigMap with the label {_LABEL['labelSelector']} has {_KEY}")
    return holding[0] if holding else "no policy file was given, and none is installed"


def _config_maps(connection: Connection) -> list[_ConfigMap]:
    try:
        answer = connection.read(_EVERYWHERE, _LABEL)
    except ApiError as error:
        if error.code != 403:
            raise
        answer = connection.read(_USUAL, _LABEL)
    return msgspec.json.decode(answer, type=_ConfigMaps).items
