"""Fuzzes the targets: `python tests/fuzz/fuzz.py [--minutes 1] [TARGET ...]`, or `make fuzz MINUTES=60 T=reviews`.

Each target is a process of its own. New inputs are kept in build/fuzz/TARGET for the next run, what breaks a target in
build/fuzz/found. Copy the shortest such input to tests/fuzz/regressions/TARGET, where `make test` runs it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from fuzz_targets import Target

BUILD: Final = Path(__file__).parents[2] / "build" / "fuzz"
NAMES: Final = ("reviews", "manifests", "policies", "documents", "projects", "expressions", "heads")
# For one input. The slowest seed takes 0.1 s, and instrumented code on a busy machine many times that.
SECONDS: Final = 30
MEGABYTES: Final = 1024
_EXECUTIONS: Final = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def main(arguments: list[str]) -> int:
    """Run targets one after the other, and say what became of each."""
    parser = argparse.ArgumentParser(description="Fuzz the program.")
    parser.add_argument("targets", nargs="*", choices=[*NAMES, []], help="what to fuzz; default: all")
    parser.add_argument("--minutes", type=float, default=1, help="for each target")
    parser.add_argument(
        "--runs", type=int, default=0, help="at most so many inputs, the same each time; default: no limit"
    )
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.one:
        return fuzz(args.targets[0], args.minutes, args.runs)
    broken = 0
    for name in args.targets or NAMES:
        command = [sys.executable, __file__, name, "--one", "--minutes", str(args.minutes), "--runs", str(args.runs)]
        ran = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)  # noqa: S603 -- ourselves
        counted = _EXECUTIONS.search(ran.stderr)
        executions = f"{int(counted[1]):,}" if counted else "?"
        said = "broken" if ran.returncode else "nothing found"
        sys.stdout.write(
            f"{name:<10} {executions:>12} executions   {said}\n{ran.stderr[-4_000:] if ran.returncode else ''}"
        )
        sys.stdout.flush()
        broken += bool(ran.returncode)
    return 1 if broken else 0


def fuzz(name: str, minutes: float, runs: int) -> int:
    """Fuzz one target in this process; does not return."""
    import atheris  # noqa: PLC0415 -- not there where targets are only tested

    with atheris.instrument_imports(include=["gpugate"]):
        from fuzz_targets import TARGETS  # noqa: PLC0415 -- instrumented as it is imported
    target = TARGETS[name]()
    corpus, found = BUILD / name, BUILD / "found"
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(exist_ok=True)
    for seed in target.seeds():
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    options = {
        "max_total_time": round(minutes * 60),
        "timeout": SECONDS,
        "rss_limit_mb": MEGABYTES,
        "max_len": target.most,
        "artifact_prefix": f"{found}/{name}-",
        "print_final_stats": 1,
        "verbosity": 0,
    }
    if runs:
        options |= {"runs": runs, "seed": 1}
    atheris.Setup(
        [sys.argv[0], *(f"-{key}={value}" for key, value in options.items()), str(corpus)],
        target.run,
        custom_mutator=mutator(target),
    )
    atheris.Fuzz()
    return 0


def mutator(target: Target) -> Callable[[bytes, int, int], bytes]:
    """Return what changes an input: mostly as JSON or as lines, so that parsers let it pass, and sometimes in its bits."""

    def changed(data: bytes, most: int, seed: int) -> bytes:
        dice = random.Random(seed)  # noqa: S311 -- no secret
        if dice.random() < 0.3:
            return _bytes(data, dice)[:most]
        made = _json(data, dice, target.words) if target.is_json else None
        return (made or _lines(data, dice, target.words))[:most]

    return changed


def _bytes(data: bytes, dice: random.Random) -> bytes:
    for _ in range(dice.choice((1, 1, 2, 4, 8))):
        start = dice.randint(0, len(data))
        stop = min(len(data), start + dice.choice((0, 0, 1, 1, 2, 8, 64)))
        written = dice.choice(
            (b"", dice.randbytes(1), dice.randbytes(2), data[start:stop] * 2, bytes([dice.choice(b"\n :-{}[]\"'#")]))
        )
        data = data[:start] + written + data[stop:]
    return data


def _json(data: bytes, dice: random.Random, words: tuple[str, ...]) -> bytes | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list):
        return None
    for _ in range(dice.randint(1, 4)):
        places = list(_places(value))
        if not places:
            return None
        holder, key = dice.choice(places)
        choice = dice.randrange(6)
        if choice == 0:
            del holder[key]
        elif choice == 1 and isinstance(holder, dict):
            holder[dice.choice(words)] = holder.pop(key)
        elif choice == 2:
            other, at = dice.choice(places)
            holder[key] = json.loads(json.dumps(other[at])) if at in other or isinstance(other, list) else None
        elif choice == 3 and isinstance(holder[key], list) and holder[key]:
            holder[key] = holder[key] * dice.choice((2, 3, 20))
        else:
            holder[key] = dice.choice(
                [dice.choice(words), None, True, 0, -1, 2**63, 1.5, "", [], {}, [None], {"": None}]
            )
        if len(places) > 20_000:
            return None
    return json.dumps(value).encode()


def _places(value: Any) -> Any:
    left = [value]
    while left:
        holder = left.pop()
        for key, member in holder.items() if isinstance(holder, dict) else enumerate(holder):
            yield holder, key
            if isinstance(member, dict | list):
                left.append(member)


def _lines(data: bytes, dice: random.Random, words: tuple[str, ...]) -> bytes:
    lines = data.split(b"\n")
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(lines))
        line, word = lines[at], dice.choice(words).encode(errors="surrogatepass")
        choice, cut = dice.randrange(8), dice.randint(0, len(line))
        if choice == 0:
            lines.insert(at, dice.choice(lines))
        elif choice == 1 and len(lines) > 1:
            del lines[at]
        elif choice == 2:
            lines[at] = b" " * dice.choice((1, 2, 4)) + line
        elif choice == 3:
            lines[at] = line[1:]
        elif choice == 4:
            lines[at] = line[:cut] + word + line[cut:]
        elif choice == 5 and b":" in line:
            lines[at] = line.partition(b":")[0] + b": " + word
        elif choice == 6:
            other = dice.randrange(len(lines))
            lines[at], lines[other] = lines[other], line
        else:
            lines.insert(
                at,
                b" " * (len(line) - len(line.lstrip()))
                + word
                + b": "
                + dice.choice(words).encode(errors="surrogatepass"),
            )
    return b"\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
