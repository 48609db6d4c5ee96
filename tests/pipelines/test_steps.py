"""Steps are repeated for what changes their result, and only what other settings made is removed for it."""

import dataclasses
import shutil

import pytest
from fake_matcher import FakeMatcher, write_images, write_list

from pdc_sfm.aachen.dataset import AachenDataset, describe_dataset
from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.errors import OtherSettingsError, SettingsError, UserError
from pdc_sfm.keypoints.extraction import made_with
from pdc_sfm.keypoints.types import KeypointSettings
from pdc_sfm.pipeline.matching import describe, describe_matching
from pdc_sfm.pipeline.steps import Steps
from pdc_sfm.retrieval import RetrievalSettings
from pdc_sfm.settings import load_settings
from pdc_sfm.store.journal import RawStore


class Matching:
    """The step of matching a list, in a folder."""

    def __init__(self, tmp_path):
        self.folder, self.pairs = tmp_path / "run", tmp_path / "pairs.txt"
        self.images = tmp_path / "images"
        write_list(self.pairs, exhaustive_pairs(write_images(self.images, 4)))
        self.files = [self.folder / "features.h5", self.folder / "matches.h5"]
        self.raw = self.folder / "matches.raw"

    def run(self, *words, fault=None):
        settings = load_settings(MatchingSettings, None, words)
        matcher = _Counting(fault)

        def work():
            features, matches = self.files
            match_pairs(
                self.images, self.pairs, self.folder, settings, features=features, matches=matches, matcher=matcher
            )

        Steps(self.folder).run("matching", describe(settings), self.files, work, [self.raw])
        return matcher.pairs

    def finished(self):
        return len(RawStore(self.raw))


class _Counting(FakeMatcher):
    identity = "FakeMatcher"

    def __init__(self, fault):
        super().__init__()
        self.pairs, self.fault = 0, fault

    def match(self, code0, code1):
        if self.fault is not None and self.pairs == 3:
            raise self.fault
        self.pairs += 1
        return super().match(code0, code1)


@pytest.mark.parametrize(
    "fault", [SettingsError("there is not enough memory"), UserError("x"), OtherSettingsError("y")]
)
def test_an_error_in_the_middle_costs_nothing_that_was_finished(tmp_path, fault):
    matching = Matching(tmp_path)
    with pytest.raises(type(fault)):
        matching.run(fault=fault)
    assert matching.finished() == 3
    assert matching.run() == 3  # the other three


def test_what_other_settings_made_is_made_anew(tmp_path):
    matching = Matching(tmp_path)
    assert matching.run() == 6
    before = matching.files[1].read_bytes()
    assert matching.run("select.threshold=0.2") == 6
    assert matching.run("select.threshold=0.2") == 0
    assert matching.files[1].read_bytes() != before


def test_raw_matches_are_kept_where_only_the_files_made_of_them_are_others(tmp_path):
    matching = Matching(tmp_path)
    matching.run()
    before = [path.read_bytes() for path in matching.files]
    assert matching.run("tracks.cell_size=8") == 0
    assert [path.read_bytes() for path in matching.files] != before


def test_nothing_of_another_step_is_removed(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()

    def work():
        raise OtherSettingsError("made otherwise", precious)

    with pytest.raises(OtherSettingsError):
        Steps(tmp_path).run("step", None, [tmp_path / "out"], work, [tmp_path / "rest"])
    assert precious.is_dir()


SPEED = (
    "device=auto",
    "device=cpu",
    "device=cuda",
    "device=cuda:1",
    "memory=1GB",
    "readers=0",
    "batch=4",
    "engine=ray",
    "ray.workers=7",
    "ray.address=auto",
)


@pytest.mark.parametrize("word", SPEED)
@pytest.mark.parametrize("kind", [MatchingSettings, RetrievalSettings])
def test_what_only_changes_the_speed_repeats_no_step(kind, word):
    assert describe(load_settings(kind, None, [word])) == describe(kind())


@pytest.mark.parametrize("word", ["precision=float16", "weights=FILE", "select.threshold=0.2", "dense.min_side=64"])
def test_what_changes_the_result_does(tmp_path, word):
    (tmp_path / "w").write_bytes(b"weights")
    words = [word.replace("FILE", str(tmp_path / "w")), "device=cuda"]
    assert describe_matching(load_settings(MatchingSettings, None, words), None) != describe_matching(
        MatchingSettings(), None
    )


def test_files_count_by_their_content(tmp_path):
    """Weights and keypoints, copied or moved, are the same; under the same name with other content they are not."""
    first, second = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    first.write_bytes(b"one")
    shutil.copy(first, second)

    def described(path):
        return describe_matching(dataclasses.replace(MatchingSettings(), weights=str(path)), path)

    assert described(first) == described(second)
    before = described(first)
    first.write_bytes(b"other")
    assert described(first) != before


def test_a_dataset_counts_by_its_content(tmp_path):
    def written(root, text="poses"):
        dataset = AachenDataset(root, "1.0")
        for path in (dataset.nvm, dataset.intrinsics, dataset.night_queries):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return describe_dataset(dataset)

    assert written(tmp_path / "here") == written(tmp_path / "there") != written(tmp_path / "here", "other")


def test_weights_of_a_detector_count_by_their_content(tmp_path):
    first, second = tmp_path / "a.pth", tmp_path / "b.pth"
    first.write_bytes(b"one")
    shutil.copy(first, second)

    def described(path, **speed):
        return made_with(KeypointSettings(detector="superpoint", weights=str(path), **speed))

    before = described(first)
    assert before == described(second, engine="ray", device="cuda")
    first.write_bytes(b"other")
    assert described(first) != before
    assert made_with(KeypointSettings())["weights"] is None
