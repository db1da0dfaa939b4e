"""Makes the four places of a new policy: its file, a bad example, a good example and its line in the catalogue."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import gpugate.policies
from gpugate.policies.sdk import kinds

_ID = re.compile(r"(?P<family>[a-z]+)/(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)")

_POLICY = '''"""{kind} with one sentence on the bad pattern.

## Why is this bad?

What happens, to whom, and what it costs.

## Instead

What to write.

## Sources

Where each fact was read, with its version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.sdk.findings import Skip, Violation
from gpugate.policies.sdk.kinds import {constant}
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field


@validates({constant})
def check(subject: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Find the bad pattern."""
    name = subject["metadata", "name"]
    if name.text == "bad":
        yield Violation(name.path, f"{{ctx.request.kind.kind}} is called bad")
'''

_EXAMPLE = """# A {kind} {shows}.
apiVersion: {api_version}
kind: {kind}
metadata:
  name: {name}
"""


def main(arguments: list[str]) -> int:
    """Write the four places; refuses an id that exists or is not one, and a kind that is not known."""
    known = {name: value for name, value in vars(kinds).items() if isinstance(value, kinds.Kind)}
    policy_id, constant = [*arguments, "", ""][:2]
    parts = _ID.fullmatch(policy_id)
    if parts is None or constant not in known:
        sys.stderr.write(
            "usage: make new-policy ID=family/name-of-the-bad-pattern KIND=CONSTANT\n"
            f"  where CONSTANT is one of {', '.join(sorted(known))}\n",
        )
        return 2
    root, kind = Path(gpugate.policies.__file__).resolve().parent, known[constant]
    family, module = root / parts["family"], parts["name"].replace("-", "_")
    if (family / f"{module}.py").exists():
        sys.stderr.write(f"{policy_id} exists: {family / module}.py\n")
        return 2
    api_version = f"{kind.group}/{kind.versions[-1]}".lstrip("/")
    examples = family / "examples" / module
    bad = _EXAMPLE.format(kind=kind.name, shows="that has the bad pattern", api_version=api_version, name="bad")
    good = _EXAMPLE.format(kind=kind.name, shows="that does it right", api_version=api_version, name="good")
    _write(family / "__init__.py", f'"""Policies on {parts["family"]}."""\n', keep=True)
    _write(family / f"{module}.py", _POLICY.format(kind=kind.name, constant=constant))
    _write(examples / "bad-first.yaml", bad.replace("name: bad", f"name: bad  # expect: {policy_id}"))
    _write(examples / "good-first.yaml", good)
    _list_in_catalogue(root / "catalog.py", policy_id)
    sys.stdout.write("Now: write the check and its documentation, make the examples real, `make generate test`.\n")
    return 0


def _write(path: Path, text: str, *, keep: bool = False) -> None:
    if keep and path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    sys.stdout.write(f"wrote {path}\n")


def _list_in_catalogue(path: Path, policy_id: str) -> None:
    """Put the id behind the last of its family, else at the end."""
    lines = path.read_text().splitlines(keepends=True)
    ids = [i for i, line in enumerate(lines) if _ID.search(line) and line.strip().startswith('"')]
    family = [i for i in ids if lines[i].strip().startswith(f'"{policy_id.partition("/")[0]}/')]
    lines.insert((family or ids)[-1] + 1, f'    "{policy_id}",\n')
    path.write_text("".join(lines))
    sys.stdout.write(f"listed it in {path}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
