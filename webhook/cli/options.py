"""Flags and parsers that several commands share."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn
from urllib.parse import urlsplit

import msgspec

from gpugate.policies.engine.config import GpugateError, near_misses
from gpugate.webhook.cli.main import COMMANDS
from gpugate.webhook.cli.program import called

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.catalogue import CatalogueFile
    from gpugate.policies.sdk.platform import ClusterIdentity
    from gpugate.webhook.manifests.git import Revision
    from gpugate.webhook.own_policies.catalog import Catalog, OwnPaths


_WIDTH: Final = 80
_ARGUMENT: Final = re.compile(r"argument (\S+): (.+)", re.DOTALL)
_NO_VALUE: Final = re.compile(r"expected .* arguments?")
# argparse names the Python function that refused the value.
_INVALID: Final = re.compile(r"invalid \w+ value: ")
# Flags of other tools.
_MEANT: Final = {
    "format": "output",
    "dry-run": "diff",
    "strict": "fail-on",
    "kube-context": "context",
    "file": "filename",
}
_REQUIRED: Final = "the following arguments are required: "


class _Help(argparse.HelpFormatter):
    """Help of at most 80 columns, which fills paragraphs and keeps lines of examples."""

    def __init__(self, prog: str) -> None:
        import shutil  # noqa: PLC0415 -- only help needs it

        super().__init__(prog, width=min(shutil.get_terminal_size().columns, _WIDTH))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.split("\n\n")
        # A paragraph with indented lines contains examples.
        return "\n\n".join(
            text if "\n  " in text else super(_Help, self)._fill_text(text, width, indent) for text in paragraphs
        )


class UsageError(GpugateError):
    """The arguments do not fit together, or an output cannot be written."""


class Parser(argparse.ArgumentParser):
    """A parser of one command, whose texts call the program as the user did, and whose errors are raised.

    It accepts no abbreviated flags, because a new flag would make them ambiguous in scripts.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: argparse's own arguments, passed on
        defaults: dict[str, Any] = {"allow_abbrev": False, "formatter_class": _Help}  # Any: as above
        super().__init__(*args, **defaults | kwargs)
        self.prog = called(self.prog, COMMANDS)
        self._positionals.title, self._optionals.title = "arguments", "options"

    def format_help(self) -> str:
        """Return the help, with a usage that does not repeat the options."""
        words = [_placeholder(action) for action in self._actions if not action.option_strings]
        self.usage = " ".join([self.prog.replace("%", "%%"), "[OPTION ...]", *words])
        return called(super().format_help(), COMMANDS)

    def parse_args(self, *args: Any, **kwargs: Any) -> Any:  # Any: argparse's own arguments and result
        """Parse arguments.

        Raises:
            UsageError: an argument is unknown, missing or invalid.
        """
        parsed, further = self.parse_known_args(*args, **kwargs)
        self.refuse(further)
        return parsed

    def refuse(self, arguments: Sequence[str]) -> None:
        """Refuse unknown arguments, with a suggestion for the first one.

        Raises:
            UsageError: there is one.
        """
        if not arguments:
            return
        name = next((text for text in arguments if text.startswith("-")), arguments[0]).partition("=")[0]
        sort = "flag" if name.startswith("-") else "argument"
        raise UsageError(f"unknown {sort} {name}\n{self._suggestion(self._near(name))}")

    def _near(self, name: str) -> Sequence[str]:
        """Return the flags that `name` may stand for, best first."""
        flags = [flag.removeprefix("--") for flag in self._option_string_actions if flag.startswith("--")]
        word = name.removeprefix("--")
        if word == name or not word:
            return ()
        meant = [flag for flag in flags if flag == _MEANT.get(word)]
        near = meant or [flag for flag in flags if flag.startswith(word)] or near_misses(word, flags)
        return [f"--{flag}" for flag in near]

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found, in the words of this program.

        Raises:
            UsageError: always.
        """
        if message.startswith(_REQUIRED):
            raise UsageError(f"missing argument {message.removeprefix(_REQUIRED)}\n{self._suggestion(())}")
        match = _ARGUMENT.fullmatch(message)
        if match is None:
            raise UsageError(message)
        name, text = match[1], _INVALID.sub("invalid value ", match[2])
        action = self._option_string_actions.get(name.partition("/")[0])
        if action is not None and _NO_VALUE.match(text):
            text = f"missing value {_placeholder(action)}"
        raise UsageError(f"{name}: {text}")

    def _suggestion(self, near: Sequence[str]) -> str:
        meant = f"did you mean {near[0]}? " if near else ""
        return f"{meant}`{self.prog} --help` lists the arguments"

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # Any: as argparse has it
        choices = [str(choice) for choice in action.choices or ()]
        if action.choices is None or value in action.choices:
            return
        near = near_misses(str(value), choices)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise argparse.ArgumentError(action, f"invalid value {str(value)!r}{meant}\nwrite {listed(choices)}")


def _placeholder(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else action.dest
    if action.metavar is None and action.choices is not None:
        name = "|".join(map(str, action.choices))
    return {
        "*": f"[{name} ...]",
        "+": f"{name} ...",
        "?": f"[{name}]",
        argparse.PARSER: f"{name} [OPTION ...]",
    }.get(str(action.nargs), name)


def listed(words: Sequence[str]) -> str:
    """Write words as a list in a sentence: `a, b or c`."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


_DURATION: Final = re.compile(r"([0-9]{1,7})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LONGEST_REQUEST: Final = 3600
_NUMBER: Final = re.compile("[0-9]{1,18}")


def duration(text: str) -> dt.timedelta:
    """Parse a duration such as `90s`, `10m`, `24h` or `30d`.

    Raises:
        ValueError: invalid duration.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"invalid duration {text!r}")
    return dt.timedelta(**{_UNITS[match[2]]: int(match[1])})


def seconds(text: str) -> float:
    """Parse a duration, or a number of seconds without a unit, into seconds, for argparse.

    Raises:
        ArgumentTypeError: invalid duration.
    """
    try:
        return duration(f"{text}s" if text.isdecimal() else text).total_seconds()
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid duration {text!r}: write 90s, 5m or 1h") from None


def timeout(text: str) -> float:
    """Parse the time limit of a request, a duration or a number of seconds up to an hour, into seconds, for argparse.

    Raises:
        ArgumentTypeError: invalid duration, zero or too long.
    """
    limit = seconds(text)
    if not 0 < limit <= _LONGEST_REQUEST:
        raise argparse.ArgumentTypeError(f"invalid timeout {text!r}: write a duration up to 1h, such as 30s")
    return limit


def time(text: str) -> dt.datetime:
    """Parse a time with a zone into UTC, for argparse.

    Raises:
        ArgumentTypeError: invalid time, or no zone.
    """
    try:
        parsed = dt.datetime.fromisoformat(text)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"invalid time {text!r}: write a time with a zone, such as 2026-11-23T12:00:00Z"
        )
    return parsed.astimezone(dt.UTC)


def count(text: str) -> int:
    """Parse a number from 1, for argparse.

    Raises:
        ArgumentTypeError: invalid number.
    """
    if not _NUMBER.fullmatch(text) or not int(text):
        raise argparse.ArgumentTypeError(f"invalid number {text!r}: write 1 or more")
    return int(text)


def natural(text: str) -> int:
    """Parse a number from 0, for argparse.

    Raises:
        ArgumentTypeError: invalid number.
    """
    if not _NUMBER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"invalid number {text!r}: write 0 or more")
    return int(text)


def days(most: int) -> Callable[[str], int]:
    """Return a parser of a number of days from 1 to `most`, for argparse; it raises ArgumentTypeError."""

    def parse(text: str) -> int:
        if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"invalid number of days {text!r}: write 1 to {most}")
        return int(text)

    return parse


# The defaults of `--policy-file`.
OF_THE_PROJECT: Final = "that of the project file, else the shipped defaults"
INSTALLED: Final = "the installed one, else the shipped defaults"


def add_policy_file(parser: argparse._ActionsContainer, default: str = "the shipped defaults") -> None:
    """Add `--policy-file`; `default` describes its default."""
    parser.add_argument(
        "-p",
        "--policy-file",
        type=Path,
        metavar="FILE",
        help=f"policy.yaml with modes, parameters and exemptions (default: {default})",
    )


def add_dump(parser: argparse._ActionsContainer, meaning: str) -> None:
    """Add `--from`, with its help without "repeatable"."""
    parser.add_argument(
        "--from", dest="dump", action="append", default=[], metavar="PATH", help=f"{meaning}; repeatable"
    )


def add_cluster(parser: argparse._ActionsContainer, environ: Mapping[str, str]) -> None:
    """Add `--kubeconfig` and `--context`."""
    file = environ.get("GPUGATE_KUBECONFIG")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        default=Path(file) if file else None,
        help="kubeconfig of the cluster (default: in a Pod its ServiceAccount, else as kubectl)",
    )
    parser.add_argument(
        "--context", metavar="NAME", default=environ.get("GPUGATE_CONTEXT"), help="context of the kubeconfig"
    )


def add_policy_path(parser: argparse._ActionsContainer) -> None:
    """Add `--policy-path` to a command that reads no project file."""
    parser.add_argument(
        "--policy-path",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="directory of policies outside the library, as ORGANISATION/NAME.py or .yaml; Python code in it is run; repeatable",
    )


def add_catalogue(parser: argparse._ActionsContainer) -> None:
    """Add `--catalogue`."""
    parser.add_argument(
        "--catalogue",
        type=Path,
        metavar="FILE",
        help="instance types of nodes that are not EC2 instances, written by `gpugate catalogue`",
    )


class Overrides(NamedTuple):
    """What flags say instead of the policy file.

    Attributes:
        mode: the global mode; None keeps that of the policy file.
        catalogue: a file of instance types.
        cluster: the cluster for which a policy file with `clusters` is read; None is the one that the file names.
    """

    mode: str | None = None
    catalogue: Path | None = None
    cluster: ClusterIdentity | None = None


def ruleset(policy_file: Path | None, own: OwnPaths | None = None, cluster: ClusterIdentity | None = None) -> Ruleset:
    """Bind all policies to the configuration of a policy file; `own` says where those outside the library are.

    `cluster` is the cluster for which a policy file with `clusters` is read; None is the one that the file names.

    Raises:
        GpugateError: the policy file or the catalogue cannot be read or is invalid, the cluster of a policy file with `clusters`
            is unknown, or a policy cannot be loaded; the text contains the location.
    """
    return _bound(policy_file, own, overrides=Overrides(cluster=cluster))[0]


def bound(
    policy_file: Path | None,
    own: OwnPaths | None = None,
    choose: Callable[[Sequence[str]], Collection[str] | None] | None = None,
    base: Revision | None = None,
    overrides: Overrides | None = None,
) -> tuple[Ruleset, Catalog]:
    """Bind policies to the configuration of a policy file, and return them with the catalogue that they are from.

    Without a known cluster, a policy file means what it says of all clusters.

    Args:
        policy_file: the policy file; None is every policy in its shipped mode.
        own: where the policies outside the library are.
        choose: returns the ids of the policies in force, of those of all; None is all.
        base: a policy file and a catalogue of its repository are read from this revision.
        overrides: what flags say instead.

    Raises:
        GpugateError: as `ruleset`.
    """
    from gpugate.policies.engine.clusters import EVERYWHERE  # noqa: PLC0415 -- most commands need no rules

    flags = overrides or Overrides()
    return _bound(policy_file, own, choose, base, flags._replace(cluster=flags.cluster or EVERYWHERE))


def _bound(
    policy_file: Path | None,
    own: OwnPaths | None,
    choose: Callable[[Sequence[str]], Collection[str] | None] | None = None,
    base: Revision | None = None,
    overrides: Overrides | None = None,
) -> tuple[Ruleset, Catalog]:
    from gpugate.policies.engine.ruleset import bind  # noqa: PLC0415 -- most commands need no rules
    from gpugate.webhook.manifests.policy_file import MAX_POLICY_FILE, load_policy_file  # noqa: PLC0415
    from gpugate.webhook.own_policies.catalog import OwnPaths  # noqa: PLC0415

    mode, catalogue, cluster = overrides or Overrides()
    data = None
    if policy_file is not None and base is not None:
        from gpugate.webhook.project.base import read_from  # noqa: PLC0415 -- few runs have a base

        data = read_from(base, policy_file, MAX_POLICY_FILE)
    types = None if catalogue is None else _read_catalogue(catalogue, base)

    def use(config: PolicyConfig) -> tuple[Ruleset, Catalog]:
        if mode is not None:
            config = msgspec.structs.replace(config, mode=mode)
        if types is not None:
            from gpugate.webhook.manifests.catalogue_file import with_catalogue  # noqa: PLC0415 -- few runs have one

            config = with_catalogue(config, types)
        catalog = (own or OwnPaths()).catalog(config, policy_file)
        only = choose([policy.id for policy in catalog.policies]) if choose else None
        return bind(catalog.policies, config, only, closed_families=catalog.closed_families), catalog

    return load_policy_file(policy_file, use, data, cluster)


def _read_catalogue(path: Path, base: Revision | None) -> CatalogueFile:
    from gpugate.webhook.manifests.catalogue_file import MAX_BYTES, read_catalogue  # noqa: PLC0415 -- few runs have one

    if base is None:
        return read_catalogue(path)
    from gpugate.webhook.project.base import read_from  # noqa: PLC0415 -- few runs have a base

    return read_catalogue(path, read_from(base, path, MAX_BYTES))


def schema_folder(named: Path | None) -> Path | None:
    """Return the folder of additional schemas: the named one, else the default one if it exists.

    Raises:
        LinkError: the folder, or a file in it, is a link out of the repository.
        UsageError: the named folder does not exist.
    """
    from gpugate.webhook.manifests.within import refuse_link  # noqa: PLC0415 -- few commands need it
    from gpugate.webhook.schemas.tables import FOLDER  # noqa: PLC0415

    if named is not None and not named.is_dir():
        raise UsageError(f"--schemas {named}: no such directory; create it with `gpugate schema add`")
    folder = named or (FOLDER if FOLDER.is_dir() else None)
    for path in (folder, *folder.iterdir()) if folder else ():
        refuse_link(path, "--schemas")
    return folder


def outputs(values: Iterable[str], formats: Iterable[str]) -> dict[str, str]:
    """Parse `FORMAT[=FILE]` values into file -> format; the file is empty for standard output.

    Raises:
        UsageError: an unknown format, or two formats for one file.
    """
    known, formats_by_file = tuple(formats), dict[str, str]()
    for value in values:
        name, _, file = value.partition("=")
        if name not in known:
            near = near_misses(name, known)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"-o {name}: unknown format{meant}\nwrite {listed(known)}, with =FILE to write a file")
        if file in formats_by_file:
            raise UsageError(
                f"-o {value}: {file or 'standard output'} already has format {formats_by_file[file]}; add =FILE to one"
            )
        formats_by_file[file] = name
    return formats_by_file


def write(file: str, text: str) -> None:
    """Write to standard output, or to a file; a file is written completely or not at all.

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
    # A link in the tree to a regular file is replaced, not followed.
    refuse_link(target if special else target.parent, "the output")
    try:
        if special:
            target.write_text(text, encoding="utf-8")  # a device or a pipe cannot be replaced
            return
        # The name is random, because a repository could contain a link with a known name, which would be followed.
        unfinished = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{file}: {(error.strerror or 'cannot be written').lower()}") from None


def checked_url(url: str) -> str:
    """Return a URL that the API server accepts (`k8s.io/apiserver` pkg/util/webhook/validation.go, v0.36); empty stays empty.

    Raises:
        UsageError: invalid URL.
    """
    if not url:
        return url
    try:
        url_parts = urlsplit(url)
        wrong = url_parts.scheme != "https" or not url_parts.hostname or url_parts.port == 0
    except ValueError:
        wrong = True
    else:
        wrong = (
            wrong
            or url_parts.path not in {"", "/"}
            or bool(url_parts.query or url_parts.fragment or url_parts.username)
        )
    if wrong:
        raise UsageError(f"--url {url}: write https://HOST:PORT, without a path: /mutate and /validate are added")
    return url
