"""`pdc-sfm map`: pairs chosen by the folder's size, a plan before large ones, doubts at the end, and clear lines."""

import dataclasses
import json
import shutil

import pycolmap
import pytest
from fake_network import FakeNetwork
from PIL import Image
from projections import exact_matcher, make_scene, write_features, write_images, write_matches
from rig_scene import PREFIXES, rig_entry, rig_scene

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.rigs import CameraRig, RigCamera
from pdc_sfm.demo import PhotographSettings, run_photographs
from pdc_sfm.demo.photograph_pairs import choose_pairs
from pdc_sfm.demo.plan import MapPlan, Pace, make_plan, measure_pace
from pdc_sfm.retrieval import RetrievalSettings
from pdc_sfm.store.pair_lists import read_pairs

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
    assert capsys.readouterr().out.splitlines()[-1].startswith("the map is consistent")
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


def test_positions_bring_the_map_into_metres_under_any_name(scene, tmp_path, monkeypatch, capsys):
    (tmp_path / "photos" / "0.png").rename(tmp_path / "photos" / "0 a.png")
    names = {"0_a.png": "0.png"}  # as lists can hold it

    def match(images, pairs, features, matches, fixed=None):
        listed = [tuple(names.get(name, name) for name in pair) for pair in read_pairs(pairs)]
        renamed = {old: new for new, old in names.items()}
        for table in (scene.keypoints, scene.visible, scene.cameras):
            table.update({renamed[name]: table[name] for name in renamed})
        write_features(scene, features, sorted({renamed.get(name, name) for pair in listed for name in pair}))
        write_matches(scene, matches, read_pairs(pairs))

    monkeypatch.setattr("pdc_sfm.demo.photographs.engine_matcher", lambda settings, masks: match)
    lines = ["name,x,y,z"]
    for name, pose in scene.poses.items():
        x, y, z = 10 * (-pose[:, :3].T @ pose[:, 3])
        lines.append(f"{'0 a.png' if name == '0.png' else name},{x},{y},{z}")
    (tmp_path / "xyz.csv").write_text("\n".join(lines))
    words = ["map", str(tmp_path / "photos"), "--output", str(tmp_path / "out"), "report=false"]
    assert main([*words, "--positions", str(tmp_path / "xyz.csv")]) == 0
    assert "in metres, in the given frame: 6 of 6 positions" in capsys.readouterr().err
    model = load_model(tmp_path / "out" / "sfm")
    for image in model.images.values():
        pose = scene.poses[names.get(image.name, image.name)]
        assert image.projection_center() == pytest.approx(10 * (-pose[:, :3].T @ pose[:, 3]), abs=0.3)
    (tmp_path / "xyz.csv").write_text("name,x,y,z\nother.png,1,2,3\n")
    words[3] = str(tmp_path / "another")
    assert main([*words, "--positions", str(tmp_path / "xyz.csv")]) == 2  # before anything is matched
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("xyz.csv names none of the images: it has other.png, expected are names like 0 a.png")


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
    # 400,000 pairs, and 300,000 in retrieval's coarse branch (15 ms of 438) at 0.36 s; 10,000 images at 0.5 s, and small again
    assert plan.hours == pytest.approx((400_000 * 0.36 + 300_000 * 0.034 * 0.36 + 6_250) / 3600)
    assert plan.gigabytes == pytest.approx(2 * 5 * 10_000 * 400_000 / 1e9)
    assert "10,000 images, up to 400,000 pairs, about 42.8 hours of matching" in str(
        MapPlan(**{**vars(plan), "free": 0})
    )
    assert "make room, or set retrieved, neighbors and near lower" in str(MapPlan(**{**vars(plan), "free": 10**9}))
    assert "make room" not in str(MapPlan(**{**vars(plan), "free": 10**12}))
    hundreds = MapPlan(**{**vars(plan), "pairs": 10**7, "free": 123 * 10**9})
    assert f"up to {hundreds.gigabytes:,.0f} GB of disk where 123 GB are free" in str(hundreds)
    assert make_plan(names[:60], tmp_path, PhotographSettings(), Pace(1, 1)).pairs == 60 * 59 // 2


def test_a_plan_is_measured_on_pairs_from_all_over_the_folder(tmp_path, monkeypatch):
    asked, clock = [], [0.0]

    class Matcher:
        """The first pair, for which things are loaded, takes long, and one of the others ten times as long as these."""

        def encode(self, image, name):
            clock[0] += 0.02
            return name

        def match(self, first, second):
            asked.append((first, second))
            clock[0] += {1: 3.0, 5: 0.1}.get(len(asked), 0.01)
            return range(500)

    names = [f"{k:02d}.png" for k in range(9)]
    for name in names:
        Image.new("RGB", (16, 16)).save(tmp_path / name)
    monkeypatch.setattr("pdc_sfm.demo.plan.time.monotonic", lambda: clock[0])
    pace = measure_pace(tmp_path, names, PhotographSettings(), Matcher())
    assert asked[1:] == [(names[k], names[k + 1]) for k in (0, 2, 4, 5, 7)]
    assert (pace.matches, pace.measured) == (500, 5)
    assert pace.slowest == pytest.approx(0.1)
    assert pace.pair == pytest.approx((4 * 0.01 + 0.1) / 5)
    assert pace.encode == pytest.approx(0.02)
    assert "5 measured, the slowest 0.1 s" in str(make_plan(names, tmp_path, PhotographSettings(), pace))


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


def test_a_rig_makes_one_pose_a_moment(tmp_path, capsys, monkeypatch):
    scene = rig_scene(frames=4, points=300, prefixes=PREFIXES[:2])
    write_images(scene, tmp_path / "photos")
    (tmp_path / "rig.json").write_text(json.dumps([{"cameras": [rig_entry(prefix) for prefix in PREFIXES[:2]]}]))
    exact_engine(monkeypatch, scene)
    words = ["map", str(tmp_path / "photos"), "--output", str(tmp_path / "out"), "--rig", str(tmp_path / "rig.json")]
    words += ["report=false", "reconstruction.refine_keypoints=false"]
    assert main(words) == 0
    assert "8/8" in capsys.readouterr().out
    assert load_model(tmp_path / "out" / "sfm").num_reg_frames() == 4
    made = (tmp_path / "out" / "sfm" / "summary.json").stat().st_mtime_ns
    assert main(words) == 0
    assert (tmp_path / "out" / "sfm" / "summary.json").stat().st_mtime_ns == made  # all done before
    (tmp_path / "rig.json").write_text(json.dumps([{"cameras": [rig_entry("left/"), rig_entry("right/")]}]))
    assert main(words) == 2
    assert "has a camera right/, and none of the images of" in capsys.readouterr().err


def test_views_of_one_place_and_moment_are_not_paired_and_soon_after_they_are(tmp_path):
    names = [f"{camera}/{k:03d}.jpg" for camera in "ab" for k in range(4)]
    here = RigCamera("a/", True, pycolmap.Rigid3d())
    aside = RigCamera("b/", False, pycolmap.Rigid3d(pycolmap.Rotation3d([0, 0, 0, 1.0]), [0.5, 0, 0]))
    there = dataclasses.replace(aside, cam_from_rig=pycolmap.Rigid3d())
    pano, stereo = CameraRig((here, there)), CameraRig((here, aside))
    pairs, said = choose_pairs(tmp_path, names, PhotographSettings(), list, (pano,))
    assert (len(pairs), said) == (24, "all 24 pairs of 8 images, without 4 of one place and moment")
    assert ("a/000.jpg", "b/000.jpg") not in pairs
    assert len(choose_pairs(tmp_path, names, PhotographSettings(), list, (stereo,))[0]) == 28
    few = PhotographSettings(exhaustive=2, neighbors=1)
    pairs, said = choose_pairs(tmp_path, names, few, lambda: [(names[0], names[3])], (stereo,))
    assert said.endswith("1 by retrieval, 6 more by name, 10 more by rig")  # 4 of one moment, 3 x 2 across to the next
