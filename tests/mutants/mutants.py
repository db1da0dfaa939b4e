"""Tries small changes of the program: each has to be noticed by a test. `make mutants` runs it.

    make mutants                                every mutant; hours on two cores
    make mutants M=policies/engine/patching.py  those of one module, or of a folder
    make mutants SHARE=5                        5 of 100, always the same ones
    make mutants M=certs AGAIN=1                those that were not killed in the last run of the module; with the same SHARE

A mutant that no test can notice is listed in `explained.yaml` with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml
from mutant_runs import BUILT, KILLED, ROOT, TIMED_OUT, Area, instrument, outcomes

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutant_points import Mutant

AREAS: Final = (
    Area("policies", ("policies/engine/*.py", "policies/sdk/*.py"), ("tests/policies",)),
    Area("cel", ("policies/cel/*.py",), ("tests/policies/cel", "tests/webhook/schemas/test_rules.py")),
    Area("certs", ("certs/*.py",), ("tests/certs",)),
    Area(
        "admission",
        ("webhook/admission/*.py", "webhook/admission/*/*.py"),
        (
            "tests/webhook/admission",
            "tests/webhook/bad_inputs",
            # The process of the keeper.
            "tests/webhook/kept",
            # The commands `serve` and `review`.
            "tests/webhook/cli/project/test_review_project.py",
            "tests/webhook/cli/test_serve.py",
            "tests/webhook/cli/test_serve_certificates.py",
            "tests/webhook/cli/test_review.py",
        ),
        # Thousands of tests that try for every example what others show of a few.
        without=(
            "tests/webhook/admission/test_both_entry_points.py",
            "tests/webhook/admission/test_canary.py",
            "tests/webhook/admission/test_example_laws.py",
            "tests/webhook/bad_inputs/objects/test_any_kind.py",
        ),
    ),
)
SURVIVORS: Final = BUILT / "not-killed.json"
EXPLAINED: Final = Path(__file__).with_name("explained.yaml")
# Of those that are not explained, in percent.
LEAST_KILLED: Final = 95

Key = tuple[str, str, str, str]


def main(arguments: list[str]) -> int:
    """Try the mutants that are asked for, say what became of each module, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", nargs="*", default=[""], help="paths of modules or folders in the repository")
    parser.add_argument("--share", type=float, default=100, help="how many of a hundred mutants are tried")
    parser.add_argument("--budget", type=float, default=4, help="seconds of other tests than the module's own")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at the same time")
    parser.add_argument("--again", action="store_true", help="only mutants that were not killed in the last run")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    explained = read_explained(EXPLAINED.read_text())
    table: list[tuple[str, Counter[str]]] = []
    unknown: list[Key] = []
    for area in AREAS:
        if not any(asked(str(file), options.module) for file in area.files):
            continue
        mutants = instrument(area)
        of_modules = [mutant for mutant in mutants if asked(mutant.module, options.module)]
        keys = {mutant.key for mutant in of_modules}
        modules = {mutant.module for mutant in of_modules}
        unknown += [key for key in explained if key[0] in modules and key not in keys]
        sampled = [mutant for mutant in of_modules if mutant.share < options.share]
        tried = [mutant for mutant in sampled if mutant.key not in explained]
        survivors = {mutant.key for mutant in tried}
        if options.again:
            survivors &= left_over(modules, options.share)
        trying = [mutant for mutant in tried if mutant.key in survivors]
        results = dict.fromkeys((mutant.number for mutant in tried), KILLED)
        results |= outcomes(area, mutants, trying, tell=telling(mutants), budget=options.budget, jobs=options.jobs)
        left = {mutant.key for mutant in trying if results[mutant.number] not in {KILLED, TIMED_OUT}}
        remember(modules, options.share, left)
        for module in sorted({mutant.module for mutant in sampled}):
            of_module = [mutant for mutant in tried if mutant.module == module]
            counts = Counter(results[mutant.number] for mutant in of_module)
            counts["explained"] = sum(mutant.module == module for mutant in sampled) - len(of_module)
            table.append((module, counts))
    return summary(table, unknown)


def asked(module: str, wanted: list[str]) -> bool:
    """Tell whether a module is one of these paths, or below one."""
    return any(not path or module == path.rstrip("/") or module.startswith(path.rstrip("/") + "/") for path in wanted)


def left_over(modules: set[str], share: float) -> set[Key]:
    """Return the mutants of modules that were not killed in their last run, which tried at least this share."""
    known = json.loads(SURVIVORS.read_text()) if SURVIVORS.exists() else {}
    missing = sorted(module for module in modules if module not in known or known[module]["share"] < share)
    if missing:
        raise SystemExit(f"error: {missing[0]} has not been run with this share yet: run it without AGAIN first")
    return {(module, *rest) for module in modules for rest in map(tuple, known[module]["survivors"])}


def remember(modules: set[str], share: float, survivors: set[Key]) -> None:
    """Keep which mutants of modules were not killed among a share of all."""
    known = json.loads(SURVIVORS.read_text()) if SURVIVORS.exists() else {}
    for module in modules:
        known[module] = {"share": share, "survivors": sorted(key[1:] for key in survivors if key[0] == module)}
    SURVIVORS.write_text(json.dumps(known, indent=1))


def read_explained(text: str) -> dict[Key, str]:
    """Read the explanations: by module and function a list of `before`, `after` and `reason`."""
    return {
        (module, function, entry["before"], entry["after"]): entry["reason"]
        for module, functions in (yaml.safe_load(text) or {}).items()
        for function, entries in functions.items()
        for entry in entries
    }


def telling(mutants: list[Mutant]) -> Callable[[int, str], None]:
    """Return what prints each mutant that no test noticed."""
    # A copy: what forks print otherwise is thrown away.
    output = os.dup(1)

    def tell(number: int, outcome: str) -> None:
        mutant = mutants[number]
        where = f"{mutant.module}:{mutant.line}: {mutant.function or 'module'}"
        if outcome not in {KILLED, TIMED_OUT}:
            os.write(output, f"{where}: {outcome}\n    - {mutant.before}\n    + {mutant.after}\n".encode())

    return tell


def summary(table: list[tuple[str, Counter[str]]], unknown: list[Key]) -> int:
    """Print what became of the mutants of each module, and return the exit status."""
    total = sum((counts for _, counts in table), Counter[str]())
    sys.stdout.write(
        f"\n{'module':48} {'mutants':>8} {'killed':>8} {'timed out':>10} {'explained':>10} {'survived':>9}\n"
    )
    for name, counts in [*table, ("all", total)]:
        killed, late, told = counts[KILLED], counts[TIMED_OUT], counts["explained"]
        survived = counts.total() - killed - late - told
        sys.stdout.write(f"{name:48} {counts.total():8} {killed:8} {late:10} {told:10} {survived:9}\n")
    for key in unknown:
        sys.stderr.write(f"error: explained.yaml explains a mutant that does not exist: {' | '.join(key)}\n")
    tried = total.total() - total["explained"]
    killed = total[KILLED] + total[TIMED_OUT]
    if tried and killed * 100 < tried * LEAST_KILLED:
        sys.stderr.write(
            f"error: {killed * 100 / tried:.1f} % of the mutants were killed (at least {LEAST_KILLED} %)\n"
        )
        return 1
    return int(bool(unknown))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
