"""Settings, whatever is written: taken as written or refused, never a traceback, never another value."""

import dataclasses
from pathlib import Path
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from odd_input import damaged_text, examples, lines_of, names, refused_or

from pdc_sfm.engine.cache import parse_bytes
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.errors import SettingsError, UserError
from pdc_sfm.settings import load_settings, to_dict

GOOD = "rate: 2\nname: x\nkind: b\nlimit: 5\non: true\npair: [3, 4]\nwhere: a/b\ninner:\n  size: 7\n  shares: [0.5, 1e-3]\n"
ODD = ["0o7", "007", "0123", "0x10", "12:30", "1_000", "2026-02-31", "2026-01-01", "yes", "~", "null", "1.10", "1e400", "9" * 400,
       "{a: 1}", "[1, 2", "&a [*a]", "!!binary x", "!!python/name:os.system", "a: b", "- a", "*a", "<<: 1", "%", "`", "\t"
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Inner:
    size: int = 4
    shares: tuple[float, ...] = (0.5, 0.5)


@dataclasses.dataclass(frozen=True)
class Outer:
    rate: float = 0.1
    name: str = "plain"
    maybe: str | None = None
    kind: Literal["a", "b"] = "a"
    limit: int | None = None
    on: bool = False
    pair: tuple[int, int] = (1, 2)
    where: Path = Path(".")
    inner: Inner = dataclasses.field(default_factory=Inner)


def is_sound(settings):
    """Every field has the type it was declared with."""
    assert isinstance(settings.rate, float)
    assert settings.rate == settings.rate
    assert isinstance(settings.name, str)
    assert isinstance(settings.maybe, str | None)
    assert settings.kind in ("a", "b")
    assert isinstance(settings.limit, int | None)
    assert isinstance(settings.on, bool)
    assert [type(n) for n in settings.pair] == [int, int]
    assert all(isinstance(share, float) for share in settings.inner.shares)


@examples(80)
@given(names(*ODD))
def test_a_word_of_text_is_that_text(text):
    assert load_settings(Outer, None, [f"name={text}"]).name in (text, text[1:-1])
    assert load_settings(Outer, None, ["name=''"]).name == ""


@pytest.mark.parametrize("text", ODD)
def test_text_that_yaml_takes_for_something_else_stays_text(text):
    assert load_settings(Outer, None, [f"name={text}"]).name == text
    assert load_settings(Outer, None, [f"maybe={text}"]).maybe == (None if text in ("~", "null") else text)


@examples(120)
@given(
    st.sampled_from([*to_dict(Outer()), "inner.size", "inner.shares", "pair.x", "..", "inner.", ".rate"]), names(*ODD)
)
def test_any_word_is_taken_soundly_or_refused(key, text):
    settings = refused_or(lambda: load_settings(Outer, None, [f"{key}={text}"]))
    if settings is not None:
        is_sound(settings)


@examples(120)
@given(st.one_of(damaged_text(GOOD), st.text(max_size=40), st.sampled_from(ODD).map("rate: ".__add__)))
def test_any_file_is_taken_soundly_or_refused(tmp_path, text):
    settings = refused_or(lambda: load_settings(Outer, lines_of(tmp_path / "a.yaml", text)))
    if settings is not None:
        is_sound(settings)


@examples(60)
@given(st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20), st.none() | st.text(), st.integers())
def test_what_is_written_is_read_again(tmp_path, rate, name, maybe, limit):
    settings = Outer(rate, name, maybe, "b", limit, True, (3, -4), Path("a b/c"))
    path = tmp_path / "a.yaml"
    path.write_text(yaml.safe_dump(to_dict(settings), allow_unicode=True), encoding="utf-8", newline="")
    try:
        assert load_settings(Outer, path) == settings
    except SettingsError:  # control characters and the like, which YAML cannot hold
        assert not (settings.name + (settings.maybe or "")).isprintable()


@pytest.mark.parametrize(
    "text", ["name: 1.10", "name: yes", "limit: 010", "limit: 1_000", "pair: 12:30", "rate: 2026-02-31"]
)
def test_a_value_that_is_easily_misread_is_refused(tmp_path, text):
    with pytest.raises(SettingsError, match=r"is not possible|takes"):
        load_settings(Outer, lines_of(tmp_path / "a.yaml", text))


@pytest.mark.parametrize("text", ["a: &x [*x]", "rate: &x {b: *x}", "? [1, 2]\n: 3", "[" * 1000, "rate: " + "9" * 5000])
def test_a_file_that_would_never_end_is_refused(tmp_path, text):
    with pytest.raises(SettingsError):
        load_settings(Outer, lines_of(tmp_path / "a.yaml", text))


@examples(100)
@given(names("8GB", "1.5 GiB", "0", "-1", "1e9", "9" * 400, "∞", "1IB"))
def test_memory_is_a_size_or_refused(text):
    size = refused_or(lambda: parse_bytes(text))
    assert size is None or size >= 0


@pytest.mark.parametrize("output", ["../a", "/a", "a/b", "", "..", ".", "a\0b", "a\nb"])
def test_no_name_of_the_output_leads_elsewhere(output):
    with pytest.raises(UserError, match="output="):
        MatchingSettings(output=output)
