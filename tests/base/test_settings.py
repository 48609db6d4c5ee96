"""Settings: defaults, YAML, words; every mistake is named."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Literal

import pytest

from pdc_sfm.errors import SettingsError
from pdc_sfm.settings import differences, from_dict, load_settings, require, to_dict


@dataclass(frozen=True)
class Inner:
    size: int = 4
    shares: tuple[float, ...] = (0.5, 0.5)


@dataclass(frozen=True)
class Outer:
    rate: float = 0.1
    name: str = "plain"
    kind: Literal["a", "b"] = "a"
    limit: int | None = None
    on: bool = False
    pair: tuple[int, int] = (1, 2)
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self):
        require(self.rate > 0, f"rate={self.rate} must be positive")


def test_words_override_the_file_and_the_file_the_defaults(tmp_path):
    (tmp_path / "a.yaml").write_text("rate: 2\ninner:\n  size: 7\n")
    settings = load_settings(Outer, tmp_path / "a.yaml", ["rate=1e-4", "inner.shares=0.2,0.8", "on=true", "limit=3"])
    assert settings == Outer(rate=1e-4, limit=3, on=True, inner=Inner(size=7, shares=(0.2, 0.8)))


def test_settings_survive_a_round_trip():
    settings = Outer(kind="b", inner=Inner(shares=(1.0,)))
    assert from_dict(Outer, to_dict(settings)) == settings


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("ratee=1", "unknown setting ratee: did you mean rate"),
        ("inner.siz=1", r"unknown setting inner\.siz: did you mean size"),
        ("rate", "not a setting: write key=value"),
        ("=3", "not a setting"),
        ("rate=fast", "rate=fast is not possible: it takes float"),
        ("rate=nan", "rate=nan is not possible"),
        ("rate=-1", "rate=-1.0 must be positive"),
        ("inner.size=2.5", r"inner\.size=2\.5 is not possible: it takes int"),
        ("inner.size=true", "is not possible"),
        ("kind=c", "choose from a, b"),
        ("on=1", "on=1 is not possible"),
        ("pair=1,2,3", "pair takes 2 values, not 3"),
        ("inner=3", "takes a group of settings"),
    ],
)
def test_a_wrong_word_is_named(word, message):
    with pytest.raises(SettingsError, match=message):
        load_settings(Outer, None, [word])


@pytest.mark.parametrize("text", ["- 1\n- 2\n", "rate: [", "just words", "\x00"])
def test_a_bad_file_is_named(tmp_path, text):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(SettingsError, match=r"bad\.yaml"):
        load_settings(Outer, tmp_path / "bad.yaml")


def test_a_key_that_stands_twice_in_a_file_is_refused(tmp_path):
    """YAML itself takes the last one, and the user never hears that the other was lost."""
    (tmp_path / "a.yaml").write_text("inner:\n  size: 2\n  size: 3\n")
    with pytest.raises(SettingsError, match="`size` stands there twice"):
        load_settings(Outer, tmp_path / "a.yaml")


def test_yaml_cannot_make_objects(tmp_path):
    (tmp_path / "a.yaml").write_text("name: !!python/object/apply:os.system ['touch it_ran']\n")
    with pytest.raises(SettingsError, match="not valid YAML"):
        load_settings(Outer, tmp_path / "a.yaml")


def test_differences_name_what_changed():
    assert differences(to_dict(Outer()), to_dict(Outer(rate=2.0, inner=Inner(size=5)))) == [
        "inner.size: 4 -> 5",
        "rate: 0.1 -> 2.0",
    ]


@pytest.mark.parametrize(
    ("target", "word", "today"),
    [
        ("pdc_sfm.matches.select:SelectSettings", "confidence=p_r", "confidence=probability"),
        ("pdc_sfm.engine.run:MatchingSettings", "select.confidence=p_r", "confidence=probability"),
        ("pdc_sfm.engine.run:MatchingSettings", "anchors=snap", "keypoints=flow"),
        ("pdc_sfm.colmap.mapping.reconstruction:ReconstructionSettings", "sharpen=false", "refine_keypoints"),
        ("pdc_sfm.colmap.mapping.reconstruction:ReconstructionSettings", "weak_pairs=0.5", "min_support_ratio"),
    ],
)
def test_an_old_word_works_and_names_the_new_one(target, word, today, caplog):
    module, _, name = target.partition(":")
    cls = getattr(importlib.import_module(module), name)
    before, equals, value = word.partition("=")
    new = f"{before.rpartition('.')[0]}.{today}".lstrip(".")
    assert load_settings(cls, None, [word]) == load_settings(cls, None, [new if "=" in today else f"{new}={value}"])
    assert f"is now called {today}:" in caplog.text


@dataclass(frozen=True)
class Lens:
    kind: str = "round"
    zoom: float = 1.0


@dataclass(frozen=True)
class Body:
    lens: Lens = field(default_factory=Lens)
    weight: int = 3


@dataclass(frozen=True)
class Shop:
    body: Body = field(default_factory=Body)
    spare: Lens = field(default_factory=Lens)


def test_outer_groups_may_be_left_out():
    assert load_settings(Shop, overrides=["lens.zoom=2"]) == Shop(body=Body(Lens(zoom=2.0)))


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("zoom=2", "write spare.zoom or body.lens.zoom"),
        ("weight=2", "write body.weight"),
        ("lens.size=2", "known: body, spare"),
    ],
)
def test_a_name_that_says_too_little_is_an_error_that_says_more(word, hint):
    with pytest.raises(SettingsError, match=hint):
        load_settings(Shop, overrides=[word])
