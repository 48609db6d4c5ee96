"""A map in memory answers as `localize --map` does, whatever of it is kept in memory."""

import dataclasses
import shutil

import numpy as np
import pycolmap
import pytest
from plane_map import poses

from pdc_sfm.colmap.io.frame import MapFrame
from pdc_sfm.commands.shared.query_settings import load_query_settings
from pdc_sfm.demo.queries import localize_in_map, open_map
from pdc_sfm.errors import FormatError, ImageError, UserError
from pdc_sfm.evaluation.measures.poses import pose_error
from pdc_sfm.images import Photograph, decode_photograph, read_image, write_image
from pdc_sfm.serve.additions import both_ways
from pdc_sfm.serve.cache import ByteCache
from pdc_sfm.serve.resident_map import NOT_NEAR, ResidentMap, Where
from pdc_sfm.serve.server import read_where


def quiet(stage, done, total):
    pass


@pytest.fixture(scope="module")
def held(wall, queries, network, tmp_path_factory):
    return ResidentMap(open_map(wall / "sfm"), tmp_path_factory.mktemp("codes"), queries, network)


@pytest.fixture(scope="module")
def content(wall):
    return (wall / "queries" / "query.png").read_bytes()


# the full network ranks all images, two of them, none; with one image a round, of which the first is never enough; and images
# by their descriptors first; one way, as by default, and both ways
@pytest.mark.parametrize(
    ("best", "top", "images", "few", "ways"),
    [
        (20, 2, 4, 30, "forward"),
        (2, 2, 4, 30, "mutual"),
        (0, 3, 1, 30, "forward"),
        (0, 3, 1, 30, "mutual"),
        (0, 2, 4, 2, "forward"),
    ],
)
def test_the_answer_is_that_of_localize(
    wall, queries, network, content, tmp_path, monkeypatch, best, top, images, few, ways
):
    monkeypatch.setattr("pdc_sfm.colmap.localization.rounds.IMAGES", images)
    finding = dataclasses.replace(queries.finding, best=best, candidates=few, shortlist=few)
    select = dataclasses.replace(queries.matching.select, directions=ways)
    matching = dataclasses.replace(queries.matching, select=select)
    chosen = dataclasses.replace(queries, matching=matching, finding=finding, top=top)
    mapped = open_map(wall / "sfm")
    _, rows = localize_in_map(
        mapped, wall / "queries", tmp_path / "out", top=top, matching=chosen.matching, finding=chosen.finding
    )
    held = ResidentMap(mapped, tmp_path / "codes", chosen, network)
    answer = held.localize(decode_photograph(content, "a"), content, Where(), quiet)
    written = [float(word) for word in (tmp_path / "out" / "results.txt").read_text().split()[1:]]
    assert [*answer.pose.quaternion, *answer.pose.translation] == written  # to the last bit
    assert (answer.inliers, answer.probability) == (rows["query.png"].inliers, rows["query.png"].probability)
    assert (answer.doubt, answer.camera.source) == (rows["query.png"].doubt, rows["query.png"].camera)
    listed = (tmp_path / "out" / "pairs.txt").read_text().split()[1::2]
    assert [image.name for image in answer.images] == listed


def test_codes_of_other_photographs_of_the_same_names_are_made_anew(wall, queries, network, tmp_path):
    """A map made anew of a second video, in the same folder: its frames have the names of the first."""
    mapped, chosen = open_map(wall / "sfm"), dataclasses.replace(queries.finding, best=0)
    shutil.copytree(mapped.images, tmp_path / "images")
    mapped = dataclasses.replace(mapped, images=tmp_path / "images")
    chosen = dataclasses.replace(queries, finding=chosen)
    ResidentMap(mapped, tmp_path / "codes", chosen, network)
    (part,) = (tmp_path / "codes").glob("*.safetensors")
    first = part.read_bytes()
    ResidentMap(mapped, tmp_path / "codes", chosen, network)
    assert part.read_bytes() == first
    changed = next((tmp_path / "images").rglob("*.png"))
    write_image(changed, read_image(changed)[::-1])
    ResidentMap(mapped, tmp_path / "codes", chosen, network)
    assert part.read_bytes() != first


def test_the_pose_is_where_the_photograph_was_taken(held, content):
    answer = held.localize(decode_photograph(content, "a"), content, Where(), quiet)
    truth = poses()["query.png"]
    metres, degrees = pose_error(np.array(answer.pose.cam_from_world), truth)
    assert metres < 0.1  # of 5 to the wall: a tenth of a pixel
    assert degrees < 1
    assert np.allclose(answer.pose.position, -truth[:, :3].T @ truth[:, 3], atol=0.1)
    covariance = np.array(answer.pose.covariance)
    assert np.allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > 0
    assert answer.pose.sigma_position == pytest.approx(np.sqrt(np.trace(covariance[3:, 3:])))
    assert len(answer.shown) > 20
    assert set(answer.seconds) == {"read", "retrieve", "match", "keypoints", "pose"}


def test_what_is_known_of_a_photograph_is_used(held, content):
    photograph = decode_photograph(content, "a")
    first = held.centers[list(held.ids).index("db/0.png")]
    answer = held.localize(photograph, content, Where(position=first, radius=0.1), quiet)
    assert [image.name for image in answer.images] == ["db/0.png"]
    nowhere = held.localize(photograph, content, Where(position=first + 100, radius=0.1), quiet)
    assert (nowhere.localized, nowhere.reason) == (False, NOT_NEAR)
    camera = held.model.camera(1)
    assert held.camera_of(photograph, content, Where(camera)) == (camera, "the request")
    with pytest.raises(ImageError, match="is 160 x 60, its intrinsics are of 160 x 120"):
        held.camera_of(Photograph(photograph.pixels[:60]), content, Where(camera))
    with pytest.raises(FormatError, match=r"intrinsics are not known \(160 x 60.*give camera=MODEL"):
        held.camera_of(Photograph(photograph.pixels[:60]), content, Where())


def test_a_pose_that_is_known_leaves_out_images_that_look_elsewhere(held, content):
    for name, pose in poses().items():
        if name not in held.ids:
            continue
        quaternion = pycolmap.Rotation3d(pose[:, :3]).quat[[3, 0, 1, 2]]
        word = ",".join(map(str, [*(2 * quaternion), *pose[:, 3]]))  # of any length
        where = read_where({"pose": word, "radius": 0.1}, held)
        assert np.allclose(where.position, -pose[:, :3].T @ pose[:, 3])
        assert np.allclose(where.direction, pose[2, :3])
        assert held._among(where) == [name]
        backwards = dataclasses.replace(where, direction=-where.direction)
        assert held.localize(decode_photograph(content, "a"), content, backwards, quiet).reason == NOT_NEAR
    for parameters, said in (
        ({"pose": "0,0,0,0,1,2,3", "radius": 1}, "its quaternion is zero"),
        ({"pose": "1,0,0,0,1,2", "radius": 1}, "write 7 numbers"),
        ({"pose": "1,0,0,0,1,2,3"}, "give a radius"),
        ({"pose": "1,0,0,0,1,2,3", "position": "1,2,3", "radius": 1}, "give one of"),
    ):
        with pytest.raises(UserError, match=said):
            read_where(parameters, held)


def test_a_map_that_knows_its_place_on_the_earth_answers_with_it(held, content, monkeypatch):
    frame = MapFrame((48.0, 11.0, 500.0), 0.01, "test", 0.1)
    monkeypatch.setattr(held, "frame", frame)
    answer = held.localize(decode_photograph(content, "a"), content, Where(), quiet)
    east, north, up = answer.pose.position  # degrees of the WGS84 ellipsoid at 48 degrees north: 111,200 m and 74,630 m
    assert answer.pose.latitude == pytest.approx(48 + north / 111_200, abs=1e-8)
    assert answer.pose.longitude == pytest.approx(11 + east / 74_630, abs=1e-8)
    assert answer.pose.altitude == pytest.approx(500 + up, abs=1e-3)
    first = held.centers[0]
    place = f"{48 + first[1] / 111_200},{11 + first[0] / 74_630}"
    where = read_where({"place": place, "radius": 0.1}, held)
    assert np.allclose(where.position[:2], first[:2], atol=1e-3)
    assert where.level
    near = held.localize(decode_photograph(content, "a"), content, where, quiet)
    assert [image.name for image in near.images] == ["db/0.png"]


def test_two_photographs_are_matched(held, content):
    photograph = decode_photograph(content, "a")
    found = held.match(photograph, photograph, 50, quiet)
    rows = np.array(found.matches)
    assert found.count > len(rows) == 50
    assert np.abs(rows[:, :2] - rows[:, 2:]).max() < 1
    assert found.scores == sorted(found.scores, reverse=True)
    assert found.sizes == [[160, 120], [160, 120]]


def test_retrieval_answers_with_images_that_show_the_same(held, content):
    found = held.retrieve(decode_photograph(content, "a"), 2, quiet)
    assert {image.name for image in found.images} == {"db/1.png", "db/2.png"}  # the two nearest of the arc
    assert found.images[0].matches >= found.images[1].matches > 0


def test_a_cache_holds_what_its_bytes_allow_and_keeps_what_was_used_last():
    made, cache = [], ByteCache(100)

    def get(key):
        def make():
            made.append(key)
            return np.zeros(40, np.uint8)

        return cache.get(key, make)

    for key in ("a", "b", "a", "c", "a", "b"):
        get(key)
    assert made == ["a", "b", "c", "b"]  # c took the place of b, the one unused for longest
    assert (cache.bytes, len(cache)) == (80, 2)


def test_queries_are_matched_one_way_and_what_is_added_to_a_map_both_ways():
    for asked, query, added in ((), "forward", "mutual"), (("select.directions=both",), "both", "both"):
        matching = load_query_settings(None, {"match": list(asked), "retrieve": [], "": []})[0]
        assert matching.select.directions == query
        assert both_ways(matching).select.directions == added
