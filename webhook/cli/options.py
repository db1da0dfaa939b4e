"""Flags and parsers that several commands share."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.cli.program import called

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.webhook.manifests.git import Revision


class Parser(argparse.ArgumentParser):
    """A parser of one command, whose texts call the program as the user did."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: argparse's own arguments, passed on
        super().__init__(*args, **kwargs)
        self.prog = called(self.prog)

    def format_help(self) -> str:
        """Return the help."""
        return called(super().format_help())


_WRITTEN: Final = re.compile(r"([0-9]{1,7})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str) -> dt.timedelta:
    """Read `90s`, `10m`, `24h` or `30d`.

    Raises:
        ValueError: it is none of these.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration")
    return dt.timedelta(**{_UNITS[found[2]]: int(found[1])})


def seconds(text: str) -> float:
    """Read a duration, or a number of seconds without a unit, into seconds, for argparse.

    Raises:
        ArgumentTypeError: it is neither.
    """
    try:
        return duration(f"{text}s" if text.isdecimal() else text).total_seconds()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90s, 5m or 1h") from None


# What holds without `--policy-file`.
OF_THE_PROJECT: Final = "that of the project file, else every policy as shipped"
INSTALLED: Final = "the one that is installed, else every policy as shipped"


class UsageError(GpugateError):
    """The arguments do not fit together, or an output cannot be written."""


def add_policy_file(parser: argparse._ActionsContainer, default: str = "every policy as shipped") -> None:
    """Add `--policy-file`; `default` says in words what holds without it."""
    parser.add_argument(
        "-p",
        "--policy-file",
        type=Path,
        metavar="FILE",
        help=f"policy.yaml: modes, parameters, exemptions (default: {default})",
    )


def add_cluster(parser: argparse._ActionsContainer, environ: Mapping[str, str]) -> None:
    """Add `--kubeconfig` and `--context`, for a cluster that is read once."""
    file = environ.get("GPUGATE_KUBECONFIG")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        default=Path(file) if file else None,
        help="the way to the cluster (default: in a Pod its ServiceAccount, else as kubectl)",
    )
    parser.add_argument(
        "--context", metavar="NAME", default=environ.get("GPUGATE_CONTEXT"), help="context of the kubeconfig"
    )


def ruleset(policy_file: Path | None, only: Collection[str] | None = None, base: Revision | None = None) -> Ruleset:
    """Bind policies to the configuration, all or those of some ids; a GpugateError names the place of a mistake.

    With a base revision a policy file of its repository is read from there.
    """
    from gpugate.policies.catalog import CATALOG  # noqa: PLC0415 -- importing it reads every policy
    from gpugate.policies.engine.ruleset import bind  # noqa: PLC0415
    from gpugate.webhook.manifests.policy_file import MAX_POLICY_FILE, load_policy_file  # noqa: PLC0415

    data = None
    if policy_file is not None and base is not None:
        from gpugate.webhook.project.base import read_from  # noqa: PLC0415 -- few runs have a base

        data = read_from(base, policy_file, MAX_POLICY_FILE)
    return load_policy_file(policy_file, lambda config: bind(CATALOG, config, only), data)


def schema_folder(named: Path | None) -> Path | None:
    """Return the folder of further schemas: the one that is named, else the usual one where it is.

    Raises:
        LinkError: the folder, or a file in it, is a link out of the repository.
        UsageError: there is no folder of that name.
    """
    from gpugate.webhook.manifests.within import refuse_link  # noqa: PLC0415 -- few commands need it
    from gpugate.webhook.schemas.tables import FOLDER  # noqa: PLC0415

    if named is not None and not named.is_dir():
        raise UsageError(f"--schemas {named}: there is no such folder; `gpugate schema add` makes it")
    folder = named or (FOLDER if FOLDER.is_dir() else None)
    for path in (folder, *folder.iterdir()) if folder else ():
        refuse_link(path, "--schemas")
    return folder


def outputs(values: Iterable[str], formats: Iterable[str]) -> dict[str, str]:
    """Read `FORMAT[=FILE]` values into file -> format; the file of standard output is empty.

    Raises:
        UsageError: an unknown format, or two formats for one file.
    """
    known, found = tuple(formats), dict[str, str]()
    for value in values:
        name, _, file = value.partition("=")
        if name not in known:
            words = f"{', '.join(known[:-1])} or {known[-1]}"
            raise UsageError(f"-o {name}: write {words}, with =FILE to write a file")
        if file in found:
            raise UsageError(f"-o {value}: {file or 'standard output'} already gets {found[file]}; add =FILE to one")
        found[file] = name
    return found


def write(file: str, text: str) -> None:
    """Write standard output, or a file as a whole or not at all.

    Raises:
        LinkError: the file would be written through a link out of the repository.
        UsageError: the file cannot be written.
    """
    if not file:
        sys.stdout.write(text)
        return
    from gpugate.webhook.manifests.within import refuse_link  # noqa: PLC0415 -- most runs write no file

    target = Path(file)
    special = target.exists() and not target.is_file()
    # A link of the tree to a regular file is replaced, and not followed.
    refuse_link(target if special else target.parent, "the output")
    try:
        if special:
            target.write_text(text, encoding="utf-8")  # a device or a pipe has nothing to lose
            return
        # A name that nobody can foresee: a repository might have a link there, which would be followed.
        unfinished = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{file}: {(error.strerror or 'cannot be written').lower()}") from None


def checked_url(url: str) -> str:
    """Return a URL that the API server takes (`k8s.io/apiserver` pkg/util/webhook/validation.go, v0.36), or none.

    Raises:
        UsageError: it is no such URL.
    """
    if not url:
        return url
    try:
        found = urlsplit(url)
        wrong = found.scheme != "https" or not found.hostname or found.port == 0
    except ValueError:
        wrong = True
    else:
        wrong = wrong or found.path not in {"", "/"} or bool(found.query or found.fragment or found.username)
    if wrong:
        raise UsageError(f"--url {url}: write https://HOST:PORT, without a path: /mutate and /validate are added")
    return url
