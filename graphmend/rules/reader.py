"""Reads YAML against a shape: plain values, with the place of each, or an error that names file, line and column.

The text is composed into nodes and never constructed into objects, so no tag can run code. Tags, anchors and keys that
the shape does not know are errors.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from graphmend.errors import PackError, did_you_mean
from graphmend.rules.schema import Following, Free, ListOf, Record, Shape, Text, Truth

Path = tuple[str | int, ...]
"""The way from the top of a document to a value: keys and indices."""

_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_KINDS = {f"{_TAG}{kind}" for kind in ("str", "int", "float", "bool", "null", "map", "seq", "merge", "timestamp")}


class Document:
    """A YAML document that has a shape.

    Arguments:
        text: the YAML.
        path: its file, for errors.
        shape: what it must look like.

    Attributes:
        value: dictionaries, lists, strings, numbers and truth values.

    Raises:
        PackError: the text is no YAML or has another shape.
    """

    def __init__(self, text: str, path: str, shape: Shape) -> None:
        self.path = path
        self._marks: dict[Path, tuple[int, int]] = {}
        self._seen: set[int] = set()
        node = self._compose(text)
        if node is None:
            hint = "a pack has a top-level `rules:` list"
            raise PackError("the file is empty", path=path, line=1, column=1, hint=hint)
        self.value: Any = self._read(node, shape, (), "the pack")

    def error(self, at: Path, message: str, hint: str = "") -> PackError:
        """Returns an error at the place of a value, or of the nearest value around it."""
        while at not in self._marks:
            at = at[:-1]
        line, column = self._marks[at]
        return PackError(message, path=self.path, line=line, column=column, hint=hint)

    def line(self, at: Path) -> int:
        """The line of a value, 1-based."""
        return self._marks[at][0]

    def _compose(self, text: str) -> yaml.Node | None:
        try:
            node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise PackError(
                f"broken YAML: {error.problem or error.context}",
                path=self.path,
                line=mark.line + 1 if mark else None,
                column=mark.column + 1 if mark else None,
            ) from None
        except RecursionError:
            raise PackError("broken YAML: nested too deeply", path=self.path) from None
        except yaml.YAMLError as error:
            raise PackError(f"broken YAML: {' '.join(str(error).split())}", path=self.path) from None
        return node

    def _read(self, node: yaml.Node, shape: Shape, at: Path, what: str) -> Any:
        self._marks[at] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if node.tag not in _KINDS:
            tag = node.tag.removeprefix(_TAG)
            raise self.error(at, f"the tag `{tag}` is not allowed", "a pack holds plain values only")
        if not isinstance(node, yaml.ScalarNode):
            if id(node) in self._seen:
                raise self.error(at, "anchors and aliases are not supported", "write the value out")
            self._seen.add(id(node))
        match shape:
            case Text():
                return self._text(node, shape, at, what)
            case Truth():
                return self._truth(node, at, what)
            case ListOf():
                return self._list(node, shape, at, what)
            case Record():
                return self._record(node, shape, at, what)
            case Free():
                return self._free(node, shape, at, what)
            case Following():
                raise AssertionError("a shape that is only known where its mapping is read")

    def _text(self, node: yaml.Node, shape: Text, at: Path, what: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or node.tag != f"{_TAG}str":
            raise self.error(at, f"{what} must be a string, not {_describe(node)}", _quote_hint(node))
        text: str = node.value
        if shape.choices and text not in shape.choices:
            hint = did_you_mean(text, shape.choices) or f"one of {', '.join(shape.choices)}"
            raise self.error(at, f"{what}: unknown value `{text}`", hint)
        if shape.pattern and re.fullmatch(shape.pattern, text) is None:
            raise self.error(at, f"{what}: `{text}` is not {shape.what}")
        if not text.strip():
            raise self.error(at, f"{what} is empty")
        return text

    def _truth(self, node: yaml.Node, at: Path, what: str) -> bool:
        if not isinstance(node, yaml.ScalarNode) or node.tag != f"{_TAG}bool":
            raise self.error(at, f"{what} must be true or false, not {_describe(node)}")
        return bool(yaml.SafeLoader("").construct_yaml_bool(node))

    def _list(self, node: yaml.Node, shape: ListOf, at: Path, what: str) -> list[Any]:
        if not isinstance(node, yaml.SequenceNode):
            if shape.or_single:
                return [self._read(node, shape.item, (*at, 0), what)]
            raise self.error(at, f"{what} must be a list, not {_describe(node)}")
        if not node.value:
            raise self.error(at, f"{what}: the list is empty")
        return [self._read(item, shape.item, (*at, index), what) for index, item in enumerate(node.value)]

    def _record(self, node: yaml.Node, shape: Record, at: Path, what: str) -> dict[str, Any]:
        what = shape.called or what
        result: dict[str, Any] = {}
        following: list[tuple[str, yaml.Node, Following]] = []
        for key, child in self._items(node, at, what):
            if key not in shape.fields:
                hint = did_you_mean(key, shape.fields) or f"known keys: {', '.join(shape.fields)}"
                raise self.error((*at, key), f"unknown key `{key}`", hint)
            each = shape.fields[key].shape
            if isinstance(each, Following):
                following.append((key, child, each))
            else:
                result[key] = self._read(child, each, (*at, key), f"`{key}`")
        for key, child, rule in following:
            result[key] = self._read(child, self._followed(key, rule, result, at), (*at, key), f"`{key}`")
        if shape.named_by in result:
            what = f"{what} `{result[shape.named_by]}`"
        for key, field in shape.fields.items():
            if field.required and key not in result:
                raise self.error(at, f"{what} lacks the key `{key}`")
        present = [key for key in shape.one_of if key in result]
        wanted = " or ".join(f"`{key}`" for key in shape.one_of)
        if shape.one_of and not present:
            raise self.error(at, f"{what} needs {wanted}")
        if len(present) > 1 and not shape.several:
            raise self.error((*at, present[1]), f"{what} takes only one of {wanted}")
        return result

    def _followed(self, key: str, shape: Following, values: dict[str, Any], at: Path) -> Record:
        """The shape of the key ``key``, which another key decides."""
        if shape.key not in values:
            raise self.error((*at, key), f"`{key}` needs a `{shape.key}`")
        value = values[shape.key]
        if value not in shape.shapes:
            raise self.error((*at, key), f"the {shape.key} `{value}` takes nothing in `{key}`")
        return shape.shapes[value]

    def _free(self, node: yaml.Node, shape: Free, at: Path, what: str) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, child in self._items(node, at, what):
            if re.fullmatch(shape.keys, key) is None:
                raise self.error((*at, key), f"{what}: `{key}` is not {shape.what}")
            result[key] = self._read(child, shape.value, (*at, key), f"`{key}`")
        if not result:
            raise self.error(at, f"{what} is empty")
        return result

    def _items(self, node: yaml.Node, at: Path, what: str) -> list[tuple[str, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise self.error(at, f"{what} must be a mapping, not {_describe(node)}")
        result: list[tuple[str, yaml.Node]] = []
        for key_node, child in node.value:
            mark = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None or key in (name for name, _ in result):
                here = (*at, "?")
                self._marks[here] = mark
                message = "a key must be a string" if key is None else f"the key `{key}` occurs twice"
                raise self.error(here, message)
            here = (*at, key)
            self._marks[here] = mark
            result.append((key, child))
        return result


def _describe(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "nothing" if node.tag == f"{_TAG}null" else f"`{node.value}`"


def _quote_hint(node: yaml.Node) -> str:
    plain = isinstance(node, yaml.ScalarNode) and node.tag != f"{_TAG}null"
    return "put it in quotes" if plain else ""
