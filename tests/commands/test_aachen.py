"""`pdc-sfm aachen` as a user runs it."""

import shutil

import pytest
from aachen_folder import DATABASE, DAY, NIGHT, exact_matcher, write_dataset
from projections import write_pairs

from pdc_sfm.cli import main
from pdc_sfm.pipeline import matching


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """A dataset folder, and exact matches in place of the network's."""
    scene, dataset = write_dataset(tmp_path / "data", "1.1")
    monkeypatch.setattr(matching, "engine_matcher", lambda settings, keypoints: exact_matcher(scene))
    write_pairs(tmp_path / "retrieval.txt", [(query, image) for query in [*DAY, *NIGHT] for image in DATABASE])
    return dataset


def words(dataset, kind, tmp_path, *more):
    return [
        "aachen",
        kind,
        "--version",
        "1.1",
        "--dataset",
        str(dataset.root),
        "--output",
        str(tmp_path / "out"),
        *more,
    ]


def test_localize_writes_the_file_to_upload(dataset, tmp_path, capsys):
    more = ["--retrieval", str(tmp_path / "retrieval.txt"), "match.select.threshold=0.2", "covisible=3"]
    assert main(words(dataset, "localize", tmp_path, *more)) == 0
    assert "3 of 3 queries localized -> " in capsys.readouterr().out
    assert len((tmp_path / "out" / "Aachen_v1_1_pdcnet_plus.txt").read_text().splitlines()) == 3


def test_challenge_writes_the_file_to_upload(dataset, tmp_path, capsys):
    assert main(words(dataset, "challenge", tmp_path, "method=ours")) == 0
    assert "2 of 2 night queries registered -> " in capsys.readouterr().out
    assert (tmp_path / "out" / "Aachen_v1_1_eval_[ours].txt").exists()


def test_check_says_what_is_missing_line_by_line(dataset, tmp_path, capsys):
    assert main(words(dataset, "challenge", tmp_path, "--check")) == 0
    assert "is complete" in capsys.readouterr().out
    dataset.challenge_database.unlink()
    shutil.rmtree(dataset.root / "queries")
    assert main(words(dataset, "challenge", tmp_path, "--check")) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert lines[0].startswith("missing: night queries: expected at ")
    assert lines[1].startswith("missing: the challenge's database: expected at ")
    assert lines[1].endswith("aachen-day-night)")
    assert lines[2].startswith("pdc-sfm: Aachen 1.1 in ")
    assert "2 missing" in lines[2]
    assert not (tmp_path / "out").exists()


def test_a_mistake_is_one_line(dataset, tmp_path, capsys):
    assert main(words(dataset, "challenge", tmp_path, "metod=x")) == 2
    assert capsys.readouterr().err == "pdc-sfm: unknown setting metod: did you mean method?\n"
    assert main(words(dataset, "localize", tmp_path, "--retrieval", str(tmp_path / "none.txt"))) == 2
    assert "none.txt" in capsys.readouterr().err
