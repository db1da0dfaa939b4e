"""Reload the policy file when it changes, and keep the last valid ruleset if the file is invalid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.evaluate import described
from gpugate.policies.engine.ruleset import Ruleset, bind
from gpugate.webhook.admission.certificate import signature
from gpugate.webhook.admission.gate import Rules
from gpugate.webhook.manifests.policy_file import (
    SHIPPED,
    PolicyFileError,
    generation,
    parse_policy_file,
    read_policy_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpugate.webhook.admission.certificate import Signature


@dataclass(frozen=True, slots=True)
class Reload:
    """The result of a reload of the policy file.

    `generation` is that of the ruleset in force. `error` states why the file is invalid; the last valid ruleset then
    stays in force.
    """

    generation: str
    error: str = ""


def load_rules(path: Path | None) -> Rules:
    """Read the policy file and bind every policy to it; without a file, to the shipped modes.

    The generation is the first 12 hexadecimal digits of the SHA-256 of the file's bytes.

    Raises:
        PolicyFileError: the file cannot be read or is invalid; the message states the location and the fix.
    """
    if path is None:
        return Rules(_bind_all(PolicyConfig()), SHIPPED)
    data = read_policy_file(path)
    return Rules(parse_policy_file(path, data, _bind_all), generation(data))


class PolicyFileWatch:
    """Reloads the policy file when it changes.

    The kubelet changes a mounted ConfigMap by renaming a symbolic link to its folder (`k8s.io/kubernetes`
    pkg/volume/util/atomic_writer.go, v1.36), so the path then leads to another inode.
    """

    def __init__(
        self, path: Path | None, rules: Rules, use: Callable[[Rules], None], report: Callable[[Reload], None]
    ) -> None:
        """Start with a loaded ruleset.

        Args:
            path: the policy file; None never reloads.
            rules: the result of `load_rules` for this path.
            use: called with each new ruleset.
            report: called with the result of each change, and once for each invalid version of the file.
        """
        self._path = path
        self._rules = rules
        self._use = use
        self._report = report
        self._failed = False
        # Differs from the signature of every file, so that the first poll detects a change since `load_rules`.
        self._signature: Signature = ()

    def poll(self) -> None:
        """Reload the file if its inode, size or times changed since the last read."""
        if self._path is None:
            return
        current = signature(self._path)
        if current != self._signature:
            self._signature = current
            self._read(self._path, always=False)

    def reload(self) -> None:
        """Reload the file and bind every policy again, even if the file is unchanged."""
        if self._path is None:
            self._report(Reload(self._rules.generation))
            return
        self._signature = signature(self._path)
        self._read(self._path, always=True)

    def _read(self, path: Path, *, always: bool) -> None:
        try:
            data = _content(path)
            unchanged = generation(data) == self._rules.generation and not always
            rules = self._rules if unchanged else Rules(parse_policy_file(path, data, _bind_all), generation(data))
        except PolicyFileError as error:
            self._fail(str(error))
            return
        except Exception as error:  # noqa: BLE001 -- no error in a file may replace the ruleset in force
            self._fail(f"{path}: cannot be used ({described(error)})")
            return
        if not unchanged:
            self._rules = rules
            self._use(rules)
        if self._failed or not unchanged:
            self._failed = False
            self._report(Reload(rules.generation))

    def _fail(self, error: str) -> None:
        self._failed = True
        self._report(Reload(self._rules.generation, error))


def _content(path: Path) -> bytes:
    if path.is_fifo():
        # Opening a pipe would block until a process writes to it.
        raise PolicyFileError(f"{path}: is a pipe, which cannot be reloaded")
    return read_policy_file(path)


def _bind_all(config: PolicyConfig) -> Ruleset:
    return bind(CATALOG, config)
