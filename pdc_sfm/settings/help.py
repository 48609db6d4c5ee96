"""The text of `--help` and `--settings`, generated from the dataclasses of the settings.

The meaning of a setting is the comment of its field: the lines directly above it, then what stands behind it. Defaults are
written as a `key=value` word takes them (null, true, 1,2).
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import io
import re
import textwrap
import tokenize
import types
import typing
from collections.abc import Iterator
from typing import Any

INDENT, KEYS = 2, 34  # columns before a key, and up to its meaning


@dataclasses.dataclass(frozen=True)
class Described:
    """One setting, or a group of them."""

    key: str  # with dots
    kind: str  # its type; empty for a group
    default: str  # as a `key=value` word takes it; empty for a group
    meaning: str
    inner: tuple[Described, ...] = ()  # the settings of a group

    def each(self) -> Iterator[Described]:
        """The setting itself, or all of its group, in depth."""
        if not self.kind:
            for setting in self.inner:
                yield from setting.each()
        else:
            yield self


def describe(settings: Any, prefix: str = "") -> tuple[Described, ...]:
    """The fields of a settings object, whose values are the defaults to show."""
    cls: type = type(settings)
    hints = typing.get_type_hints(cls, include_extras=True)
    meanings = field_comments(cls)
    found = []
    for field in dataclasses.fields(settings):
        key, value = prefix + field.name, getattr(settings, field.name)
        meaning = meanings.get(field.name, "")
        if dataclasses.is_dataclass(value):
            meaning = meaning or summary(type(value))
            found.append(Described(key, "", "", meaning, describe(value, f"{key}.")))
        else:
            found.append(Described(key, kind_of(hints[field.name]), as_word(value), meaning))
    return tuple(found)


def summary(cls: type) -> str:
    """The first sentence of a docstring."""
    return re.split(r"\. (?=[A-Z`])", " ".join((inspect.getdoc(cls) or "").split()))[0].rstrip(".")


@functools.cache
def field_comments(cls: type) -> dict[str, str]:
    """The comments of a dataclass's fields, also of those it inherits. Without source files there are none."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except (OSError, TypeError):
            continue
        comments = {
            token.start[0]: (token.string.lstrip("# "), token.line.lstrip().startswith("#"))
            for token in tokenize.generate_tokens(io.StringIO(source).readline)
            if token.type == tokenize.COMMENT
        }
        body = typing.cast(ast.ClassDef, ast.parse(source).body[0]).body
        for node in body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                first = node.lineno
                while comments.get(first - 1, ("", False))[1]:
                    first -= 1
                lines = range(first, (node.end_lineno or node.lineno) + 1)
                found[node.target.id] = " ".join(comments[line][0] for line in lines if line in comments)
    return found


def kind_of(hint: Any) -> str:
    """A field's type in a user's words."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("null" if option is type(None) else kind_of(option) for option in options)
    if origin is typing.Literal:
        return "|".join(map(str, options))
    if origin is typing.Annotated:  # a name, and a function that lists the known ones
        return "|".join(options[1]())
    if origin is tuple:
        inner = [
            kind_of(option) if typing.get_origin(option) is not tuple else f"[{kind_of(option)}]"
            for option in options[:-1]
        ]
        last = "..." if options[-1] is Ellipsis else kind_of(options[-1])
        return ",".join([*inner, last])
    return {str: "text", bool: "true|false", int: "integer", float: "number"}.get(
        hint, getattr(hint, "__name__", str(hint))
    )


def as_word(value: Any, nested: bool = False) -> str:
    """A value as a `key=value` word takes it."""
    if isinstance(value, tuple):
        if not nested and value and not isinstance(value[0], tuple):
            return ",".join(map(as_word, value))
        return f"[{','.join(as_word(item, nested=True) for item in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def short_table(settings: tuple[Described, ...], width: int = 120) -> str:
    """A line for each setting, and one for each group that names what is in it."""
    rows = []
    for setting in settings:
        if setting.kind:
            rows.append(_row(setting, width))
        else:
            names = ", ".join(inner.key.rsplit(".", 1)[-1] + ("" if inner.kind else ".*") for inner in setting.inner)
            rows.append(_lines(f"{setting.key}.*", f"{setting.meaning}: {names}", width))
    return "\n".join(rows)


def full_table(settings: tuple[Described, ...], width: int = 120) -> str:
    """Every setting with its default, its type and its meaning."""
    return "\n".join(_row(setting, width) for group in settings for setting in group.each())


def _row(setting: Described, width: int) -> str:
    return _lines(f"{setting.key}={setting.default}", f"({setting.kind}) {setting.meaning}", width)


def _lines(left: str, right: str, width: int) -> str:
    """A key, and beside it its meaning in as many lines as that takes."""
    left = " " * INDENT + left
    first = left.ljust(KEYS) if len(left) < KEYS else f"{left}  "
    blank = " " * KEYS
    return textwrap.fill(
        right,
        max(width, KEYS + 30),
        initial_indent=first,
        subsequent_indent=blank,
        break_long_words=False,
        break_on_hyphens=False,  # --features-ref is one word
    )
