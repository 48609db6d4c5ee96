"""No name in any input makes a write land outside the output: `..`, absolute paths, blanks, NUL, links, drive letters."""

import contextlib
import json

import numpy as np
import pytest
from aachen_folder import exact_matcher, write_dataset
from fake_matcher import FakeMatcher, write_images
from fake_network import FakeNetwork, gray_images
from odd_input import ESCAPES, SAMPLES
from projections import make_scene, write_features, write_matches, write_model, write_queries
from projections import write_images as write_pictures
from run_maker import ShiftMatcher, make_run

from pdc_sfm.aachen.challenge import ChallengeSettings
from pdc_sfm.aachen.localization import AachenSettings, run_localization
from pdc_sfm.colmap.localization.localize_sfm import localize
from pdc_sfm.colmap.mapping.reconstruction import reconstruct
from pdc_sfm.colmap.mapping.sift_files import match_sift
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.demo.linked_images import link_images, link_name
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.errors import UserError
from pdc_sfm.images import list_images, name_problem, write_image
from pdc_sfm.keypoints.extraction import export_keypoints
from pdc_sfm.report import write_report
from pdc_sfm.retrieval import RetrievalSettings, retrieve
from pdc_sfm.run_folder import RunFolder

OUTWARD = [name for name in ESCAPES if name]
ODD = [*OUTWARD, *SAMPLES]


@pytest.fixture
def output(tmp_path):
    """A folder to write to. When the test is over, everything around it must be as it was."""
    folder = tmp_path / "around" / "output"
    folder.mkdir(parents=True)
    (tmp_path / "around" / "precious.txt").write_text("precious")
    write_images(tmp_path / "images", 3)
    write_image(tmp_path / "a.png", np.zeros((48, 64, 3), np.uint8))
    yield folder
    found = {path for path in tmp_path.rglob("*") if not path.is_relative_to(folder)}
    allowed = {tmp_path / name for name in ("around", "around/precious.txt", "images", "images/db", "a.png")}
    allowed |= {tmp_path / f"images/db/{k:03d}.png" for k in range(3)} | {tmp_path / "given"}
    assert {path for path in found if not path.is_relative_to(tmp_path / "given")} <= allowed
    assert (tmp_path / "around/precious.txt").read_text() == "precious"


@pytest.mark.parametrize("name", OUTWARD)
def test_match(output, tmp_path, name):
    pairs = [("db/000.png", name), ("db/000.png", "db/001.png")]
    with pytest.raises(UserError):
        match_pairs(tmp_path / "images", pairs, output, matcher=FakeMatcher())
    listed = output / "pairs.txt"
    listed.write_bytes("".join(f"{a} {b}\n" for a, b in pairs).encode("utf-8", "surrogatepass"))
    with pytest.raises(UserError):
        match_pairs(tmp_path / "images", listed, output, matcher=FakeMatcher())


@pytest.mark.parametrize("name", OUTWARD)
def test_names_of_files_by_settings(name):
    for kind, setting in ((MatchingSettings, "output"), (AachenSettings, "method"), (ChallengeSettings, "method")):
        with pytest.raises(UserError, match=f"{setting}=.* must be a plain name"):
            kind(**{setting: name})


def test_keypoints_and_retrieval(output, tmp_path):
    gray_images(output / "images", {"q.png": 100, "d.png": 101})
    settings = RetrievalSettings(method="direct", mode="exhaustive", min_side=48, readers=0)
    for name in ODD:
        with contextlib.suppress(UserError):
            export_keypoints(tmp_path / "images", output / "k.h5", names=["db/000.png", name])
        for lists in (([name], ["d.png"]), (["q.png"], [name])):
            with contextlib.suppress(UserError):
                retrieve(output / "images", *lists, output / "r.txt", 1, settings, network=FakeNetwork())
        if name in OUTWARD:
            with pytest.raises(UserError):
                export_keypoints(tmp_path / "images", output / "k.h5", names=[name])
            with pytest.raises(UserError):
                retrieve(output / "images", ["q.png"], [name], output / "r.txt", 1, settings, network=FakeNetwork())


def test_mapping_and_localization(output, tmp_path):
    names = ["../a.png", "db/0.png", "/elsewhere/../b.png", "db/../../c.png", "db/1.png", "db/2.png"]
    scene, given = make_scene(names), tmp_path / "given"
    given.mkdir()
    inputs = (
        write_pictures(scene, given / "images", ["db/0.png", "db/1.png", "db/2.png"]),
        given / "pairs.txt", write_features(scene, given / "f.h5"), write_matches(scene, given / "m.h5", scene.pairs()),
    )  # fmt: skip
    model = write_model(scene, given / "known")
    inputs[1].write_text("".join(f"{a} {b}\n" for a, b in scene.pairs()))
    for work in (
        lambda: triangulate(model, *inputs, output / "sfm"),
        lambda: reconstruct(*inputs, output / "sfm"),
        lambda: match_sift(inputs[0], inputs[1], output / "f.h5", output / "m.h5"),
    ):
        with pytest.raises(UserError, match="not a path below the image folder"):
            work()
    usable = [name for name in names if not name_problem(name)]
    inputs[1].write_text("".join(f"{a} {b}\n" for a, b in scene.pairs(usable)))
    triangulate(model, *inputs, output / "sfm")  # the model still knows the other names
    queries = write_queries(scene, given / "q.txt", names)
    with pytest.raises(UserError, match=r"q\.txt line 2: .*not a path below the image folder"):
        localize(output / "sfm", queries, inputs[1], *inputs[2:], output / "results.txt")
    cameras = {name: scene.cameras[name] for name in names}
    with contextlib.suppress(UserError):
        localize(output / "sfm", cameras, inputs[1], *inputs[2:], output / "results.txt")


@pytest.mark.parametrize("name", ["../../x.png", "/x.png", "db/../../x.png"])
def test_aachen(output, tmp_path, name):
    scene, dataset = write_dataset(tmp_path / "given", "1.0")
    for path in (dataset.nvm, dataset.intrinsics, dataset.night_queries):
        before = path.read_text()
        path.write_text(before.replace("db/0.png", name).replace("query/night/nexus5x/n0.png", name))
        assert path.read_text() != before
        with pytest.raises(UserError):
            run_localization(dataset, output, exact_matcher(scene), output / "none.txt")
        path.write_text(before)


def test_photographs_in_folders_of_blanks_and_dots(output, tmp_path):
    names = [" /x.png", " ../x.png", "a/ .. /x.png", ".. /x.png", "#x.png", "a b.png", ".../x.png", "\t/x.png"]
    for name in names:
        write_image(tmp_path / "given" / name, np.full((48, 64, 3), 99, np.uint8))
    listed = list_images(tmp_path / "given")
    assert len(listed) == len(names)
    folder = RunFolder(output)
    link_images(tmp_path / "given", listed, folder)
    assert len(list_images(output / "images")) == len(names)
    assert [path.name for path in output.iterdir()] == ["images"]


@pytest.mark.parametrize("name", ODD)
def test_names_of_links_can_stand_in_any_list(name):
    link = link_name(name.strip("/") or "x")
    assert link.split() == [link]
    assert not link.startswith("#")
    assert all(part not in (".", "..") for part in link.split("/"))


def test_report(output):
    make_run(output)
    for path in ("localization.json", "retrieval.json", "results.txt_logs.json", "sift.json"):
        text = (output / path).read_text()
        for name in ("day/<1>.jpg", "night/1.jpg", "db/1.jpg"):
            text = text.replace(json.dumps(name)[1:-1], "../../../precious.txt")
        (output / path).write_text(text)
    write_report(output, pairs=1, matcher=ShiftMatcher())
    assert (output / "report.html").is_file()


def test_an_output_that_is_a_link_is_replaced_not_followed(output, tmp_path):
    """Someone who may write to the output folder puts links there that lead outward."""
    precious = output.parent / "precious.txt"
    for name in ("feats_matches-pdc.h5", "matches-pdc_pairs.h5"):
        (output / name).symlink_to(precious)
    pairs = [("db/000.png", "db/001.png"), ("db/001.png", "db/002.png")]
    with contextlib.suppress(UserError):
        match_pairs(tmp_path / "images", pairs, output, matcher=FakeMatcher(), overwrite="all")
    (output / "report.html").symlink_to(precious)
    (output / "run.json").write_text("{}")
    write_report(output, matcher=ShiftMatcher())
    assert not (output / "report.html").is_symlink()
