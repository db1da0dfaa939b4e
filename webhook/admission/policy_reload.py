"""Takes up a policy file that changed, and keeps the last good rules when it cannot be used."""

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
    """What became of a policy file that was read again.

    `generation` is that of the rules now in force; when `error` says why the file cannot be used, they are the last
    good ones.
    """

    generation: str
    error: str = ""


def load_rules(path: Path | None) -> Rules:
    """Read the policy file and bind every policy to it; without a file, to the shipped modes.

    The generation is the first 12 hexadecimal digits of the SHA-256 of the bytes that were parsed.

    Raises:
        PolicyFileError: the file cannot be read, or is refused; says where and what to write.
    """
    if path is None:
        return Rules(_bound(PolicyConfig()), SHIPPED)
    data = read_policy_file(path)
    return Rules(parse_policy_file(path, data, _bound), generation(data))


class PolicyFileWatch:
    """Reads the policy file again when it changed.

    The kubelet changes a mounted ConfigMap by renaming a symbolic link to its folder (`k8s.io/kubernetes`
    pkg/volume/util/atomic_writer.go, v1.36), so the file that the path leads to is another one then.
    """

    def __init__(
        self, path: Path | None, rules: Rules, use: Callable[[Rules], None], told: Callable[[Reload], None]
    ) -> None:
        """Begin with rules that were loaded.

        Args:
            path: the policy file; without one, nothing ever changes.
            rules: what `load_rules` made of it.
            use: called with the rules of every change.
            told: called with every change, and once with everything that cannot be used.
        """
        self._path = path
        self._rules = rules
        self._use = use
        self._told = told
        self._failed = False
        # Unlike any file, so that a change since the rules were loaded is seen by the first poll.
        self._seen: Signature = ()

    def poll(self) -> None:
        """Read the file if it is not the one that was read last; otherwise looks at its inode, size and times only."""
        if self._path is None:
            return
        seen = signature(self._path)
        if seen != self._seen:
            self._seen = seen
            self._read(self._path, always=False)

    def reload(self) -> None:
        """Read the file and bind every policy again, changed or not."""
        if self._path is None:
            self._told(Reload(self._rules.generation))
            return
        self._seen = signature(self._path)
        self._read(self._path, always=True)

    def _read(self, path: Path, *, always: bool) -> None:
        try:
            data = _content(path)
            known = generation(data) == self._rules.generation and not always
            rules = self._rules if known else Rules(parse_policy_file(path, data, _bound), generation(data))
        except PolicyFileError as error:
            self._fail(str(error))
            return
        except Exception as error:  # noqa: BLE001 -- whatever is wrong with a file, the rules in force stay
            self._fail(f"{path}: cannot be used ({described(error)})")
            return
        if not known:
            self._rules = rules
            self._use(rules)
        if self._failed or not known:
            self._failed = False
            self._told(Reload(rules.generation))

    def _fail(self, error: str) -> None:
        self._failed = True
        self._told(Reload(self._rules.generation, error))


def _content(path: Path) -> bytes:
    if path.is_fifo():
        # Opening it would wait until somebody writes into it.
        raise PolicyFileError(f"{path}: is a pipe, which cannot be read again")
    return read_policy_file(path)


def _bound(config: PolicyConfig) -> Ruleset:
    return bind(CATALOG, config)
