"""Maps in metres: by positions with errors, some of them wrong, by control points, by distances."""

import json

import numpy as np
import pycolmap
import pytest
from PIL import Image
from projections import make_scene, write_features, write_images, write_matches, write_pairs
from scipy.spatial.transform import Rotation

from pdc_sfm.colmap.georeference.align import PositionSettings, georeference
from pdc_sfm.colmap.io.frame import read_frame
from pdc_sfm.colmap.io.models import has_metres, load_model
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.errors import FormatError
from pdc_sfm.settings import load_settings
from pdc_sfm.store.control import Control
from pdc_sfm.store.positions import Positions

ORIGIN = (48.1374, 11.5755, 520.0)
GPS = pycolmap.GPSTransform()


def walk(count=14, seed=0):
    """Centers (N, 3) around a square of 40 m by 24 m, in metres east, north, up, and where photographs look."""
    random = np.random.default_rng(seed)
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    radius = np.array([20, 12]) + random.normal(0, 1.5, (count, 2))
    centers = np.c_[radius * np.c_[np.cos(angle), np.sin(angle)], 1.6 + random.normal(0, 0.2, count)]
    return centers, np.c_[-np.cos(angle), -np.sin(angle), random.normal(0.1, 0.1, count)]


def street(count=10):
    """A straight walk of 60 m that looks at the houses beside it."""
    random = np.random.default_rng(1)
    centers = np.c_[np.linspace(0, 60, count), random.normal(0, 0.2, count), 1.6 + random.normal(0, 0.1, count)]
    return centers, np.tile([0.0, 1.0, 0.05], (count, 1))


def model_of(centers, looks, roll=0.0):
    """A model of level cameras with these centers, in some other frame, 7.7 times as small."""
    model = pycolmap.Reconstruction()
    camera = pycolmap.Camera(model="PINHOLE", width=640, height=480, params=[500, 500, 320, 240], camera_id=1)
    model.add_camera_with_trivial_rig(camera)
    for k, (center, look) in enumerate(zip(centers, looks), start=1):
        forward = look / np.linalg.norm(look)
        right = np.cross(forward, [0, 0, 1.0])
        right /= np.linalg.norm(right)
        rotation = np.stack([right, np.cross(forward, right), forward])
        rotation = Rotation.from_euler("z", roll, degrees=True).as_matrix() @ rotation
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(rotation), -rotation @ center)
        model.add_image_with_trivial_frame(pycolmap.Image(name=f"{k}.jpg", camera_id=1, image_id=k), pose)
    turn = pycolmap.Rotation3d(Rotation.from_euler("xyz", [2, 1, 0.5]).as_matrix())
    model.transform(pycolmap.Sim3d(0.13, turn, np.array([3.0, -2, 5])))
    return model


def positions_of(centers, noise=0.0, seed=5, sigma=None):
    """What GPS would say, with twice the noise in height."""
    noisy = centers + np.random.default_rng(seed).normal(0, 1, centers.shape) * noise * np.array([1, 1, 2])
    places = {f"{k}.jpg": tuple(map(float, p)) for k, p in enumerate(GPS.enu_to_ellipsoid(noisy, *ORIGIN), start=1)}
    sigmas = {} if sigma is None else dict.fromkeys(places, (sigma, 2 * sigma))
    return Positions(places, sigmas, True, "EXIF")


def errors(model, frame, centers):
    """Metres by which camera centers are off."""
    truth = GPS.ellipsoid_to_enu(GPS.enu_to_ellipsoid(centers, *ORIGIN), *frame.origin)
    found = np.array([model.image(k).projection_center() for k in range(1, len(centers) + 1)])
    return np.linalg.norm(found - truth, axis=1)


def test_exact_positions_give_exact_metres(tmp_path):
    centers, looks = walk()
    model = model_of(centers, looks)
    found = georeference(model, tmp_path, positions_of(centers))
    assert errors(model, found.frame, centers).max() < 0.05  # photographs that are not quite level pull a little
    assert found.frame.scale_sigma < 0.005
    assert found.frame.origin[0] == pytest.approx(ORIGIN[0], abs=1e-3)
    assert not found.doubts
    assert "14 of 14 positions (EXIF) agree" in found.remarks[-1]
    back = found.frame.geographic(np.array([model.image(1).projection_center()]))[0]
    assert back[:2] == pytest.approx(positions_of(centers).places["1.jpg"][:2], abs=1e-6)


def test_noise_is_averaged_and_the_scale_is_as_sure_as_said(tmp_path):
    centers, looks = walk()
    off, sizes = [], []
    for seed in range(8):
        model = model_of(centers, looks)
        frame = georeference(model, tmp_path, positions_of(centers, 2.0, seed)).frame
        off.append(np.sqrt(np.mean(errors(model, frame, centers) ** 2)))
        span = [np.linalg.norm(model.image(1).projection_center() - model.image(8).projection_center())]
        sizes.append((span[0] / np.linalg.norm(centers[0] - centers[7]) - 1) / frame.scale_sigma)
    assert np.median(off) < 2.0  # of positions that are 4.9 m off: sqrt(2^2 + 2^2 + 4^2)
    assert 0.1 < np.sqrt(np.mean(np.square(sizes))) < 2


def test_one_wild_position_is_named_and_not_followed(tmp_path):
    centers, looks = walk()
    model, given = model_of(centers, looks), positions_of(centers, 0.5)
    wild = {**given.places, "3.jpg": (ORIGIN[0] + 0.01, ORIGIN[1], 520.0)}  # a kilometre north
    found = georeference(model, tmp_path, Positions(wild, {}, True, "gps.csv"))
    assert errors(model, found.frame, centers).max() < 1.5
    assert "not followed, 1 of 14 positions (gps.csv) that disagree with the map: 3.jpg (1.1" in found.remarks[-1]
    assert not found.doubts


def test_latitude_and_longitude_exchanged_are_noticed(tmp_path):
    centers, looks = walk()
    model, given = model_of(centers, looks), positions_of(centers, 1.0)
    before = np.array(model.image(1).projection_center())
    turned = {name: (lon, lat, alt) for name, (lat, lon, alt) in given.places.items()}
    found = georeference(model, tmp_path, Positions(turned, {}, True, "gps.csv"))
    assert found.frame is None
    assert "latitude and longitude are exchanged in the positions (gps.csv)" in found.doubts[0]
    assert np.array_equal(model.image(1).projection_center(), before)


def test_two_axes_exchanged_in_a_frame_of_ones_own_are_noticed(tmp_path):
    centers, looks = walk()
    centers[:, 2] += np.linspace(0, 15, len(centers))  # up a hill: a flat walk fits its mirror image from below
    places = {f"{k}.jpg": (y, x, z) for k, (x, y, z) in enumerate(centers.tolist(), start=1)}
    found = georeference(model_of(centers, looks), tmp_path, Positions(places, {}, False, "xyz.csv"))
    assert found.frame is None
    assert "two axes (or the sign of one) are exchanged" in found.doubts[0]


@pytest.mark.parametrize("exchanged", [False, True])
def test_axes_exchanged_at_one_height_leave_the_photographs_upside_down(tmp_path, exchanged):
    centers, looks = walk()
    centers[:, 2] = 1.7
    places = {
        f"{k}.jpg": (y, x, z) if exchanged else (x, y, z) for k, (x, y, z) in enumerate(centers.tolist(), start=1)
    }
    found = georeference(model_of(centers, looks), tmp_path, Positions(places, {}, False, "xyz.csv"))
    assert any("upside down" in remark for remark in found.remarks) == exchanged
    assert not found.doubts  # a frame whose z points down looks the same


def test_half_of_the_images_without_position(tmp_path):
    centers, looks = walk()
    model, given = model_of(centers, looks), positions_of(centers, 0.2)
    half = {name: place for name, place in given.places.items() if int(name[:-4]) % 2}
    found = georeference(model, tmp_path, Positions(half, {}, True, "EXIF"))
    assert errors(model, found.frame, centers).max() < 1
    assert "EXIF has positions of 7 of 14 images; the others follow the map" in found.remarks


def test_too_few_positions_and_none(tmp_path):
    centers, looks = walk()
    few = dict(list(positions_of(centers).places.items())[:2])
    found = georeference(model_of(centers, looks), tmp_path, Positions(few, {}, True, "EXIF"))
    assert found.frame is None
    assert "at least 3 positions are needed" in found.remarks[-1]
    assert georeference(model_of(centers, looks), tmp_path, Positions({}, {}, True, "EXIF")).remarks == ()


def test_positions_within_their_errors_do_not_tell_the_scale(tmp_path):
    centers, looks = walk()
    found = georeference(model_of(centers, looks), tmp_path, positions_of(centers / 20, 5.0, sigma=5.0))
    assert found.frame is None
    assert "they lie too near to each other for their errors" in found.remarks[-1]
    assert not found.doubts


@pytest.mark.parametrize("roll", [0, 90])
def test_on_a_straight_street_photographs_tell_what_is_up(tmp_path, roll):
    """Ninety degrees: held upright, and EXIF says so."""
    centers, looks = street()
    if roll:
        exif = Image.Exif()
        exif[0x0112] = 8  # the stored picture is to be turned by 90 degrees to the left
        for k in range(1, len(centers) + 1):
            Image.new("RGB", (16, 16)).save(tmp_path / f"{k}.jpg", exif=exif)
    model = model_of(centers, looks, roll=roll)
    found = georeference(model, tmp_path, positions_of(centers, 2.0))
    rotation = np.asarray(model.image(1).cam_from_world().matrix())[:, :3]
    forward = rotation[2]
    assert np.degrees(np.arccos(forward @ looks[0] / np.linalg.norm(looks[0]))) < 15
    assert errors(model, found.frame, centers).max() < 6


def test_unknown_altitudes_do_no_harm(tmp_path):
    centers, looks = walk()
    flat = {name: (lat, lon, np.nan) for name, (lat, lon, _) in positions_of(centers, 0.5).places.items()}
    model = model_of(centers, looks)
    found = georeference(model, tmp_path, Positions(flat, {}, True, "EXIF"))
    moved = np.array([model.image(k).projection_center() for k in range(1, 15)])
    truth = GPS.ellipsoid_to_enu(GPS.enu_to_ellipsoid(centers, *ORIGIN), *found.frame.origin)
    assert np.linalg.norm((moved - truth)[:, :2], axis=1).max() < 1.5
    assert np.ptp((moved - truth)[:, 2]) < 6  # level within the photographs' own tilt


def test_large_coordinates_keep_their_digits(tmp_path):
    centers, looks = walk()
    far = np.array([691_234.0, 5_334_567.0, 520.0])
    places = {f"{k}.jpg": tuple(place) for k, place in enumerate((centers + far).tolist(), start=1)}
    model = model_of(centers, looks)
    frame = georeference(model, tmp_path, Positions(places, {}, False, "utm.csv")).frame
    assert np.abs(model.image(1).projection_center()).max() < 200
    assert frame.world(model.image(1).projection_center()[None])[0] == pytest.approx(places["1.jpg"], abs=0.2)


def control_of(model, count, truth, noise=0.0):
    """Points in the middle of the square as two images or more show them."""
    random = np.random.default_rng(3)
    points = np.c_[random.uniform(-5, 5, (count, 2)), random.uniform(0, 6, count)]
    seen = {f"p{k}": {} for k in range(count)}
    for image in model.images.values():
        camera = model.camera(image.camera_id)
        pose = truth[image.name]
        for k, point in enumerate(points):
            local = pose[:, :3] @ point + pose[:, 3]
            if local[2] > 0.5:
                at = np.asarray(camera.img_from_cam(local[None]))[0] - 0.5
                seen[f"p{k}"][image.name] = tuple(at + random.normal(0, noise, 2))
    return points, seen


def true_poses(centers, looks):
    model = model_of(centers, looks)
    back = pycolmap.Sim3d(
        0.13, pycolmap.Rotation3d(Rotation.from_euler("xyz", [2, 1, 0.5]).as_matrix()), np.array([3.0, -2, 5])
    ).inverse()
    model.transform(back)
    return {image.name: np.asarray(image.cam_from_world().matrix()) for image in model.images.values()}


def test_control_points_decide_alone(tmp_path):
    centers, looks = walk()
    model = model_of(centers, looks)
    points, seen = control_of(model, 5, true_poses(centers, looks), noise=0.3)
    given = dict(zip(seen, map(tuple, points.tolist())))
    given["p2"] = (given["p2"][0] + 4, *given["p2"][1:])  # one was measured wrongly
    control = Control(given, dict.fromkeys(given, 0.02), seen, {}, False, "control.txt")
    found = georeference(model, tmp_path, positions_of(centers, 3.0), control)
    off = [np.linalg.norm(model.image(k).projection_center() - c) for k, c in enumerate(centers, start=1)]
    assert max(off) < 0.1
    assert "4 of 5 control points agree" in " ".join(found.remarks)
    assert "p2 (4 m off)" in " ".join((*found.remarks, *found.doubts))


def test_known_distances_give_the_scale(tmp_path):
    centers, looks = walk()
    model = model_of(centers, looks)
    points, seen = control_of(model, 2, true_poses(centers, looks))
    apart = float(np.linalg.norm(points[0] - points[1]))
    ends = float(np.linalg.norm(centers[0] - centers[7]))
    distances = {("p0", "p1"): (apart, 0.02), ("1.jpg", "8.jpg"): (ends, 0.05)}
    found = georeference(model, tmp_path, None, Control({}, {}, seen, distances, False, "c.txt"))
    assert np.linalg.norm(model.image(1).projection_center() - model.image(8).projection_center()) == pytest.approx(
        ends, rel=1e-3
    )
    assert 0 < found.frame.scale_sigma < 0.01
    assert found.frame.origin is None
    doubled = {**distances, ("1.jpg", "8.jpg"): (2 * ends, 0.05)}
    found = georeference(model_of(centers, looks), tmp_path, None, Control({}, {}, seen, doubled, False, "c.txt"))
    assert "known distances disagree" in found.doubts[0]


def test_marks_that_are_not_one_point_are_named(tmp_path):
    centers, looks = walk()
    model = model_of(centers, looks)
    points, seen = control_of(model, 4, true_poses(centers, looks))
    image = next(iter(seen["p1"]))
    seen["p1"][image] = (seen["p1"][image][0] + 200, 5.0)
    control = Control(dict(zip(seen, map(tuple, points.tolist()))), dict.fromkeys(seen, 0.02), seen, {}, False, "c.txt")
    found = georeference(model, tmp_path, None, control)
    assert "control point p1 is not used: its marks lie" in found.remarks[0]
    assert found.frame is not None


NAMES = [f"{k}.png" for k in range(7)]
METRES = 10.0  # of the scene's unit


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """The arguments of `reconstruct` for a scene of exact matches, and its camera centers in metres east, north, up."""
    folder = tmp_path_factory.mktemp("scene")
    scene = make_scene(NAMES, model="PINHOLE", params=(500, 500, 320, 240), vary=0)
    centers = {
        name: METRES * (-pose[:, :3].T @ pose[:, 3])[[0, 2, 1]] * [1, 1, -1] for name, pose in scene.poses.items()
    }
    arguments = dict(
        images=write_images(scene, folder / "images"),
        pairs=write_pairs(folder / "pairs.txt", scene.pairs()),
        features=write_features(scene, folder / "features.h5"),
        matches=write_matches(scene, folder / "matches.h5", scene.pairs()),
        settings=load_settings(
            ReconstructionSettings,
            None,
            ["camera.model=PINHOLE", "camera.params=500,500,320,240", "camera.mode=single", "camera.refine=false"],
        ),
    )
    return arguments, centers


def test_reconstruct_gives_metres_and_says_how_sure(mapped, tmp_path):
    arguments, centers = mapped
    random = np.random.default_rng(0)
    lines = ["name lat lon alt sigma"]
    for name, center in centers.items():
        lat, lon, alt = GPS.enu_to_ellipsoid((center + random.normal(0, 0.3, 3))[None], *ORIGIN)[0]
        lines.append(f"{name} {lat:.9f} {lon:.9f} {alt:.3f} 0.3")
    (tmp_path / "gps.csv").write_text("\n".join(lines))
    result = reconstruct(**arguments, output=tmp_path / "sfm", positions=tmp_path / "gps.csv")
    frame, model = read_frame(tmp_path / "sfm"), load_model(tmp_path / "sfm")
    assert has_metres(tmp_path / "sfm")
    assert any("scale known to" in line for line in result.remarks)
    truth = GPS.ellipsoid_to_enu(GPS.enu_to_ellipsoid(np.array(list(centers.values())), *ORIGIN), *frame.origin)
    found = {image.name: image.projection_center() for image in model.images.values()}
    off = np.linalg.norm(np.array([found[name] for name in centers]) - truth, axis=1)
    assert np.sqrt(np.mean(off**2)) < 0.45  # of positions 0.5 m off
    assert result.summary.reprojection_error < 0.1
    again = reconstruct(**arguments, output=tmp_path / "sfm")  # without: nothing of the frame is left
    assert again.verdict.kind == result.verdict.kind
    assert read_frame(tmp_path / "sfm") is None
    assert not has_metres(tmp_path / "sfm")


def test_a_file_of_other_images_is_refused_before_mapping(mapped, tmp_path):
    (tmp_path / "gps.csv").write_text("name x y z\nother.jpg 1 2 3\n")
    with pytest.raises(FormatError, match=r"gps\.csv names none of the images: it has other\.jpg, expected .* 0\.png"):
        reconstruct(**mapped[0], output=tmp_path / "sfm", positions=tmp_path / "gps.csv")
    assert not (tmp_path / "sfm").exists()


def test_a_damaged_frame_is_named(tmp_path):
    (tmp_path / "frame.json").write_text(json.dumps({"unit": "metres", "origin": {"latitude": 1}}))
    with pytest.raises(FormatError, match=r"cannot read .*frame\.json"):
        read_frame(tmp_path)


def test_sigma_must_be_positive():
    with pytest.raises(Exception, match="sigma=-1 must be positive"):
        PositionSettings(sigma=-1)
