"""`pdc-sfm map`: pairs chosen by the folder's size, a plan before large ones, doubts at the end, and clear lines."""

import json
import shutil

import pytest
from fake_network import FakeNetwork
from PIL import Image
from projections import exact_matcher, make_scene, write_images

from pdc_sfm.cli import main
from pdc_sfm.demo import PhotographSettings, run_photographs
from pdc_sfm.demo.photograph_pairs import choose_pairs
from pdc_sfm.demo.plan import MapPlan, Pace, make_plan
from pdc_sfm.retrieval import RetrievalSettings

NAMES = [f"{k}.png" for k in range(6)]
QUIET = {"report": False, "retrieve": RetrievalSettings(min_side=64)}


@pytest.fixture
def scene(tmp_path):
    made = make_scene(NAMES, points=500)
    write_images(made, tmp_path / "photos")
    return made


def exact_engine(monkeypatch, scene):
    monkeypatch.setattr("pdc_sfm.demo.photographs.engine_matcher", lambda settings, masks: exact_matcher(scene))


def test_sixty_photographs_are_matched_all_with_all_and_not_more(tmp_path):
    names = [f"{k:03d}.jpg" for k in range(61)]
    settings, asked = PhotographSettings(), []

    def find():
        asked.append(1)
        return [(names[0], names[40]), (names[40], names[0])]

    pairs, said = choose_pairs(tmp_path, names[:60], settings, find)
    assert (len(pairs), len(asked), said) == (60 * 59 // 2, 0, "all 1770 pairs of 60 images")
    pairs, said = choose_pairs(tmp_path, names, settings, find)
    neighbors = 5 * 61 - 15  # the last five have fewer
    assert len(pairs) == 1 + neighbors
    assert (names[0], names[40]) in pairs
    assert said == f"{1 + neighbors} pairs of 61 images: 1 by retrieval, {neighbors} more by name"


def test_photographs_of_one_hour_and_one_place_are_paired(tmp_path):
    names = ["a/0.jpg", "b/0.jpg", "c/0.jpg", "d/0.jpg"]  # each in a folder of its own: names say nothing
    for k, name in enumerate(names):
        exif = Image.Exif()
        if k < 2:
            exif.get_ifd(0x8769)[0x9003] = f"2024:05:01 12:00:0{k}"
        else:
            exif.get_ifd(0x8825).update({1: "N", 2: (50, 0, k), 3: "E", 4: (6, 0, 0)})
        (tmp_path / name).parent.mkdir()
        Image.new("RGB", (16, 16)).save(tmp_path / name, exif=exif)
    pairs, said = choose_pairs(tmp_path, names, PhotographSettings(exhaustive=2), lambda: [(names[0], names[3])])
    assert {frozenset(pair) for pair in pairs} == {
        frozenset(pair) for pair in ((names[0], names[3]), (names[0], names[1]), (names[2], names[3]))
    }
    assert said == "3 pairs of 4 images: 1 by retrieval, 1 more by time, 1 more by GPS"


def test_the_command_maps_and_goes_on(scene, tmp_path, monkeypatch, capsys):
    exact_engine(monkeypatch, scene)
    words = ["map", str(tmp_path / "photos"), "--output", str(tmp_path / "out"), "report=false"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "6/6" in out
    assert f"results: {tmp_path / 'out'}" in out
    monkeypatch.setattr("pdc_sfm.demo.photographs.engine_matcher", lambda settings, masks: None)  # is not asked again
    assert main(words) == 0
    shutil.copytree(tmp_path / "photos", tmp_path / "queries")
    from pdc_sfm.demo.queries import open_map

    assert open_map(tmp_path / "out").model == tmp_path / "out" / "sfm"  # which `localize --map` takes


def test_doubts_are_said_at_the_end_and_fail_the_strict(scene, tmp_path, monkeypatch, capsys):
    exact_engine(monkeypatch, scene)
    words = ["map", str(tmp_path / "photos"), "--output", str(tmp_path / "out"), "report=false"]
    assert main([*words, "--strict"]) == 0
    summary = json.loads((tmp_path / "out" / "sfm" / "summary.json").read_text())
    summary["verdict"] = {"kind": "doubtful", "reasons": ["the moon is in it"]}
    (tmp_path / "out" / "sfm" / "summary.json").write_text(json.dumps(summary))
    capsys.readouterr()
    assert main(words) == 0
    lines = capsys.readouterr().err.strip().split("\n")
    assert lines[-2] == "doubtful: the moon is in it"
    assert "DOUBTFUL" in lines[-1]
    assert main([*words, "--strict"]) == 1


def test_the_earlier_spelling_works_and_names_the_new_one(scene, tmp_path, monkeypatch, capsys):
    exact_engine(monkeypatch, scene)
    words = ["demo", "--images", str(tmp_path / "photos"), "--output", str(tmp_path / "out"), "report=false"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "6/6" in said.out
    assert f"is now `pdc-sfm map {tmp_path / 'photos'} --output {tmp_path / 'out'}`" in said.err


@pytest.mark.parametrize(("count", "word"), [(0, "no images"), (1, "one image"), (2, "two images")])
def test_folders_with_too_few_photographs(scene, tmp_path, capsys, count, word):
    for name in NAMES[count:]:
        (tmp_path / "photos" / name).unlink()
    assert main(["map", str(tmp_path / "photos"), "--output", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.strip().split("\n")
    assert f"photos holds {word}: a map needs at least three overlapping photographs" in line
    assert not (tmp_path / "out" / "images").exists()


def test_a_plan_of_ten_thousand_images_has_hours_and_gigabytes(tmp_path):
    names = [f"{k}.jpg" for k in range(10_000)]
    plan = make_plan(names, tmp_path / "not" / "there", PhotographSettings(), Pace(encode=0.5, pair=0.36))
    assert plan.pairs == 10_000 * (20 + 2 * 5 + 10)
    # 400,000 pairs and half of 200,000 looked at in retrieval at 0.36 s, 10,000 images encoded for both at 0.5 s
    assert plan.hours == pytest.approx((500_000 * 0.36 + 10_000) / 3600)
    assert plan.gigabytes == pytest.approx(1.5 * 20 * 10_000 * 400_000 / 1e9)
    assert "10,000 images, up to 400,000 pairs, about 2.2 days of matching" in str(MapPlan(**{**vars(plan), "free": 0}))
    assert "make room, or set retrieved, neighbors and near lower" in str(MapPlan(**{**vars(plan), "free": 10**9}))
    assert "make room" not in str(MapPlan(**{**vars(plan), "free": 10**12}))
    assert make_plan(names[:60], tmp_path, PhotographSettings(), Pace(1, 1)).pairs == 60 * 59 // 2


def test_a_plan_alone_writes_nothing(scene, tmp_path, capsys):
    words = ["map", str(tmp_path / "photos"), "--output", str(tmp_path / "out"), "--plan", "match.dense.min_side=64"]
    assert main(words) == 0
    assert capsys.readouterr().out.startswith("plan: 6 images, up to 15 pairs, about ")
    assert not (tmp_path / "out").exists()


def test_a_large_folder_says_its_plan_before_it_begins(scene, tmp_path, monkeypatch, said):
    exact_engine(monkeypatch, scene)
    monkeypatch.setattr("pdc_sfm.demo.photographs.measure_pace", lambda *given: Pace(1.0, 2.0))
    settings = PhotographSettings(exhaustive=4, retrieved=4, **QUIET)
    run_photographs(tmp_path / "photos", tmp_path / "run", settings, network=FakeNetwork())
    lines = said()
    plan = next(k for k, line in enumerate(lines) if line.startswith("plan: 6 images"))
    assert plan < next(k for k, line in enumerate(lines) if line.startswith("pairs "))
    run_photographs(tmp_path / "photos", tmp_path / "run", settings, network=FakeNetwork())
    assert not [line for line in said() if line.startswith("plan:")]  # it is matched
