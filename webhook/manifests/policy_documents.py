"""Read policies in CEL from a file, with line and column of a mistake in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.cel.documents import DocumentError, examples_of, load_documents
from gpugate.policies.engine import config
from gpugate.policies.engine.config import API_VERSION, ConfigError, GpugateError
from gpugate.policies.sdk import catalogue
from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.documents import Document, Positions, encoding, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.cel.documents import Example
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.policy import Policy

_GROUP: Final = f"{API_VERSION.partition('/')[0]}/"
# Not a set: the kind of a document may be a list.
_OTHER_KINDS: Final = (config.KIND, catalogue.KIND)


class PolicyExample(Struct, frozen=True):
    """An example in a policy document, with its location.

    Attributes:
        document: the policy document.
        path: the field of the example in the document.
        example: the objects of the example.
    """

    document: Document
    path: Path
    example: Example

    @property
    def objects(self) -> Iterator[tuple[Path, Json]]:
        """The objects of the example, each with its field in the document; the last one is evaluated."""
        objects = self.example.objects
        is_list = isinstance(Field(self.document.value)[self.path].value, list)
        yield from (((*self.path, index) if is_list else self.path, value) for index, value in enumerate(objects))


class PolicyDocumentError(GpugateError):
    """A file of policies is refused; the text begins with file, line and column, and `message` does not."""

    def __init__(self, source: str, line: int, column: int, message: str) -> None:
        super().__init__(f"{source}:{line}:{column}: {message}")
        self.line = line
        self.column = column
        self.message = message


def read_policies(source: str, data: bytes, family: str = "") -> list[Policy]:
    """Return the policies in the bytes of a file; none if the file contains no policy document.

    Every document of a file with a policy must be a policy.

    Args:
        source: the name of the file, for errors.
        data: the content of the file.
        family: what the ids must begin with; empty for any organisation.

    Raises:
        PolicyDocumentError: a document is not YAML, not a policy, or an expression in it is invalid.
    """
    documents = _documents(source, data)
    try:
        policies = load_documents((document.value for document in documents), source)
        for index, policy in enumerate(policies):
            _refuse_family(source, index, policy.id, family)
    except DocumentError as error:
        raise _located(source, documents, error) from None
    return policies


def read_examples(source: str, data: bytes) -> list[PolicyExample]:
    """Return the examples of the policies in the bytes of a file, the allowed ones of each policy first.

    A file that is not YAML has no examples: what loads the policies reports the file.

    Raises:
        PolicyDocumentError: a document is not a valid policy. Expressions are not checked.
    """
    try:
        documents = _documents(source, data)
    except PolicyDocumentError:
        return []
    examples: list[PolicyExample] = []
    for document in documents:
        try:
            read = examples_of(document.value)
        except ConfigError as error:
            refused = DocumentError(source, 0, error)
            raise _located(source, [document], refused) from None
        for is_allowed, key in ((True, "allowed"), (False, "denied")):
            group = [example for example in read if example.allowed is is_allowed]
            examples += [
                PolicyExample(document, ("examples", key, index), example) for index, example in enumerate(group)
            ]
    return examples


def _documents(source: str, data: bytes) -> list[Document]:
    """Return the documents of a file if one is a policy, else an empty list.

    Files that do not mention the group are not parsed. A file that mentions the group and is not YAML may be a policy.

    Raises:
        PolicyDocumentError: a document is not YAML.
    """
    if _GROUP not in data.decode(encoding(data), "replace"):
        return []
    documents: list[Document] = []
    for document in read_bytes(source, data):
        if isinstance(document, Document):
            documents.append(document)
        elif not document.warning:
            message = f"{document.message}: {document.remedy}"
            raise PolicyDocumentError(source, document.line, document.column, message)
    return documents if any(_is_policy(document.value) for document in documents) else []


def _is_policy(value: Json) -> bool:
    """Tell whether a document is meant as a policy: also one with another version or a misspelt kind."""
    if not isinstance(value, dict):
        return False
    version = value.get("apiVersion")
    return isinstance(version, str) and version.startswith(_GROUP) and value.get("kind") not in _OTHER_KINDS


def _refuse_family(source: str, index: int, policy_id: str, family: str) -> None:
    organisation, _, name = policy_id.partition("/")
    if family and organisation != family:
        message = f"must begin with `{family}/`, after the folder of the file: write {family}/{name}, or move the file"
        raise DocumentError(source, index, ConfigError(("id",), message))


def _located(source: str, documents: Sequence[Document], error: DocumentError) -> PolicyDocumentError:
    line, column = _location(documents, error)
    field = f"{render(error.path)}: " if error.path else ""
    return PolicyDocumentError(source, line, column, f"{field}{error.message}")


def _location(documents: Sequence[Document], error: DocumentError) -> tuple[int, int]:
    """Return line and column, from 1, of an error: of the character in a block of text, else of the field."""
    document = documents[error.document]
    positions = Positions(document)
    block = None if error.at is None else positions.block(error.path)
    if block is None or error.at is None:
        span = positions.find(error.path)
        return span.line, span.column
    first, indent = block
    before = _text_at(document, error)[: error.at]
    return first + before.count("\n"), indent + len(before) - before.rfind("\n")


def _text_at(document: Document, error: DocumentError) -> str:
    value = document.value
    for part in error.path:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
    return value if isinstance(value, str) else ""
