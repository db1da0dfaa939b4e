"""Answers one request to the fake API server."""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from cluster.fake_api_patches import MERGES
from cluster.fake_api_store import StatusError

if TYPE_CHECKING:
    from cluster.fake_api_server import Answer, FakeHttpServer
    from cluster.fake_api_store import Json, Resource


VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeHttpServer

    def log_message(self, *_: object) -> None:
        """Write no log."""

    def do_GET(self) -> None:
        self._answer_request()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 -- the names that http.server calls

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string((timestamp or time.time()) + self.server.fake.ahead_seconds)

    def _answer_request(self) -> None:
        fake = self.server.fake
        fake.requests.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        for answer in fake.answers:
            if answer.to in self.path:
                fake.answers.remove(answer)
                self._send_scripted(answer)
                return
        try:
            self._check_token(fake.token)
            self._route(json.loads(body or b"{}"))
        except StatusError as error:
            self._json(error.code, error.status)

    def _check_token(self, token: str) -> None:
        if token and self.headers.get("Authorization") != f"Bearer {token}":
            raise StatusError(401, "Unauthorized")

    def _send_scripted(self, answer: Answer) -> None:
        if answer.drop:
            self.close_connection = True
            return
        self.send_response(answer.code)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.hang or answer.cut:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if answer.hang or answer.cut:
            if answer.body:
                self._chunk(answer.body)
            self.close_connection = True
        else:
            self.wfile.write(answer.body)
        if answer.hang:
            self.server.fake.stopping.wait()

    def _route(self, body: Json) -> None:
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        parts = url.path.strip("/").split("/")
        if parts == ["version"]:
            self._json(200, {"gitVersion": "v1.36.3"})
            return
        group, rest = ("", parts[1:]) if parts[0] == "api" else (parts[1], parts[2:])
        if len(rest) < 2:
            self._json(200, self._discover(group, rest))
            return
        version, *rest = rest
        namespace = rest[1] if rest[0] == "namespaces" and len(rest) > 2 else None
        plural, *names = rest[2:] if namespace is not None else rest
        resource = self.server.fake.store.resources.get((group, plural))
        if resource is None or version not in resource.versions:
            raise StatusError(404, "NotFound")
        if plural in self.server.fake.forbidden:
            verb = "watch" if "watch" in query else VERBS[self.command]
            raise StatusError(
                403, "Forbidden", f'{plural} is forbidden: User "tester" cannot {verb} resource "{plural}"'
            )
        if names or self.command != "GET":
            self._handle_object(resource, namespace or "", names[0] if names else "", body)
        elif query.get("watch") == "true":
            self._watch(resource, namespace, query)
        else:
            self._list(resource, namespace, query)

    def _discover(self, group: str, rest: list[str]) -> Json:
        served = [r for r in self.server.fake.store.resources.values() if r.group == group]
        if rest:
            verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
            resources = [
                {"name": r.plural, "kind": r.kind, "namespaced": r.namespaced, "verbs": verbs}
                for r in served
                if rest[0] in r.versions
            ]
            if resources:
                return {"kind": "APIResourceList", "resources": resources}
        elif served:
            versions = [{"version": v} for v in dict.fromkeys(v for r in served for v in r.versions)]
            return {"kind": "APIGroup", "name": group, "versions": versions, "preferredVersion": versions[0]}
        raise StatusError(404, "NotFound")

    def _handle_object(self, resource: Resource, namespace: str, name: str, body: Json) -> None:
        store, plural = self.server.fake.store, (resource.group, resource.plural)
        if body:
            body.setdefault("metadata", {}).setdefault("name", name)
            if namespace:
                body["metadata"]["namespace"] = namespace
        if self.command == "GET":
            self._json(200, store.get(plural, namespace, name))
        elif self.command == "POST":
            self._json(201, store.create(plural, body))
        elif self.command == "PUT":
            self._json(200, store.update(plural, body))
        elif self.command == "PATCH":
            merge = MERGES[self.headers["Content-Type"]]
            self._json(200, store.update(plural, merge(store.get(plural, namespace, name), body)))
        else:
            self._json(200, store.delete(plural, namespace, name))

    def _list(self, resource: Resource, namespace: str | None, query: dict[str, str]) -> None:
        fake = self.server.fake
        oldest = int(query.get("resourceVersion") or 0)
        if oldest > fake.store.revision:
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            raise StatusError(504, "Timeout", "Too large resource version", causes=[cause], retryAfterSeconds=1)
        if "continue" in query:
            if query["continue"] not in fake.pages or fake.pages[query["continue"]][0] < fake.store.compacted:
                raise StatusError(410, "Expired", "The provided continue parameter is too old")
            revision, items = fake.pages.pop(query["continue"])
        else:
            items = [
                item
                for item in fake.store.all((resource.group, resource.plural), namespace)
                if _is_selected(item, query)
            ]
            revision = fake.store.revision
        # From the watch cache all objects come at once, whatever the limit.
        limit = len(items) if query.get("resourceVersion") == "0" else int(query.get("limit", len(items)))
        metadata = {"resourceVersion": str(revision)}
        if items[limit:]:
            metadata["continue"] = f"{resource.plural}-{len(fake.requests)}"
            fake.pages[metadata["continue"]] = (revision, items[limit:])
        self._json(200, {"kind": f"{resource.kind}List", "metadata": metadata, "items": items[:limit]})

    def _watch(self, resource: Resource, namespace: str | None, query: dict[str, str]) -> None:
        fake, store = self.server.fake, self.server.fake.store
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        revision = int(query.get("resourceVersion") or store.revision)
        if "resourceVersion" not in query:
            for item in store.all((resource.group, resource.plural), namespace):
                if _is_selected(item, query):
                    self._event("ADDED", item)
        if revision < store.compacted:
            self._event("ERROR", StatusError(410, "Expired", "too old resource version").status)
            self._chunk(b"")
            return
        position = next((i for i, c in enumerate(store.history) if c.revision > revision), len(store.history))
        with store.changed:
            ended = fake.ended
            fake.watching += 1
            store.changed.notify_all()
        try:
            while True:
                with store.changed:
                    if not fake.short_watches:
                        store.changed.wait_for(
                            lambda position=position: (
                                len(store.history) > position or fake.ended > ended or fake.stopping.is_set()
                            )
                        )
                    changes, position = store.history[position:], len(store.history)
                for change in changes:
                    same_kind = change.plural == (resource.group, resource.plural)
                    same_namespace = namespace in {None, change.object["metadata"].get("namespace")}
                    if change.type == "BOOKMARK" or (
                        same_kind and same_namespace and _is_selected(change.object, query)
                    ):
                        self._event(change.type, change.object)
                if fake.short_watches or fake.ended > ended or fake.stopping.is_set():
                    break
            self._chunk(b"")
        finally:
            with store.changed:
                fake.watching -= 1
                store.changed.notify_all()

    def _event(self, type_: str, obj: Json) -> None:
        self._chunk(json.dumps({"type": type_, "object": obj}).encode() + b"\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _json(self, code: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _is_selected(obj: Json, query: dict[str, str]) -> bool:
    name = query.get("fieldSelector", "").removeprefix("metadata.name=")
    return name in {"", obj["metadata"]["name"]}
