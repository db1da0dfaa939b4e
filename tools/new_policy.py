"""Makes the four places of a new policy: its file, a bad example, a good example and its line in the catalogue."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import gpugate.policies
from gpugate.policies.engine.config import GpugateError
from gpugate.policies.sdk import objects

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
from gpugate.policies.sdk.objects import {constant}
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


def scaffold(root: Path, policy_id: str, constant: str) -> list[str]:
    """Write the four places below the folder of policies; returns a line about each.

    Raises:
        GpugateError: the id exists or is not one, or the kind is not known.
    """
    known = {name: value for name, value in vars(objects).items() if isinstance(value, objects.Kind)}
    parts, kind = _ID.fullmatch(policy_id), known.get(constant)
    if parts is None or kind is None:
        raise GpugateError(
            "make new-policy ID=family/name-of-the-bad-pattern KIND=CONSTANT\n"
            f"  where CONSTANT is one of {', '.join(sorted(known))}",
        )
    family, module = root / parts["family"], parts["name"].replace("-", "_")
    if (family / f"{module}.py").exists():
        raise GpugateError(f"{policy_id} exists: {family / module}.py")
    api_version = f"{kind.group}/{kind.versions[-1]}".lstrip("/")
    examples = family / "examples" / module
    bad = _EXAMPLE.format(kind=kind.name, shows="that has the bad pattern", api_version=api_version, name="bad")
    good = _EXAMPLE.format(kind=kind.name, shows="that does it right", api_version=api_version, name="good")
    files = {
        family / f"{module}.py": _POLICY.format(kind=kind.name, constant=constant),
        examples / "bad-first.yaml": bad.replace("name: bad", f"name: bad  # expect: {policy_id}"),
        examples / "good-first.yaml": good,
    }
    if not (family / "__init__.py").exists():
        files[family / "__init__.py"] = f'"""Policies on {parts["family"]}."""\n'
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    _list_in_catalogue(root / "catalog.py", policy_id)
    written = [path.relative_to(root.parent) for path in files]
    return [*(f"wrote {path}" for path in written), f"listed it in {root.name}/catalog.py"]


def _list_in_catalogue(path: Path, policy_id: str) -> None:
    """Put the id behind the last of its family, else at the end."""
    lines = path.read_text().splitlines(keepends=True)
    ids = [i for i, line in enumerate(lines) if _ID.search(line) and line.strip().startswith('"')]
    family = [i for i in ids if lines[i].strip().startswith(f'"{policy_id.partition("/")[0]}/')]
    lines.insert((family or ids)[-1] + 1, f'    "{policy_id}",\n')
    path.write_text("".join(lines))


def main(arguments: list[str]) -> int:
    """Scaffold the policy that the command line names."""
    policy_id, constant = [*arguments, "", ""][:2]
    try:
        done = scaffold(Path(gpugate.policies.__file__).resolve().parent, policy_id, constant)
    except GpugateError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    done.append("Now: write the check and its documentation, make the examples real, `make generate test`.")
    sys.stdout.write("\n".join(done) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
