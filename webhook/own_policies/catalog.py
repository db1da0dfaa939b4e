"""The policies that a command knows: those of the library, of directories and of installed packages."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpugate.policies.engine.config import ConfigError
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.within import Wanted, refusal, tree_of
from gpugate.webhook.own_policies.sources import (
    GROUP,
    MOST_POLICIES,
    OwnPolicy,
    OwnPolicyError,
    PolicySource,
    read_directories,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.manifests.git import Revision


class Catalog(Struct, frozen=True):
    """All policies that a command knows: those of the library, then the others in the order of their ids.

    Attributes:
        own: the policies outside the library.
        sources: the files from which those of directories were loaded, to load them in another process.
        is_complete: whether everything that settings name was loaded; False with `--no-project-policies`, and if directories
            were read from the base revision, which does not have the new policies of the change.
        remarks: sentences on policies that were read from the base revision, or not at all.
    """

    own: tuple[OwnPolicy, ...] = ()
    sources: tuple[PolicySource, ...] = ()
    is_complete: bool = True
    remarks: tuple[str, ...] = ()

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies, in evaluation order."""
        from gpugate.policies.catalog import CATALOG  # noqa: PLC0415 -- importing it reads every policy

        return (*CATALOG, *(own.policy for own in self.own))

    def is_example(self, file: str) -> bool:
        """Tell whether a file is or contains an example of a policy outside the library."""
        path = Path(file).absolute()
        if any(path == Path(own.origin).absolute() for own in self.own):
            return True
        return not {own.examples.absolute() for own in self.own}.isdisjoint(path.parents)

    @property
    def examples(self) -> tuple[str, ...]:
        """The folders of examples in directories of policies, as patterns of files to leave out."""
        folders = dict.fromkeys(str(Path(source.examples).parent) for source in self.sources)
        return tuple(folder if folder.startswith("/") else f"./{folder}" for folder in folders)

    @property
    def known(self) -> Collection[str]:
        """The ids that comments and expectations may name."""
        ids = frozenset(policy.id for policy in self.policies)
        return ids if self.is_complete else _WithOtherFamilies(ids)

    @property
    def closed_families(self) -> Collection[str] | None:
        """The families of which every policy is known; None for all."""
        return None if self.is_complete else library_families()

    @property
    def origins(self) -> Mapping[str, OwnPolicy]:
        """Id -> the policy outside the library."""
        return {own.policy.id: own for own in self.own}


class _WithOtherFamilies(frozenset[str]):
    """Ids of policies, which also contain every id outside the families of the library."""

    def __contains__(self, policy_id: object) -> bool:
        return super().__contains__(policy_id) or str(policy_id).partition("/")[0] not in library_families()


def library_families() -> frozenset[str]:
    """Return the families of the library, of which no other policy can be."""
    from gpugate.policies.catalog import IDS  # noqa: PLC0415 -- importing it reads every policy

    return frozenset(policy_id.partition("/")[0] for policy_id in IDS)


def _no_base() -> None:
    """Return no base revision."""


class OwnPaths(Struct, frozen=True):
    """Where a command finds policies outside the library.

    Attributes:
        directories: the directories that flags and the environment name.
        of_project: the directories that the project file names.
        base: returns the revision from which directories of its repository are read; None for those on disk.
        is_off: whether the directories of the project file and of the policy file are left out.
    """

    directories: tuple[Path, ...] = ()
    of_project: tuple[Path, ...] = ()
    base: Callable[[], Revision | None] = _no_base
    is_off: bool = False

    def directories_of(self, config: PolicyConfig, policy_file: Path | None) -> tuple[Path, ...]:
        """Return the directories that are read.

        Raises:
            ConfigError: the policy file names a directory outside its repository.
        """
        named = () if self.is_off else (*self.of_project, *_of_config(config, policy_file))
        return (*self.directories, *named)

    def catalog(self, config: PolicyConfig, policy_file: Path | None) -> Catalog:
        """Load the policies, also those of the directories that a policy file names.

        Raises:
            ConfigError: the policy file names a directory outside its repository.
            GpugateError: a directory cannot be read, or a policy cannot be loaded.
        """
        of_config = tuple(_of_config(config, policy_file))
        directories = self.directories_of(config, policy_file)
        base = self.base() if directories else None
        sources = read_directories(directories, base)
        catalog = catalog_from(sources)
        left_out = (*self.of_project, *of_config) if self.is_off else ()
        remarks = [f"{_listed(left_out)}: not loaded, because of --no-project-policies"] if left_out else []
        absent: list[Path] = []
        if base is not None:
            committed = [directory for directory in directories if base.holds(str(directory))]
            absent = [folder for folder in committed if not any(_is_below(source, folder) for source in sources)]
            read = [folder for folder in committed if folder not in absent]
            if read:
                remarks.append(f"policies read from {base.name}, not from the change: {_listed(read)}")
            if absent:
                remarks.append(f"{_listed(absent)}: not loaded, because {base.name} has no policies there")
        return replace(catalog, is_complete=not left_out and base is None, remarks=tuple(remarks))


def _of_config(config: PolicyConfig, policy_file: Path | None) -> Iterator[Path]:
    """Yield the directories that a policy file names.

    Raises:
        ConfigError: one is outside the work tree that the policy file is in.
    """
    folder = policy_file.parent if policy_file else Path()
    top = tree_of(str(folder))
    for index, text in enumerate(config.policy_paths):
        directory = Path(os.path.normpath(folder / text))
        wrong = refusal(str(directory), top, Wanted.DIRECTORY) if top else ""
        if wrong:
            raise ConfigError(("policy_paths", index), f"{text} {wrong}: name a directory in the repository")
        yield directory


def _is_below(source: PolicySource, directory: Path) -> bool:
    return Path(source.file).is_relative_to(directory)


def _listed(directories: Iterable[Path]) -> str:
    return ", ".join(map(str, dict.fromkeys(directories)))


def catalog_from(sources: tuple[PolicySource, ...]) -> Catalog:
    """Load policies from files that were read, and those of installed packages.

    Raises:
        OwnPolicyError: a policy cannot be loaded, two have one id, or there are too many.
    """
    packages = list(_packages(sys.path))
    if not sources and not packages:
        return Catalog()
    # Only environments with policies of their own take the time to import it.
    from gpugate.webhook.own_policies.load import load_packages, load_sources  # noqa: PLC0415 -- see above

    own = [*load_packages(packages), *load_sources(sources)]
    if len(own) > MOST_POLICIES:
        raise OwnPolicyError(f"{own[-1].origin}: more than {MOST_POLICIES} policies outside the library: remove some")
    by_id: dict[str, OwnPolicy] = {}
    for policy in own:
        other = by_id.setdefault(policy.policy.id, policy)
        if other is not policy:
            raise OwnPolicyError(f"{policy.origin}: {other.origin} has the same id {policy.policy.id}: rename one")
    return Catalog(tuple(by_id[policy_id] for policy_id in sorted(by_id)), sources)


def _packages(path: Sequence[str]) -> Iterator[str]:
    """Yield the metadata folders of the installed packages that have policies.

    `importlib.metadata` would read those of every installed package, which takes longer than the rest of the start of
    `check`.
    """
    wanted = f"[{GROUP}]".encode()
    here = os.path.realpath(os.curdir)
    for folder in dict.fromkeys(path):
        if os.path.realpath(folder) == here:
            continue  # `python -m` adds the working directory, whose content a change may have written
        try:
            with os.scandir(folder) as scanned:
                infos = sorted(entry.path for entry in scanned if entry.name.endswith(".dist-info"))
        except OSError:
            continue
        for info in infos:
            try:
                if wanted in Path(info, "entry_points.txt").read_bytes():
                    yield info
            except OSError:
                continue
