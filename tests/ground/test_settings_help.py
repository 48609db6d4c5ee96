"""What is said of settings comes from their dataclasses: key, type, default, meaning."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from typing import Literal

import pytest

import pdc_sfm
from pdc_sfm.settings import load_settings
from pdc_sfm.settings_help import as_word, describe, field_comments, full_table, kind_of, short_table, summary


@dataclasses.dataclass(frozen=True)
class Inner:
    """How deep (Sec. 3). The rest is not told."""

    depth: float = 0.5  # metres


@dataclasses.dataclass(frozen=True)
class Base:
    count: int = 3  # of things
    name: str | None = None  # null: has none


@dataclasses.dataclass(frozen=True)
class Outer(Base):
    count: int = 4  # of other things
    # A meaning that takes
    # two lines
    kind: Literal["a", "b"] = "a"  # and a third
    sizes: tuple[int, ...] = ()  # of `#` signs
    silent: bool = True
    inner: Inner = dataclasses.field(default_factory=lambda: Inner(depth=2.0))


def settings_classes() -> list[type]:
    """Every dataclass of the package whose name ends in Settings."""
    found = set()
    for module in pkgutil.walk_packages(pdc_sfm.__path__, "pdc_sfm."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, type) and name.endswith("Settings") and dataclasses.is_dataclass(value):
                found.add(value)
    return sorted(found, key=lambda cls: (cls.__module__, cls.__name__))


def test_a_comment_behind_or_above_a_field_is_its_meaning():
    assert field_comments(Outer) == {
        "count": "of other things",
        "name": "null: has none",
        "kind": "A meaning that takes two lines and a third",
        "sizes": "of `#` signs",
        "silent": "",
        "inner": "",
    }


def test_a_group_shows_the_values_it_has_there_and_its_docstring():
    group = describe(Outer())[-1]
    assert (group.key, group.kind, group.meaning) == ("inner", "", "How deep (Sec. 3)")
    assert [(one.key, one.default) for one in group.each()] == [("inner.depth", "2")]


def test_tables_show_key_type_default_and_meaning():
    full = full_table(describe(Outer()), 90).splitlines()
    assert full[0].split() == ["count=4", "(integer)", "of", "other", "things"]
    assert full[1].split() == ["name=null", "(text", "or", "null)", "null:", "has", "none"]
    assert full[-1].split() == ["inner.depth=2", "(number)", "metres"]
    assert max(map(len, full)) <= 90
    assert short_table(describe(Outer())).splitlines()[-1].split(maxsplit=1) == ["inner.*", "How deep (Sec. 3): depth"]


def test_types_are_said_in_a_users_words():
    assert kind_of(tuple[float, ...]) == "number,..."
    assert kind_of(tuple[tuple[int, int], ...]) == "[integer,integer],..."
    assert kind_of(int | None) == "integer or null"
    assert kind_of(Literal["a", 1]) == "a|1"


@pytest.mark.parametrize("cls", settings_classes(), ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_every_setting_of_the_package_says_what_it_means(cls):
    assert summary(cls)
    without = [one.key for group in describe(cls()) for one in group.each() if not one.meaning]
    assert not without, f"put a comment behind these fields of {cls.__name__}: {', '.join(without)}"


@pytest.mark.parametrize("cls", settings_classes(), ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_a_default_as_it_is_shown_is_a_word_that_gives_it(cls):
    for setting in (one for group in describe(cls()) for one in group.each()):
        assert load_settings(cls, None, [f"{setting.key}={setting.default}"]) == cls()


def test_words_of_values():
    assert [as_word(value) for value in (None, True, 0.1, 1e-4, 3, (1, 2), (), ((0, 5),), "cpu")] == [
        "null", "true", "0.1", "0.0001", "3", "1,2", "[]", "[[0,5]]", "cpu",
    ]  # fmt: skip
