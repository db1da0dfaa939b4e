"""Makes the four places of a new policy of the library: its file, two examples and its line in the catalogue."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import gpugate.policies
from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.own_policies.scaffold import files_of, kinds

_ID = re.compile(r"(?P<family>[a-z]+)/[a-z0-9]+(?:-[a-z0-9]+)*")


def scaffold(root: Path, policy_id: str, constant: str) -> list[str]:
    """Write the four places below the folder of policies; returns a line about each.

    Raises:
        GpugateError: the id exists or is not one, or the kind is not known.
    """
    parts = _ID.fullmatch(policy_id)
    if parts is None or constant not in kinds():
        raise GpugateError(
            "make new-policy ID=family/name-of-the-bad-pattern KIND=CONSTANT\n"
            f"  where CONSTANT is one of {', '.join(sorted(kinds()))}",
        )
    files = {root / name: text for name, text in files_of(policy_id, constant, is_own=False).items()}
    module = next(iter(files))
    if module.exists():
        raise GpugateError(f"{policy_id} exists: {module.with_suffix('')}.py")
    family = module.parent
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
