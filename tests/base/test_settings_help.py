"""What is said of settings comes from their dataclasses: key, type, default, meaning."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from typing import Literal

import pytest

import pdc_sfm
from pdc_sfm.cli import main
from pdc_sfm.demo.settings import demo_settings
from pdc_sfm.settings import load_settings, preset_path
from pdc_sfm.settings.help import (
    Described,
    as_word,
    describe,
    field_comments,
    full_table,
    kind_of,
    short_table,
    summary,
)
from pdc_sfm.training.settings import TrainSettings


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


# what a verb is given as settings -> the dataclass, or where they are several
VERBS = {
    "pair": ["pdc_sfm.matcher:PairSettings"],
    "match": ["pdc_sfm.engine.run:MatchingSettings"],
    "keypoints": ["pdc_sfm.keypoints.types:KeypointSettings"],
    "retrieve": ["pdc_sfm.retrieval.settings:RetrievalSettings"],
    "reconstruct": ["pdc_sfm.colmap.mapping.reconstruction:ReconstructionSettings"],
    "triangulate": ["pdc_sfm.colmap.mapping.triangulation:TriangulationSettings"],
    "panoramas": ["pdc_sfm.media.panoramas:PanoramaSettings"],
    "localize": ["pdc_sfm.colmap.localization.localize_sfm:LocalizationSettings"],
    "scene": ["pdc_sfm.scenes.settings:SceneSettings", "pdc_sfm.scenes.settings:WorldSettings"],
    "demo": ["pdc_sfm.demo.settings:demo_settings", "pdc_sfm.demo.settings:PhotographSettings"],
    "aachen localize": [
        "pdc_sfm.aachen.localization:AachenSettings",
        "match.pdc_sfm.engine.run:MatchingSettings",
        "retrieve.pdc_sfm.retrieval.settings:RetrievalSettings",
    ],
    "aachen challenge": ["pdc_sfm.aachen.challenge:ChallengeSettings", "match.pdc_sfm.engine.run:MatchingSettings"],
    "evaluate homographies": ["pdc_sfm.evaluation.runs.homographies:HomographySettings"],
    "evaluate homography-pair": ["pdc_sfm.matcher:PairSettings"],
    "evaluate homography-sets": ["pdc_sfm.matcher:PairSettings"],
    "evaluate pairs": ["pdc_sfm.evaluation.runs.pose_pairs:KnownCameraSettings"],
    "evaluate epipolar": ["pdc_sfm.evaluation.runs.pose_pairs:KnownCameraSettings"],
    "evaluate scene": ["pdc_sfm.evaluation.runs.scene_pairs:SceneEvaluationSettings"],
    "evaluate hpatches": ["pdc_sfm.evaluation.runs.mma:MmaSettings"],
    "evaluate yfcc": ["pdc_sfm.evaluation.runs.pose_pairs:PosePairSettings"],
    "train preview": ["pdc_sfm.synthetic.pairs:SyntheticPairSettings"],
}


def expected_settings(target: str) -> tuple[Described, ...]:
    """`prefix.module:name` -> what there is to say of these settings."""
    before, _, path = target.partition("pdc_sfm.")
    module, _, name = f"pdc_sfm.{path}".partition(":")
    return describe(getattr(importlib.import_module(module), name)(), before)


def shown(command: str, option: str, capsys) -> str:
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), option])
    assert stop.value.code == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("command", VERBS)
def test_a_verb_lists_every_setting_with_its_default_and_meaning(command, capsys):
    text = shown(command, "--settings", capsys)
    for target in VERBS[command]:
        for setting in (one for group in expected_settings(target) for one in group.each()):
            assert " ".join(f"{setting.key}={setting.default} ({setting.kind}) {setting.meaning}".split()) in text


@pytest.mark.parametrize("command", VERBS)
def test_help_shows_the_settings_of_a_verb_and_names_those_of_its_groups(command, capsys):
    text = shown(command, "--help", capsys)
    assert f"pdc-sfm {command} --settings" in text
    for target in VERBS[command]:
        for setting in expected_settings(target):
            if "." in setting.key:  # another verb's: its own help says more
                assert setting.key.split(".")[-1] in text
                continue
            assert (f"{setting.key}={setting.default} " if setting.kind else f"{setting.key}.* ") in text
            for inner in setting.inner:
                assert inner.key.split(".")[-1] in text


@pytest.mark.parametrize(("verb", "preset"), [("run", "compact"), ("finetune", "finetune")])
def test_defaults_are_those_of_the_preset_that_a_verb_begins_with(verb, preset, capsys):
    settings = load_settings(TrainSettings, preset_path(preset, "train"))
    assert settings != TrainSettings()
    text = shown(f"train {verb}", "--settings", capsys)
    for setting in (one for group in describe(settings) for one in group.each()):
        assert f" {setting.key}={setting.default} (" in text


def test_defaults_of_a_dataset_are_those_of_its_protocol(capsys):
    assert " dense.max_side=null " in shown("evaluate megadepth", "--settings", capsys)
    assert " dense.max_side=1024 " in shown("evaluate yfcc", "--settings", capsys)


def test_a_file_of_settings_overrides_the_sizes_of_the_demo(tmp_path):
    (tmp_path / "mine.yaml").write_text("scene: {database: 40}")
    settings = demo_settings(tmp_path / "mine.yaml", ["scene.day_queries=2"])
    assert (settings.scene.database, settings.scene.day_queries, settings.scene.night_queries) == (40, 2, 8)
