"""`gpugate bench`: measure how long the policies take on the user's own objects and recorded reviews."""

from __future__ import annotations

import datetime as dt
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.json_text import read_json
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.admission.record_file import Damaged, Recorded, is_record, is_snapshot, read_lines, record_files
from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.options import Parser
from gpugate.webhook.manifests.documents import Document, read_bytes
from gpugate.webhook.manifests.inputs import Input, expand
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import Request, Subject
    from gpugate.webhook.manifests.inputs import Passed

_REPETITIONS: Final = 7
_MOST_REVIEWS: Final = 1_000
_THRESHOLD_PERCENT: Final = 20.0
# A difference below this is the noise of the clock, whatever the percentage.
_NOISE_MICROSECONDS: Final = 5.0
_ALL: Final = "all policies"
_SLOWER: Final = 1
_EMPTY: Final = 3
_INCOMPLETE: Final = 4


class FiguresError(GpugateError):
    """A file without figures of this command; the message has the location and the fix."""


@dataclass(frozen=True, slots=True)
class Measured:
    """An object or review to evaluate.

    Attributes:
        location: `FILE:LINE`, with its kind and name.
        request: the request that is evaluated.
        phase: the phase of admission; both for an object.
        facts: the recorded cluster data; None for the other objects of the input.
    """

    location: str
    request: Request
    phase: Phase = Phase.BOTH
    facts: Facts | None = None


class Figure(msgspec.Struct, frozen=True):
    """The CPU time that a policy takes, in microseconds per object; the least of the repetitions for each object.

    Attributes:
        objects: how many objects the policy is evaluated for.
        mean: the mean over these objects.
        most: the time of the slowest object.
        slowest: the location of the slowest object.
    """

    objects: int
    mean: float
    most: float
    slowest: str


class Figures(msgspec.Struct, frozen=True):
    """The figures of a run, by policy id; `total` is an evaluation with every policy."""

    total: Figure
    policies: dict[str, Figure]


class Read(NamedTuple):
    """What the input contains: what is measured, what is unreadable, and remarks on recorded reviews."""

    measured: list[Measured]
    problems: list[Problem]
    remarks: tuple[str, ...] = ()


def read(paths: Sequence[str], most_reviews: int) -> Read:
    """Read the objects, AdmissionReviews and recorded reviews in files and directories.

    Args:
        paths: what the user named; records are in a named directory itself, or named files.
        most_reviews: the number of recorded reviews to measure at most.
    """
    measured: list[Measured] = []
    problems: list[Problem] = []
    records: list[Path] = []
    for file in expand(paths):
        if isinstance(file, Input) and file.explicit and is_record(Path(file.name)):
            records.append(Path(file.name))
            continue
        for part in _parts(file):
            if isinstance(part, Problem):
                problems.append(part)
            else:
                measured.append(part)
    problems = [problem for problem in problems if not problem.warning]
    records += [file for path in paths if (folder := Path(path)).is_dir() for file in _records_of(folder)]
    if not records:
        return Read(measured, problems)
    recorded = _recorded(tuple(dict.fromkeys(records)), most_reviews)
    return Read([*measured, *recorded.measured], [*problems, *recorded.problems], recorded.remarks)


def _records_of(folder: Path) -> tuple[Path, ...]:
    try:
        return record_files(folder)
    except OSError:
        return ()  # `expand` reports it


def _recorded(files: Sequence[Path], most: int) -> Read:
    """Read reviews of a record, evenly spread, with the last cluster data of the record."""
    from gpugate.webhook.simulate.record_content import (  # noqa: PLC0415 -- few runs read a record
        Snapshots,
        phase_of,
        request_of,
    )

    measured: list[Measured] = []
    problems: list[Problem] = []
    facts: Facts | None = None
    try:
        facts = Snapshots(files).last
    except OSError as error:
        problems.append(_unreadable(str(error.filename), error))
    count, step = 0, 1
    for file in files:
        damaged = 0
        try:
            for line in read_lines(file) if not is_snapshot(file) else ():
                damaged += isinstance(line, Damaged)
                if not isinstance(line, Recorded):
                    continue
                if count % step == 0:
                    request = request_of(line)
                    location = f"{file}: review {line.id} {_named(request)}"
                    measured.append(Measured(location, request, phase_of(line), facts))
                    if len(measured) > most:
                        del measured[1::2]
                        step *= 2
                count += 1
        except OSError as error:
            problems.append(_unreadable(str(file), error))
        if damaged:
            lines = "1 line is" if damaged == 1 else f"{damaged:,} lines are"
            problems.append(Problem(str(file), 0, 0, f"{lines} damaged", "record again; the others are measured"))
    remarks = (
        ["the record contains no cluster data: the other objects of the input replace it"] if facts is None else []
    )
    if len(measured) < count:
        remarks.append(
            f"{len(measured):,} of {count:,} recorded reviews are measured, evenly spread: --max-reviews measures more"
        )
    return Read(measured, problems, tuple(remarks))


def _unreadable(name: str, error: OSError) -> Problem:
    return Problem(name, 0, 0, (error.strerror or "cannot be read").lower(), "make the record readable for you")


def _parts(file: Input | Problem | Passed) -> Iterator[Measured | Problem]:
    if isinstance(file, Problem):
        yield file
    if not isinstance(file, Input):
        return
    data = file.read()
    for part in (data,) if isinstance(data, Problem) else read_bytes(file.label, data):
        if isinstance(part, Problem):
            yield part
        elif isinstance(part, Document):
            yield from _requests(part, explicit=file.explicit)


def _requests(document: Document, *, explicit: bool) -> Iterator[Measured | Problem]:
    value: Any = document.value
    if isinstance(value, dict) and value.get("kind") == "AdmissionReview":
        from gpugate.webhook.admission.review import ReviewError, decode  # noqa: PLC0415 -- imports pydantic

        try:
            request = decode(msgspec.json.encode(value)).request
        except ReviewError as error:
            yield Problem(document.source, document.first_line, 1, error.message, "record the review again")
        else:
            yield _measured(document, request)
        return
    for part in objects(document, lenient=not explicit):
        if isinstance(part, Manifest):
            yield _measured(document, with_defaults(part.request))
        elif isinstance(part, Problem):
            yield part


def _measured(document: Document, request: Request) -> Measured:
    return Measured(f"{document.source}:{document.first_line} {_named(request)}", request)


def _named(request: Request) -> str:
    return f"{request.kind.kind}/{request.name or f'{request.generate_name}*'}"


def measure(ruleset: Ruleset, measured: Sequence[Measured], repetitions: int) -> Figures | None:
    """Evaluate each object with each policy that applies to it, alone, and then with all of them.

    Every repetition evaluates everything once, so that a slow second of the machine affects all policies. The time of a
    policy includes what policies share, such as reading the object; the sum over the policies is therefore more than the
    total. Without an object that concerns a policy, there are no figures.
    """
    today = dt.datetime.now(dt.UTC).date()
    facts = RunFacts(subject.request for subject in measured if subject.facts is None)
    alone = {
        policy.id: bind(ruleset.catalog, ruleset.config, {policy.id}, closed_families=()) for policy in ruleset.catalog
    }
    due = {policy: [subject for subject in measured if _applies(rules, subject)] for policy, rules in alone.items()}
    concerned = [subject for subject in measured if _applies(ruleset, subject)]
    works = [(policy, alone[policy], subject) for policy, group in due.items() for subject in group]
    works += [(_ALL, ruleset, subject) for subject in concerned]
    least: dict[tuple[str, int], float] = {}
    for _ in range(repetitions):
        for number, (name, rules, subject) in enumerate(works):
            data = facts if subject.facts is None else subject.facts
            started = time.process_time_ns()
            evaluate(rules, subject.request, data, today=today, phase=subject.phase)
            taken = (time.process_time_ns() - started) / 1000
            least[name, number] = min(least.get((name, number), taken), taken)
    grouped: dict[str, list[tuple[float, str]]] = {}
    for (name, number), taken in least.items():
        grouped.setdefault(name, []).append((taken, works[number][2].location))
    if _ALL not in grouped:
        return None
    return Figures(_figure(grouped[_ALL]), {name: _figure(times) for name, times in grouped.items() if name != _ALL})


def _applies(ruleset: Ruleset, measured: Measured) -> bool:
    request = measured.request
    return any(
        ruleset.due(
            request.stored_kind if subject.wrapper is None else subject.kind,
            request.subresource,
            request.operation,
            mutating=mutating,
        ).bound
        for subject in request.subjects
        for mutating in _halves(measured.phase, subject)
    )


def _halves(phase: Phase, subject: Subject) -> Iterator[bool]:
    """Yield which policies evaluate a subject in a phase: False for those that validate, True for those that mutate."""
    if phase is not Phase.MUTATE:
        yield False
    # Templates are mutated before their validation too.
    if phase is not Phase.VALIDATE or subject.wrapper is not None:
        yield True


def _figure(times: Sequence[tuple[float, str]]) -> Figure:
    most, slowest = max(times)
    return Figure(len(times), sum(taken for taken, _ in times) / len(times), most, slowest)


def slower(before: Figures, now: Figures, threshold: float) -> dict[str, tuple[Figure, Figure]]:
    """Return the figures, before and now, whose mean increased by more than `threshold` percent.

    Policies that only one of the runs has are left out.
    """
    pairs = {name: (before.policies[name], now.policies[name]) for name in now.policies if name in before.policies}
    pairs[_ALL] = (before.total, now.total)
    return {
        name: (old, new)
        for name, (old, new) in pairs.items()
        if new.mean > old.mean * (1 + threshold / 100) and new.mean - old.mean > _NOISE_MICROSECONDS
    }


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args, project = project_flags.parse(parser(), "bench", arguments)
    ruleset, catalog = options.bound(args.policy_file, project.own)
    for remark in (*project.remarks, *catalog.remarks):
        print(f"warning: {remark}", file=sys.stderr)
    before = _load(args.compare) if args.compare else None
    measured, problems, remarks = read(args.path, args.max_reviews)
    for remark in remarks:
        print(f"warning: {remark}", file=sys.stderr)
    for problem in problems:
        location = f"{problem.source}:{problem.line}" if problem.line else problem.source
        print(f"error: {location}: {problem.message}: {problem.remedy}", file=sys.stderr)
    figures = measure(ruleset, measured, args.repetitions)
    if figures is None:
        print("error: nothing to measure: no object in the input concerns a policy", file=sys.stderr)
        return _INCOMPLETE if problems else _EMPTY
    sys.stdout.write(_json(figures) if args.output == "json" else _table(figures))
    if args.save:
        options.write(str(args.save), _json(figures))
    worse = slower(before, figures, args.threshold) if before else {}
    for name, (old, new) in worse.items():
        print(f"error: {name} is slower: {old.mean:.0f} us before, {new.mean:.0f} us now", file=sys.stderr)
    return _SLOWER if worse else _INCOMPLETE if problems else 0


def _table(figures: Figures) -> str:
    slowest_first = sorted(figures.policies.items(), key=lambda item: -item[1].mean * item[1].objects)
    rows = [("policy", "objects", "mean us", "max us", "slowest object")]
    rows += [
        (name, f"{figure.objects:,}", f"{figure.mean:.0f}", f"{figure.most:.0f}", figure.slowest)
        for name, figure in (*slowest_first, (_ALL, figures.total))
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = (
        f"{row[0]:<{widths[0]}}  " + "  ".join(f"{row[n]:>{widths[n]}}" for n in (1, 2, 3)) + f"  {row[4]}"
        for row in rows
    )
    return "\n".join((*lines, "CPU time for one object, the least of the repetitions")) + "\n"


def _json(figures: Figures) -> str:
    return json.dumps(msgspec.to_builtins(figures), indent=1) + "\n"


def _load(path: Path) -> Figures:
    try:
        return read_json(msgspec.json.Decoder(Figures).decode, path.read_bytes())
    except OSError as error:
        raise FiguresError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except msgspec.DecodeError:
        raise FiguresError(f"{path} has no figures: write them with `gpugate bench --save {path}`") from None


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate bench",
        description="Measure how long the policies take on objects, AdmissionReviews and the records of "
        "`gpugate serve --record`. Each policy is measured alone; its time includes reading the object, which policies "
        "share in an admission.",
        epilog="examples:\n  gpugate bench ./manifests\n  gpugate bench reviews/ --save before.json\n"
        "  gpugate bench reviews/ --compare before.json --threshold 20\n"
        "  gpugate bench recorded/ --max-reviews 5000\n\n"
        "exit codes:\n  0 measured; 1 slower than the threshold allows;\n  2 wrong usage or configuration; 3 nothing to "
        "measure;\n  4 an input could not be read",
    )
    add = command.add_argument
    add(
        "path",
        metavar="PATH",
        nargs="+",
        help="files, directories or patterns with objects, AdmissionReviews or recorded reviews; - for standard input",
    )
    add(
        "--max-reviews",
        type=options.count,
        default=_MOST_REVIEWS,
        metavar="N",
        help="recorded reviews to measure at most, evenly spread (default: %(default)s)",
    )
    add(
        "--repetitions",
        type=options.count,
        default=_REPETITIONS,
        metavar="N",
        help="evaluations of each object (default: %(default)s)",
    )
    add("--save", type=Path, metavar="FILE", help="write the figures to a file, as JSON")
    add("--compare", type=Path, metavar="FILE", help="compare with figures that --save wrote")
    add(
        "--threshold",
        type=float,
        default=_THRESHOLD_PERCENT,
        metavar="PCT",
        help="increase of the mean that --compare accepts, in percent (default: %(default)g)",
    )
    add("-o", "--output", choices=("text", "json"), default="text", help="output format (default: text)")
    options.add_policy_file(command, options.OF_THE_PROJECT)
    project_flags.add_own_policies(command)
    project_flags.add(command)
    return command
