"""Bytes from outside are parsed by `read_json`, which bounds the depth, or by a parser that is listed here with its reason.

The author of one object, file or answer chooses how deep it is nested. A parser that goes round the bound ends in a
RecursionError, for which no caller is prepared, or refuses the whole list that contains the object.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
FOLDERS = ("certs", "policies", "webhook")
# The names of functions, and of classes with a method, that turn bytes or text into values.
FUNCTIONS = {
    *(f"json.{name}" for name in ("load", "loads", "JSONDecoder")),
    "orjson.loads",
    *(f"msgspec.{kind}.decode" for kind in ("json", "yaml", "toml", "msgpack")),
    *(f"tomllib.{name}" for name in ("load", "loads")),
    *(
        f"yaml.{name}"
        for name in ("compose", "compose_all", "load", "load_all", "parse", "safe_load", "safe_load_all", "scan")
    ),
    *(f"{module}.{name}" for module in ("pickle", "marshal", "plistlib") for name in ("load", "loads")),
    "ast.literal_eval",
    *(f"ET.{name}" for name in ("parse", "fromstring", "iterparse", "XML")),
}
METHODS = {"json"}  # of an HTTP response
DECODERS = {"msgspec.json.Decoder", "msgspec.msgpack.Decoder"}

OF_THE_PACKAGE = "reads a file of the package"
OWN = "reads what this program wrote, from values that were read within the bound"
CUT = "reads an item of a list that `read_json` has cut"
COMPOSED = "composes a document that the YAML reader has read within its bounds"
CAUGHT = "catches RecursionError, and says that the text is nested too deeply"
# Module and function -> why its parser needs no `read_json`.
EXCEPTIONS = {
    "certs.authorities._decode_state": f"{CAUGHT}; `certs` imports nothing of gpugate",
    "policies.data.harms_seen.load_harms_seen": OF_THE_PACKAGE,
    "policies.data.instance_types.load_instance_types": OF_THE_PACKAGE,
    "webhook.admission.recorder._digest": OWN,
    "webhook.admission.response.encode_operations": OWN,
    "webhook.admission.review._parse": "orjson ends at 1,024 levels with an error, and the caller refuses more than policies read",
    "webhook.admission.shadow._read": OWN,
    "webhook.audit.contexts.run_all": OWN,
    "webhook.audit.live.objects": CUT,
    "webhook.audit.source.__iter__": OWN,
    "webhook.audit.source.drain": OWN,
    "webhook.cluster.objects.decode": OWN,
    "webhook.cluster.reflector._list": CUT,
    "webhook.manifests.documents.__init__": COMPOSED,
    "webhook.manifests.documents._composed": COMPOSED,
    "webhook.manifests.documents._has_composed_head": "reads events one by one, and ends at a depth and a number of its own",
    "webhook.manifests.dump_files.found_in": CUT,
    "webhook.manifests.json_reader._decoder": CAUGHT,
    "webhook.manifests.policy_file._node": COMPOSED,
    "webhook.manifests.terraform_plan._addresses": "reads one string",
    "webhook.project.find.table": CAUGHT,
    "webhook.rendering.chart_links._refused": CAUGHT,
    "webhook.rendering.isolate.main": "reads an argument that its parent wrote",
    "webhook.schemas.added._refuse_unreadable": CAUGHT,
    "webhook.schemas.tables.read": CAUGHT,
    "webhook.simulate.replay._state": OWN,
}


def called(node: ast.expr) -> str:
    """Return a dotted name; empty for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(parts))) if isinstance(node, ast.Name) else ""


def decoders(module: ast.Module) -> set[str]:
    """Return the names of typed decoders in a module, and of the parameters that take one."""
    made = {
        called(target)
        for node in ast.walk(module)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if called(node.value.func) in DECODERS
    }
    taken = {
        node.arg
        for node in ast.walk(module)
        if isinstance(node, ast.arg) and node.annotation and ast.unparse(node.annotation).startswith(tuple(DECODERS))
    }
    return made | taken


def bounded(module: ast.Module) -> set[ast.expr]:
    """Return the parsers that are handed to `read_json`."""
    return {
        node.args[0]
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and called(node.func) == "read_json" and node.args
    }


def is_parser(node: ast.AST, known: set[str]) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and not node.args
    if not isinstance(node, ast.Attribute):
        return False
    if node.attr in {"decode", "decode_lines"}:
        made_here = isinstance(node.value, ast.Call) and called(node.value.func) in DECODERS
        return made_here or called(node.value) in known or called(node) in FUNCTIONS
    return called(node) in FUNCTIONS


def unbounded(name: str, module: ast.Module) -> Iterator[str]:
    """Yield the function of each parser in a module that does not go through `read_json`."""
    known, allowed = decoders(module), bounded(module)

    def visit(node: ast.AST, place: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if is_parser(child, known) and child not in allowed:
                yield place
            inner = f"{name}.{child.name}" if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else place
            yield from visit(child, inner)

    yield from visit(module, name)


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def test_every_parser_is_bounded_or_has_a_reason() -> None:
    found = {place for name, module in modules() for place in unbounded(name, module)}
    assert sorted(found) == sorted(EXCEPTIONS)


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        pytest.param("read_json(orjson.loads, body)", False, id="bounded"),
        pytest.param("orjson.loads(body)", True, id="called"),
        pytest.param("retried(orjson.loads)", True, id="handed-on"),
        pytest.param("D = msgspec.json.Decoder(A)\ndef f(body): return D.decode(body)", True, id="decoder"),
        pytest.param(
            "D = msgspec.json.Decoder(A)\ndef f(body): return read_json(D.decode, body)", False, id="bounded-decoder"
        ),
        pytest.param(
            "D: Final = msgspec.json.Decoder(A)\nfor line in lines: D.decode(line)", True, id="annotated-decoder"
        ),
        pytest.param(
            "def f(self, d: msgspec.json.Decoder[A], body): return d.decode(body)", True, id="decoder-as-an-argument"
        ),
        pytest.param("msgspec.json.Decoder(A).decode(body)", True, id="decoder-without-a-name"),
        pytest.param("msgspec.json.decode(body, type=A)", True, id="typed"),
        pytest.param("requests.get(url).json()", True, id="response"),
        pytest.param("body.decode()", False, id="text"),
        pytest.param("yaml.safe_load(body)", True, id="yaml"),
    ],
)
def test_the_law_finds_parsers(text: str, is_found: bool) -> None:  # noqa: FBT001 -- a table's column
    assert any(unbounded("m", ast.parse(text))) is is_found
