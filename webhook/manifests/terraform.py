"""Read the Kubernetes objects in the configuration files of Terraform, and in the templates that they read.

An object is a heredoc with `apiVersion` and `kind`, or an object expression with these, such as `manifest` of a
`kubernetes_manifest` or the argument of `yamlencode`, wherever it is. What only Terraform can compute is the text of its
expression, `${var.name}`. Sources: HCL native syntax specification (hashicorp/hcl v2.24, hclsyntax/spec.md), providers
gavinbunney/kubectl 1.19 (`kubectl_manifest`), hashicorp/kubernetes 2.38 (`kubernetes_manifest`), hashicorp/helm 3.0
(`helm_release`).
"""

from __future__ import annotations

import importlib.util
import os
import re
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from gpugate.webhook.manifests.bounded_file import MAX_DEPTH
from gpugate.webhook.manifests.documents import Document, Span, encoding, read_text
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.field import Path as FieldPath

SUFFIX: Final = ".tf"
INSTALL: Final = "install gpugate[terraform] to read Terraform"
_MAX_BYTES: Final = 2 << 20  # of one file; large modules have some 100 KiB
_MAX_SECONDS: Final = 2.0  # of parsing one file; the corpus takes 2 ms each
_MAX_NODES: Final = 200_000  # a module of 100 KiB has 20,000
_LONGEST: Final = 150  # characters of an expression that is shown as a value
_HEAD: Final = ("apiVersion", "kind", "metadata")
_LOOKS_LIKE_OBJECT: Final = re.compile(r"^(?P<indent>[ \t]*)(?:apiVersion|kind):", re.MULTILINE)
_DIRECTORIES: Final = ("path.module", "path.root")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?")  # of a release, and of a namespace of this length
_TEMPLATES: Final = (".yaml", ".yml", ".json", ".tpl", ".tftpl", ".tmpl")


def is_readable() -> bool:
    """Tell whether the parser is installed, which is an extra."""
    return all(importlib.util.find_spec(name) for name in ("tree_sitter", "tree_sitter_hcl"))


@dataclass(frozen=True, slots=True)
class Referred:
    """A file that a configuration reads, as the path is written, seen from the working directory; or a chart that it installs.

    Attributes:
        path: the file or the chart.
        line: the line of the call or the block, from 1.
        is_template: Terraform evaluates the file as a template.
        chart: the name of the resource, where the path is a chart.
        values: of a chart, the texts of its values, which override those of the chart.
        namespace: of a chart; empty where only Terraform can compute it.
        release: the name of its release; empty as before.
    """

    path: str
    line: int
    is_template: bool = False
    chart: str = ""
    values: tuple[str, ...] = ()
    namespace: str = ""
    release: str = ""


def documents(source: str, data: bytes) -> Iterator[Document | Problem]:
    """Yield the objects of a configuration file, and what cannot be read of those; the parser must be installed."""
    file = _File.read(source, data)
    if isinstance(file, Problem):
        yield file
        return
    for node in file.outermost():
        if node.type == "heredoc_template":
            text, line, strips = file.heredoc(node)
            yield from template_documents(source, text, line, strips=strips, is_object=file.is_body(node))
        else:
            yield file.document(node)


def referred(source: str, data: bytes) -> list[Referred]:
    """Return the files that a configuration reads and the charts that it installs, as far as their paths are written out."""
    file = _File.read(source, data)
    return [] if isinstance(file, Problem) else list(file.referred())


@dataclass(slots=True)
class _File:
    """One configuration file: its text and its syntax tree."""

    source: str
    data: bytes
    root: Any  # Any: tree_sitter is an extra, and mypy runs without it
    lines: list[str]

    @classmethod
    def read(cls, source: str, data: bytes) -> _File | Problem:
        """Parse a file within limits; what is not HCL in it is left out."""
        import tree_sitter  # noqa: PLC0415 -- an extra
        import tree_sitter_hcl  # noqa: PLC0415 -- an extra

        if len(data) > _MAX_BYTES:
            return Problem(source, 0, 0, f"larger than {_MAX_BYTES >> 20} MiB", "split it")
        try:
            data = data.decode(encoding(data)).encode()
        except UnicodeDecodeError as error:
            return Problem(source, data.count(b"\n", 0, error.start) + 1, 1, "not UTF-8 text", "save it as UTF-8")
        deadline = time.monotonic() + _MAX_SECONDS
        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_hcl.language()))
        try:
            tree = parser.parse(
                lambda offset, _: data[offset : offset + (1 << 16)],
                encoding="utf8",
                progress_callback=lambda *_: time.monotonic() > deadline,
            )
        except ValueError:
            tree = None
        if tree is None:
            return Problem(source, 0, 0, f"takes more than {_MAX_SECONDS:g} s to parse", "split it, or use --exclude")
        return cls(source, data, tree.root_node, data.decode().splitlines())

    def text(self, node: Any) -> str:
        """Return the text of a node."""
        return self.data[node.start_byte : node.end_byte].decode(errors="replace")

    def outermost(self) -> Iterator[Any]:
        """Yield heredocs and objects that are Kubernetes objects, in order, but none within another."""
        for node in self._nodes(self.root):
            if node.type == "heredoc_template" or (node.type == "object" and self._is_object(node)):
                yield node

    def _nodes(self, root: Any) -> Iterator[Any]:
        """Yield the nodes below a node, in order; nothing below objects, heredocs and calls that were of interest."""
        waiting, count = [root], 0
        while waiting and count < _MAX_NODES:
            node = waiting.pop()
            count += 1
            yield node
            if not (node.type == "heredoc_template" or (node.type == "object" and self._is_object(node))):
                waiting += reversed(node.named_children)

    def _is_object(self, node: Any) -> bool:
        keys = {self._key(child.named_children[0]) for child in node.named_children[:50] if _is_member(child)}
        return keys.issuperset(_HEAD)

    def heredoc(self, node: Any) -> tuple[str, int, bool]:
        """Return the lines of a heredoc as they are written, the first one's number, and whether indentation is removed."""
        start, end = node.start_point.row + 1, node.end_point.row
        strips = self.text(node).startswith("<<-")
        return "\n".join(self.lines[start:end]) + "\n", start + 1, strips

    def is_body(self, node: Any) -> bool:
        """Tell whether a heredoc is the `yaml_body` of a resource, which is an object whatever it looks like."""
        above = node.parent
        while above is not None and above.type in {"template_expr", "expression"}:
            above = above.parent
        return above is not None and above.type == "attribute" and self._key(above.named_children[0]) == "yaml_body"

    def document(self, node: Any) -> Document:
        """Return an object expression as a document."""
        places: dict[FieldPath, Span] = {}
        value = self._value(node, (), places, 0)
        first, last = node.start_point.row, node.end_point.row
        places[()] = next((places[path] for path in (("apiVersion",), ("kind",)) if path in places), self._span(node))
        text = "\n".join(self.lines[first : last + 1])
        return Document(self.source, text, first + 1, value, node.start_byte, places=places, derived=True)

    def _span(self, node: Any, key: Any = None) -> Span:
        """Return the place of a value where it is on the line of its key, else of the key."""
        at = key or node
        marked = node if node.start_point.row == node.end_point.row == at.start_point.row else at
        line = self.lines[marked.start_point.row].encode() if marked.start_point.row < len(self.lines) else b""
        column = len(line[: marked.start_point.column].decode(errors="replace")) + 1
        length = len(self.text(marked).partition("\n")[0])
        return Span(at.start_point.row + 1, column, column + max(1, length))

    def _value(self, node: Any, path: FieldPath, places: dict[FieldPath, Span], depth: int) -> Json:
        """Return the value of an expression; a text with the expression where only Terraform can compute it."""
        node = _inner(node)
        if node.type == "object" and depth < MAX_DEPTH:
            value: dict[str, Json] = {}
            for child in filter(_is_member, node.named_children):
                key, member = child.named_children[0], child.named_children[-1]
                name = self._key(key)
                places[*path, name] = self._span(member, key)
                value[name] = self._value(member, (*path, name), places, depth + 1)
            return value
        if node.type == "tuple" and depth < MAX_DEPTH:
            items = [child for child in node.named_children if child.type == "expression"]
            places.update({(*path, index): self._span(child) for index, child in enumerate(items)})
            return [self._value(child, (*path, index), places, depth + 1) for index, child in enumerate(items)]
        return self._scalar(node)

    def _scalar(self, node: Any) -> Json:
        match node.type:
            case "string_lit" | "quoted_template":
                return _unquoted(self.text(node))
            case "heredoc_template":
                return self._heredoc_text(node)
            case "bool_lit":
                return self.text(node) == "true"
            case "null_lit":
                return None
            case "numeric_lit" | "unary_operation":
                return self._number(node)
        return self._unknown(node)

    def _heredoc_text(self, node: Any) -> str:
        text, _, strips = self.heredoc(node)
        return _dedented(text) if strips else text

    def _number(self, node: Any) -> Json:
        text = self.text(node).replace(" ", "")
        try:
            return float(text) if any(sign in text for sign in ".eE") else int(text)
        except ValueError:
            return self._unknown(node)

    def _unknown(self, node: Any) -> str:
        return _flat(f"${{{self.text(node)}}}")

    def _key(self, node: Any) -> str:
        inner = _inner(node)
        text = self.text(inner)
        return _unquoted(text) if text.startswith('"') else text

    def referred(self) -> Iterator[Referred]:
        """Yield the files that calls of functions name, and the charts of releases."""
        for node in self._nodes(self.root):
            if node.type == "function_call":
                name, path = self.text(node.named_children[0]), self._first_argument(node)
                if name in {"file", "templatefile"} and path.endswith(_TEMPLATES):
                    yield Referred(path, node.start_point.row + 1, is_template=name == "templatefile")
            elif node.type == "block" and self._labels(node)[:2] == ["resource", "helm_release"]:
                yield from self._release(node)

    def _labels(self, block: Any) -> list[str]:
        return [self._key(child) for child in block.named_children if child.type in {"identifier", "string_lit"}]

    def _release(self, block: Any) -> Iterator[Referred]:
        body = next((child for child in block.named_children if child.type == "body"), None)
        attributes = {
            self._key(child.named_children[0]): child.named_children[-1]
            for child in (body.named_children if body is not None else ())
            if child.type == "attribute"
        }
        path = (
            self._path(_inner(attributes["chart"])) if "chart" in attributes and "repository" not in attributes else ""
        )
        if not path:
            return
        namespace, release = (self._named(attributes.get(key)) for key in ("namespace", "name"))
        values = [self._text(child) for child in self._listed(attributes.get("values"))]
        name = ".".join(self._labels(block)[1:3])
        yield Referred(
            path,
            block.start_point.row + 1,
            chart=name,
            values=tuple(filter(None, values)),
            namespace=namespace,
            release=release,
        )

    def _named(self, node: Any) -> str:
        """Return a name that is written out; empty where Terraform computes it, or Kubernetes takes no such name."""
        value = self._scalar(_inner(node)) if node is not None else ""
        return value if isinstance(value, str) and _NAME.fullmatch(value) else ""

    def _listed(self, node: Any) -> list[Any]:
        inner = _inner(node) if node is not None else None
        return (
            [child for child in inner.named_children if child.type == "expression"]
            if inner is not None and inner.type == "tuple"
            else []
        )

    def _text(self, node: Any) -> str:
        """Return the text of values: a heredoc, or what `yamlencode` and `jsonencode` make of an object; else empty."""
        import json  # noqa: PLC0415 -- few files have charts

        inner = _inner(node)
        if inner.type == "heredoc_template":
            return self._heredoc_text(inner)
        if inner.type == "function_call" and self.text(inner.named_children[0]) in {"yamlencode", "jsonencode"}:
            arguments = self._arguments(inner)
            return json.dumps(self._value(arguments[0], (), {}, 0)) if arguments else ""
        return ""

    def _arguments(self, call: Any) -> list[Any]:
        arguments = next((child for child in call.named_children if child.type == "function_arguments"), None)
        return list(arguments.named_children) if arguments is not None else []

    def _first_argument(self, call: Any) -> str:
        arguments = self._arguments(call)
        return self._path(_inner(arguments[0])) if arguments else ""

    def _path(self, node: Any) -> str:
        """Return a path that is written out, from the working directory on; empty where Terraform computes it."""
        if node.type not in {"string_lit", "quoted_template"}:
            return ""
        text = _unquoted(self.text(node))
        for name in _DIRECTORIES:
            text = text.replace(f"${{{name}}}", ".", 1) if text.startswith(f"${{{name}}}") else text
        if "${" in text or "%{" in text or "\0" in text or "\n" in text or not text:
            return ""
        return os.path.normpath(os.path.join(os.path.dirname(self.source), text))  # noqa: PTH118, PTH120 -- the user's spelling


_ESCAPES: Final = re.compile(r"\\(?:u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})|(?P<one>.))", re.DOTALL)
_ONE: Final = {"n": "\n", "r": "\r", "t": "\t"}


def _unquoted(text: str) -> str:
    """Return what a quoted template says, with the text of each expression in its place."""
    text = text[1:-1] if len(text) > 1 else ""
    parts: list[str] = []
    at = 0
    while (match := _BEGIN.search(text, at)) is not None:
        parts.append(_ESCAPES.sub(_unescaped, text[at : match.start()]))
        at = match.end() if match["escape"] else _end(text, match.end())
        parts.append(match[0][1:] if match["escape"] else _flat(text[match.start() : at]))
    return "".join([*parts, _ESCAPES.sub(_unescaped, text[at:])])


def _unescaped(match: re.Match[str]) -> str:
    if match["one"] is not None:
        return _ONE.get(match["one"], match["one"])
    code = int(match["four"] or match["eight"], 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"


def _flat(written: str) -> str:
    """Return an expression or directive as a placeholder that `manifests.placeholders` knows: one line without braces inside."""
    inner = " ".join(written[2:-1].replace("{", "(").replace("}", ")").split())
    return f"{written[0]}{{{inner if len(inner) <= _LONGEST else f'{inner[:_LONGEST]}...'}}}"


def _is_member(node: Any) -> bool:
    return bool(node.type == "object_elem" and len(node.named_children) > 1)


def _inner(node: Any) -> Any:
    """Return the node that an expression consists of, without parentheses and wrappers."""
    wrappers = {"expression", "literal_value", "template_expr", "collection_value", "operation", "variable_expr"}
    while node.type in wrappers and len(node.named_children) == 1:
        node = node.named_children[0]
    return node


# Stand for interpolations while YAML is parsed: characters of a private area, which a file with meaning does not have.
_OPEN, _CLOSE, _FILL = "\ue000", "\ue001", "\ue002"
_TOKEN: Final = re.compile(f"{_OPEN}(?P<number>[0-9]+){_FILL}*{_CLOSE}")
_PRIVATE: Final = re.compile(f"[{_OPEN}{_CLOSE}{_FILL}]")
_BEGIN: Final = re.compile(r"(?P<escape>\$\$\{|%%\{)|(?P<opens>[$%]\{)")
_INSIDE: Final = re.compile(r'["{}]|[$%]\{|\\.', re.DOTALL)
_ALONE: Final = re.compile(f"^[ \t]*{_OPEN}[0-9]+{_FILL}*{_CLOSE}[ \t]*$")
_OPENS_VALUE: Final = re.compile(r"(?::|[|>][+-]?[0-9]?|^[ \t]*-)[ \t]*(?:#.*)?$")
_LINE_ENDS: Final = re.compile(r"[ \t]*(?:\n|\Z)")
_WORD: Final = re.compile(r"%\{[~ \t\n]*([a-z]*)")
_SEPARATOR: Final = re.compile(r"---[ \t]*(?:#.*)?$")


def template_documents(
    source: str, text: str, first_line: int = 1, *, strips: bool = False, is_object: bool = False
) -> Iterator[Document | Problem]:
    """Yield the documents of a template in the syntax of Terraform.

    Interpolations are values that are the text `${...}`. Of a condition the first branch counts, a loop counts once.

    Args:
        source: the file, for people.
        text: the template as it is written.
        first_line: the number of its first line in the file.
        strips: it is a heredoc whose indentation Terraform removes (`<<-`).
        is_object: it is an object, so that what cannot be read is a problem; else it may be for another tool.
    """
    if not (is_object or _LOOKS_LIKE_OBJECT.search(text)):
        return
    masked, originals = _masked(text)
    if strips:
        masked = _separated(masked)
    lines = text.splitlines()
    for part in read_text(source, masked):
        if isinstance(part, Problem):
            if is_object or not part.warning:
                line = part.line + first_line - 1 if part.line else 0
                around = replace(part.excerpt, first_line=part.excerpt.first_line + first_line - 1)
                hidden = tuple(_TOKEN.sub(lambda match: originals[int(match["number"])], line) for line in around.lines)
                yield replace(part, line=line, excerpt=replace(around, lines=hidden))
            continue
        if not is_object and not _is_head(part.value):
            continue
        last = part.first_line + len(part.text.splitlines())
        yield replace(
            part,
            first_line=part.first_line + first_line - 1,
            value=_restored(part.value, originals),
            file_text="\n".join(lines[part.first_line - 1 : last - 1]),
            derived=True,
        )


def _is_head(value: Json) -> bool:
    return isinstance(value, dict) and "apiVersion" in value and "kind" in value


def _masked(text: str) -> tuple[str, list[str]]:
    """Return a template that YAML can be parsed from, and what its tokens stand for."""
    mask = _Mask(_PRIVATE.sub("?", text))
    mask.all()
    lines = "".join(mask.parts).split("\n")
    before = ""
    for index, line in enumerate(lines):
        # What is alone on its line, but not the value of a key, are further members of a mapping.
        if _ALONE.match(line) and before and not _OPENS_VALUE.search(before):
            lines[index] = f"{line.rstrip()}:"
        before = line if line.strip() else before
    return "\n".join(lines), mask.originals


@dataclass(slots=True)
class _Mask:
    """A template in which expressions become tokens, and directives and second branches become spaces.

    Attributes:
        branches: for each condition and loop that is open, whether its second branch has begun.
        hidden: how many of them have begun.
        is_blank: nothing but space is before the place on its line.
    """

    text: str
    parts: list[str] = field(default_factory=list)
    originals: list[str] = field(default_factory=list)
    branches: list[bool] = field(default_factory=list)
    hidden: int = 0
    is_blank: bool = True

    def all(self) -> None:
        """Take in the whole text, in linear time."""
        at = 0
        while (match := _BEGIN.search(self.text, at)) is not None:
            self._literal(self.text[at : match.start()])
            if match["escape"]:
                at = match.end()
                self._expression(match[0], match[0][1:])
                continue
            at = _end(self.text, match.end())
            written = self.text[match.start() : at]
            if match["opens"] == "${":
                self._expression(written, written)
            else:
                self._directive(written, begins=self.is_blank and not _LINE_ENDS.match(self.text, at))
        self._literal(self.text[at:])

    def _literal(self, text: str) -> None:
        _, line_break, last = text.rpartition("\n")
        self.is_blank = (self.is_blank or bool(line_break)) and not last.strip()
        self.parts.append(_blank(text) if self.hidden else text)

    def _expression(self, written: str, original: str) -> None:
        if self.hidden:
            self.parts.append(_blank(written))
            return
        self.is_blank = False
        self.parts.append(_token(len(self.originals), written))
        self.originals.append(_flat(original) if original.endswith("}") else original)

    def _directive(self, written: str, *, begins: bool) -> None:
        # Before something on its line it would be taken for indentation.
        self.parts.append("" if begins and "\n" not in written else _blank(written))
        word = _WORD.match(written)
        match word[1] if word else "":
            case "if" | "for":
                self.branches.append(False)
            case "else" if self.branches and not self.branches[-1]:
                self.branches[-1] = True
                self.hidden += 1
            case "endif" | "endfor" if self.branches:
                self.hidden -= self.branches.pop()


def _end(text: str, at: int) -> int:
    """Return where an interpolation or a directive ends that begins before a place; the end of the text without one."""
    modes = ["}"]
    while modes:
        match = _INSIDE.search(text, at)
        if match is None:
            return len(text)
        at, sign = match.end(), match[0]
        if sign == '"':
            if modes[-1] == '"':
                modes.pop()
            else:
                modes.append('"')
        elif sign in {"${", "%{"} or (sign == "{" and modes[-1] != '"'):
            modes.append("}")
        elif sign == "}" and modes[-1] == "}":
            modes.pop()
    return at


def _token(number: int, original: str) -> str:
    """Return what stands for an expression, as wide as it where that is on one line, and with as many lines."""
    token = f"{_OPEN}{number}"
    width = len(original) if "\n" not in original else 0
    return f"{token}{_FILL * (width - len(token) - 1)}{_CLOSE}" + "\n" * original.count("\n")


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _restored(value: Json, originals: list[str]) -> Json:
    """Return a value with the expressions in the place of tokens."""
    if not originals:
        return value
    if isinstance(value, str):
        return _TOKEN.sub(lambda match: originals[int(match["number"])], value) if _OPEN in value else value
    if isinstance(value, list):
        return [_restored(element, originals) for element in value]
    if isinstance(value, dict):
        return {str(_restored(key, originals)): _restored(element, originals) for key, element in value.items()}
    return value


def _indentation(text: str) -> int:
    return min((len(line) - len(line.lstrip(" \t")) for line in text.split("\n") if line.strip()), default=0)


def _dedented(text: str) -> str:
    width = _indentation(text)
    return "\n".join(line[width:] if line.strip() else line for line in text.split("\n"))


def _separated(text: str) -> str:
    """Put the separators of documents at the beginning of their lines, where they are without the indentation."""
    width = _indentation(text)
    lines = (line[width:] if _SEPARATOR.match(line[width:]) else line for line in text.split("\n"))
    return "\n".join(lines)
