"""What a body sent to the webhook may say of itself."""

from __future__ import annotations


def unsupported(content_type: str, content_encoding: str) -> str:
    """Say why a body cannot be read, from its two headers; empty when it can.

    The API server sends `application/json` (`k8s.io/apiserver` pkg/util/webhook, v1.36); no type at all is read as
    that, so that a person with `curl --data-binary` is understood.
    """
    if content_encoding.strip().lower() not in {"", "identity"}:
        return "the body must not be compressed: send it without Content-Encoding"
    media_type, _, parameters = content_type.lower().partition(";")
    if media_type.strip() not in {"", "application/json"}:
        return "the body must be JSON: send Content-Type: application/json"
    name, _, charset = parameters.partition("=")
    if name.strip() == "charset" and charset.strip(' "') not in {"utf-8", "utf8"}:
        return "the body must be UTF-8: send Content-Type: application/json"
    return ""
