"""What `gpugate check` and `gpugate review` say of an example, in the words of the audit annotations."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from gpugate.policies.catalog import CATALOG
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.admission import review_command as review
from gpugate.webhook.check import command as check
from library.standing import beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from library.cases import Case

Json = dict[str, Any]
_WORDS = {Stance.ENFORCE: "deny", Stance.WARN: "warn", Stance.AUDIT: "record"}
# Policies that look at nothing but the object, as `gpugate review` does.
BY_ITSELF = frozenset(policy.id for policy in CATALOG if not any(handler.needs for handler in policy.handlers))


def by_check(judged: Case, folder: Path) -> dict[str, frozenset[str]]:
    """Judge an example and all that exists beside it as the whole cluster; say what is found or changed in the example."""
    # Schemas speak before admission, and of policies nothing.
    flags = ["--complete-context", "--no-ignores", "--no-schemas"]
    flags += ["--policy-file", _written(folder, "policy.yaml", judged.policy_file)]
    files = [
        _written(folder, "beside.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": beside(judged)})),
        _written(folder, "judged.json", json.dumps(judged.judged)),
    ]
    report = _printed(check.main, [*flags, "--output", "json", *files])
    # What has one cause is one finding, with the other objects as further locations.
    places = [(finding, each) for finding in report["findings"] for each in (finding, *finding["related"])]
    return _words(finding for finding, each in places if each["file"] == files[-1])


def by_review(judged: Case, folder: Path) -> dict[str, frozenset[str]]:
    """Judge an example by itself; say what is found, but not what is changed, which a review does not say by policy."""
    flags = ["--policy-file", _written(folder, "policy.yaml", judged.policy_file), "--output", "json"]
    report = _printed(review.main, [*flags, _written(folder, "judged.json", json.dumps(judged.judged))])
    return _words(report["findings"])


def _words(findings: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    words: dict[str, set[str]] = {}
    for finding in findings:
        if finding.get("sort") == "patch":
            if not finding["template_of"]:
                words.setdefault("mutate", set()).add(finding["policy"])
            continue
        if finding["mode"] is None:
            # That the file is a template, whose values are not known.
            words.setdefault("template", set()).add(finding["policy"])
            continue
        stance = Stance[finding["mode"].upper()]
        # At admission the template of a workload is never refused: its Pods are.
        costs = min(stance, Stance.WARN) if finding["template_of"] else stance
        words.setdefault(_WORDS[costs], set()).add(finding["policy"])
    return {word: frozenset(policies) for word, policies in words.items()}


def _printed(main: Callable[[Sequence[str]], int], arguments: list[str]) -> Json:
    with redirect_stdout(io.StringIO()) as printed:
        main(arguments)
    read: Json = json.loads(printed.getvalue())
    return read


def _written(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return str(file)
