"""Where API servers reach the webhook, as it is said on the command line."""

from __future__ import annotations

from urllib.parse import urlsplit

from gpugate.webhook.cli.options import UsageError


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
