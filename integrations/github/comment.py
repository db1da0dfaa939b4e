# ruff: noqa: INP001 -- a script of the action, and in no package
"""Write a report as a comment on the pull request of a workflow: comment.py FILE.

A later run updates the comment of an earlier one. It needs no package, and runs isolated (`python -I`). The token comes in
INPUT_TOKEN; it is sent to GITHUB_API_URL only, and redirects are not followed.

Source: GitHub REST API 2022-11-28, "Issue comments".
"""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

MARK = "<!-- gpugate simulate -->"
# GitHub refuses comments of more than 65,536 characters.
LONGEST = 65_000
PAGE = 100
MOST_PAGES = 30
LARGEST_ANSWER = 16 << 20
SECONDS = 30


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, because it would take the token along."""

    def redirect_request(self, *_: object) -> None:
        """Return nothing, so that the redirect is an error."""


def call(method: str, path: str, body: dict[str, str] | None = None) -> object:
    """Return what the API answers."""
    request = urllib.request.Request(  # noqa: S310 -- the runner sets the address
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/issues/{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={
            "Authorization": f"Bearer {os.environ['INPUT_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "gpugate",
        },
    )
    with urllib.request.build_opener(NoRedirect).open(request, timeout=SECONDS) as answer:
        return json.loads(answer.read(LARGEST_ANSWER))


def earlier(number: str) -> int | None:
    """Return the id of the comment of an earlier run; None without one.

    Everybody can write a comment that begins with the mark, so only those of bots count.
    """
    for page in range(1, MOST_PAGES + 1):
        comments = call("GET", f"{number}/comments?per_page={PAGE}&page={page}")
        if not isinstance(comments, list):
            return None
        for comment in comments:
            if (comment.get("user") or {}).get("type") == "Bot" and (comment.get("body") or "").startswith(MARK):
                return int(comment["id"])
        if len(comments) < PAGE:
            return None
    return None


def main() -> int:
    """Write the comment, and return the exit code."""
    pull_request = re.fullmatch(r"refs/pull/([0-9]+)/merge", os.environ.get("GITHUB_REF", ""))
    if pull_request is None:
        sys.stdout.write("this workflow does not run for a pull request\n")
        return 0
    number = pull_request[1]
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n\n(shortened: the whole report is in the summary of the job)\n"
    body = {"body": f"{MARK}\n{text}"}
    try:
        known = earlier(number)
        if known is None:
            call("POST", f"{number}/comments", body)
        else:
            call("PATCH", f"comments/{known}", body)
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        reason = f"HTTP {error.code}" if isinstance(error, urllib.error.HTTPError) else type(error).__name__
        sys.stderr.write(f"error: the comment cannot be written: {reason}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
