"""Reload the policy file when it changes, and keep the last valid ruleset if the file is invalid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.engine.caught_error import described
from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.admission.certificate import signature
from gpugate.webhook.admission.gate import Rules
from gpugate.webhook.manifests.policy_file import (
    SHIPPED,
    PolicyFileError,
    generation,
    load_policy_file,
    read_policy_file,
)
from gpugate.webhook.own_policies.catalog import OwnPaths, catalog_from
from gpugate.webhook.own_policies.sources import digest, read_directories, signatures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.sdk.platform import ClusterIdentity
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.own_policies.sources import PolicySource


@dataclass(frozen=True, slots=True)
class Reload:
    """The result of a reload of the policy file.

    `generation` is that of the ruleset in force. `error` states why the file is invalid; the last valid ruleset then
    stays in force.
    """

    generation: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class RulesContent:
    """What was read: the bytes of the policy file, None without one, and the files of policies outside the library."""

    data: bytes | None
    sources: tuple[PolicySource, ...]
    directories: tuple[Path, ...]

    @property
    def own(self) -> bytes:
        """The name of the set of policies outside the library."""
        return digest(self.sources)

    @property
    def generation(self) -> str:
        """The first 12 hexadecimal digits of the SHA-256 of all files."""
        if not self.sources:
            return SHIPPED if self.data is None else generation(self.data)
        return generation((self.data or b"") + self.own)


class RulesFiles:
    """The files from which rules are loaded: the policy file, and the directories of policies that it and flags name."""

    def __init__(
        self,
        policy_file: Path | None,
        own: OwnPaths | None = None,
        guarded: Callable[[Sequence[Policy], bytes], tuple[Policy, ...]] = lambda policies, _: tuple(policies),
        cluster: ClusterIdentity | None = None,
    ) -> None:
        """Name the files.

        Args:
            policy_file: the policy file; None is every policy in its shipped mode.
            own: the directories of policies that flags name.
            guarded: returns the policies of a set outside the library as they are called.
            cluster: the cluster for which the policy file is read; None is the one that the file names.
        """
        self.policy_file = policy_file
        self._own = own or OwnPaths()
        self._guarded = guarded
        self._cluster = cluster

    @property
    def is_fixed(self) -> bool:
        """Whether there is nothing to reload."""
        return self.policy_file is None and not self._own.directories

    def signature(self, directories: Sequence[Path]) -> object:
        """Return what changes when a file changes, of the directories that were read last."""
        return (signature(self.policy_file) if self.policy_file else None, signatures(directories))

    def read(self) -> RulesContent:
        """Read all files; runs no code of them.

        Raises:
            GpugateError: a file cannot be read or is invalid; the message states the location and the fix.
        """
        data = None if self.policy_file is None else _read(self.policy_file)

        def directories_of(config: PolicyConfig) -> tuple[Path, ...]:
            return self._own.directories_of(config, self.policy_file)

        directories = load_policy_file(self.policy_file, directories_of, data, self._cluster)
        return RulesContent(data, read_directories(directories), directories)

    def load(self, content: RulesContent) -> Rules:
        """Bind every policy to the policy file; runs the code of policies outside the library.

        Raises:
            GpugateError: a policy or the policy file is invalid; the message states the location and the fix.
        """
        catalog = catalog_from(content.sources)
        library = catalog.policies[: len(catalog.policies) - len(catalog.own)]
        policies = (*library, *self._guarded([own.policy for own in catalog.own], content.own))
        ruleset = load_policy_file(self.policy_file, lambda config: bind(policies, config), content.data, self._cluster)
        return Rules(ruleset, content.generation)


def load_rules(path: Path | None, own: OwnPaths | None = None) -> Rules:
    """Read the policy file and bind every policy to it; without a file, to the shipped modes.

    The generation is the first 12 hexadecimal digits of the SHA-256 of the file's bytes.

    Raises:
        GpugateError: a file cannot be read or is invalid; the message states the location and the fix.
    """
    files = RulesFiles(path, own)
    return files.load(files.read())


class PolicyFileWatch:
    """Reloads the policy file, and directories of policies, when one of them changes.

    The kubelet changes a mounted ConfigMap by renaming a symbolic link to its folder (`k8s.io/kubernetes`
    pkg/volume/util/atomic_writer.go, v1.36), so the path then leads to another inode.
    """

    def __init__(
        self,
        files: RulesFiles | Path | None,
        rules: Rules,
        use: Callable[[Rules], None],
        report: Callable[[Reload], None],
        admits: Callable[[RulesContent], bool] = lambda _: True,
    ) -> None:
        """Start with a loaded ruleset.

        Args:
            files: the policy file, or all files; None never reloads.
            rules: the result of `load_rules` for these files.
            use: called with each new ruleset.
            report: called with the result of each change, and once for each invalid version of the file.
            admits: tells whether changed files may be loaded now. If not, they are offered again at the next poll.
        """
        self._files = files if isinstance(files, RulesFiles) else RulesFiles(files)
        self._rules = rules
        self._use = use
        self._report = report
        self._admits = admits
        self._failed = False
        # Differs from the signature of every file, so that the first poll detects a change since `load_rules`.
        self._signature: object = ()
        self._directories: tuple[Path, ...] = ()
        self._waiting: RulesContent | None = None

    def poll(self) -> None:
        """Reload the files if the inode, size or times of one changed since the last read."""
        if self._files.is_fixed:
            return
        current = self._files.signature(self._directories)
        if current != self._signature:
            self._read(always=False)
        elif self._waiting is not None:
            self._apply(self._waiting, always=True)

    def reload(self) -> None:
        """Reload the files and bind every policy again, even if they are unchanged."""
        if self._files.is_fixed:
            self._report(Reload(self._rules.generation))
            return
        self._read(always=True)

    def _read(self, *, always: bool) -> None:
        self._signature = self._files.signature(self._directories)
        try:
            content = self._files.read()
        except GpugateError as error:
            self._fail(str(error))
            return
        except Exception as error:  # noqa: BLE001 -- no error in a file may replace the ruleset in force
            self._fail(f"{self._files.policy_file}: cannot be used ({described(error)})")
            return
        if content.directories != self._directories:
            self._directories = content.directories
            self._signature = self._files.signature(self._directories)
        self._apply(content, always=always)

    def _apply(self, content: RulesContent, *, always: bool) -> None:
        unchanged = content.generation == self._rules.generation and not always
        try:
            if not unchanged and not self._admits(content):
                self._waiting = content
                return
            self._waiting = None
            rules = self._rules if unchanged else self._files.load(content)
        except GpugateError as error:
            self._fail(str(error))
            return
        except Exception as error:  # noqa: BLE001 -- as above
            self._fail(f"{self._files.policy_file}: cannot be used ({described(error)})")
            return
        if not unchanged:
            self._rules = rules
            self._use(rules)
        if self._failed or not unchanged:
            self._failed = False
            self._report(Reload(rules.generation))

    def _fail(self, error: str) -> None:
        self._waiting = None
        self._failed = True
        self._report(Reload(self._rules.generation, error))


def _read(path: Path) -> bytes:
    if path.is_fifo():
        # Opening a pipe would block until a process writes to it.
        raise PolicyFileError(f"{path}: is a pipe, which cannot be reloaded")
    return read_policy_file(path)
