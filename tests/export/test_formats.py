"""Exported cameras project as COLMAP's do, whatever a format's axes and origin are; programs read what is written."""

import shutil

import cv2
import numpy as np
import pycolmap
import pytest
from export_readers import read_bundler, read_nerfstudio, read_nvm_export
from plyfile import PlyData
from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs

from pdc_sfm.aachen.nvm import read_nvm
from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate
from pdc_sfm.export import export_map
from pdc_sfm.fusion.cloud import PROPERTIES, VERTEX

NAMES = ["a/0.png", "a/1.png", "b-c/2.png", "3.png", "4.png"]
CAMERAS = {
    "PINHOLE": (500, 490, 315, 245),
    "SIMPLE_RADIAL": (500, 320, 240, 0.05),
    "RADIAL": (500, 322, 239, 0.05, -0.02),
    "OPENCV": (500, 504, 318, 242, 0.05, -0.02, 0.003, -0.002),
    "OPENCV_FISHEYE": (400, 402, 318, 242, 0.02, -0.01, 0.004, -0.001),
    "RADIAL_FISHEYE": (400, 320, 240, 0.02, -0.01),
    "FULL_OPENCV": (500, 504, 320, 240, 0.05, -0.02, 0.001, -0.002, 0.01, 0.02, -0.01, 0.002),
}
WAVE = (
    2 * np.pi / 32
)  # of the pictures, in radians a pixel: half a pixel off is 12 gray levels off where it is steepest


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """A map of a scene seen by cameras of a model, as `triangulate` writes it; each is made once."""
    made = {}

    def make(model: str):
        if model not in made:
            folder = tmp_path_factory.mktemp(model)
            params = CAMERAS[model]
            scene = make_scene(NAMES, model=model, params=params, vary=0 if model == "PINHOLE" else 20)
            pairs = scene.pairs()
            features, matches = write_features(scene, folder / "f.h5"), write_matches(scene, folder / "m.h5", pairs)
            images = write_images(scene, folder / "photos")
            x = np.arange(640)
            picture = np.rint(127.5 + 100 * np.sin(WAVE * x) * np.ones((480, 1))).astype(np.uint8)
            for name in NAMES:
                cv2.imwrite(str(images / name), picture)
            listed = write_pairs(folder / "p.txt", pairs)
            settings = TriangulationSettings(refine_keypoints=False)
            triangulate(
                write_model(scene, folder / "known"), images, listed, features, matches, folder / "sfm", settings
            )
            made[model] = folder
        return made[model]

    return make


def colmap_projection(model: pycolmap.Reconstruction, name: str, points: np.ndarray) -> np.ndarray:
    image = model.find_image_with_name(name)
    pose = image.cam_from_world().matrix()
    return np.asarray(model.camera(image.camera_id).img_from_cam(points @ pose[:, :3].T + pose[:, 3]))


def points_of(model: pycolmap.Reconstruction) -> np.ndarray:
    return np.array([point.xyz for point in model.points3D.values()])


@pytest.mark.parametrize("model", [name for name in CAMERAS if name != "FULL_OPENCV"])
def test_nerfstudio_projects_as_colmap_with_distortion_and_all(maps, tmp_path, model):
    result = export_map(maps(model) / "sfm", "nerfstudio", tmp_path / "out")
    assert not result.undistorted
    read, truth = read_nerfstudio(tmp_path / "out"), load_model(maps(model) / "sfm")
    assert sorted(read.names) == sorted(NAMES)
    for name in NAMES:
        assert (
            np.abs(read.project(name, points_of(truth)) - colmap_projection(truth, name, points_of(truth))).max() < 1e-6
        )
    assert len(read.points) > 0.8 * truth.num_points3D()  # stray ones are left out
    assert np.abs(read.points[:, None] - points_of(truth)).max(2).min(1).max() < 1e-5  # float32


def test_nerfstudio_is_given_undistorted_images_of_a_camera_it_does_not_know(maps, tmp_path):
    assert export_map(maps("FULL_OPENCV") / "sfm", "nerfstudio", tmp_path / "out").undistorted
    truth = load_model(maps("FULL_OPENCV") / "sfm")
    check_pictures(
        read_nerfstudio(tmp_path / "out"), truth, maps("FULL_OPENCV") / "photos", tmp_path / "out" / "images"
    )


@pytest.mark.parametrize("model", ["SIMPLE_RADIAL", "RADIAL"])
def test_bundler_projects_as_colmap(maps, tmp_path, model, said):
    assert not export_map(maps(model) / "sfm", "bundler", tmp_path / "out").undistorted
    read, truth = read_bundler(tmp_path / "out"), load_model(maps(model) / "sfm")
    off = np.array(CAMERAS[model][1:3]) - (320, 240)  # of the principal point, which Bundler cannot say
    assert [line for line in said() if "principal point" in line] == (
        ["Bundler has no principal point: observations are relative to it, which is up to 2 px off the image's center"]
        if off.any()
        else []
    )
    for name in NAMES:
        theirs = read.project(name, points_of(truth)) + off
        assert np.abs(theirs - colmap_projection(truth, name, points_of(truth))).max() < 1e-6
    check_observations(read)


@pytest.mark.parametrize("model", ["SIMPLE_RADIAL", "OPENCV_FISHEYE"])
def test_nvm_shows_undistorted_images(maps, tmp_path, model):
    assert export_map(maps(model) / "sfm", "nvm", tmp_path / "out").undistorted
    truth, read = load_model(maps(model) / "sfm"), read_nvm_export(tmp_path / "out")
    if model == "SIMPLE_RADIAL":  # the other has two focal lengths and a principal point, which are lost
        check_pictures(read, truth, maps(model) / "photos", tmp_path / "out" / "images")
        check_observations(read)
    (model_read,) = read_nvm(tmp_path / "out" / "model.nvm")  # as Aachen's reference models are read
    poses = {name: pose for name, pose in zip(model_read.names, model_read.poses())}
    for name in NAMES:
        known = truth.find_image_with_name(name).cam_from_world().matrix()
        assert np.abs(poses[f"images/{name}"] - known).max() < 1e-9
    assert len(model_read.observed_point) == sum(len(p.track.elements) for p in truth.points3D.values())


@pytest.mark.parametrize("model", ["PINHOLE", "OPENCV", "OPENCV_FISHEYE"])
def test_splats_begin_with_all_points_and_pictures_without_distortion(maps, tmp_path, model):
    result = export_map(maps(model) / "sfm", "splats", tmp_path / "out")
    assert result.undistorted == (model != "PINHOLE")
    truth, made = load_model(maps(model) / "sfm"), pycolmap.Reconstruction(tmp_path / "out" / "sparse" / "0")
    assert {camera.model_name for camera in made.cameras.values()} == {"PINHOLE"}
    assert made.num_points3D() == truth.num_points3D() > 250
    for name in NAMES:
        image = made.find_image_with_name(name)
        height, width = cv2.imread(str(tmp_path / "out" / "images" / name)).shape[:2]
        assert (made.camera(image.camera_id).width, made.camera(image.camera_id).height) == (width, height)

    class Read:
        @staticmethod
        def project(name, points):
            return colmap_projection(made, name, points)

    check_pictures(Read, truth, maps(model) / "photos", tmp_path / "out" / "images")


def test_splats_begin_with_the_dense_cloud_as_well(maps, tmp_path, monkeypatch):
    source = tmp_path / "map"
    shutil.copytree(maps("PINHOLE") / "sfm", source)
    cloud = np.zeros(1000, VERTEX)
    cloud["xyz"], cloud["rgb"] = np.random.default_rng(0).normal(size=(1000, 3)), (200, 10, 30)  # others are gray
    (source / "dense").mkdir()
    header = ["ply", "format binary_little_endian 1.0", "element vertex 1000", *(f"property {p}" for p in PROPERTIES)]
    (source / "dense" / "fused.ply").write_bytes("\n".join([*header, "end_header\n"]).encode() + cloud.tobytes())
    (source / "dense" / "densify.json").write_text("{}")  # it is whole
    monkeypatch.setattr("pdc_sfm.export.splats.SEEDS", 400)
    result = export_map(source, "splats", tmp_path / "out")
    made = pycolmap.Reconstruction(tmp_path / "out" / "sparse" / "0")
    own = load_model(source).num_points3D()
    assert result.said.endswith(f"{own} points to begin with, and 400 of the dense cloud")
    assert made.num_points3D() == own + 400
    added = np.array([point.xyz for point in made.points3D.values() if (point.color == (200, 10, 30)).all()])
    assert len(added) == 400
    assert {tuple(row) for row in added} <= {tuple(row) for row in cloud["xyz"].astype(float)}


def check_pictures(read, truth, photos, undistorted):
    """A point has the color in the exported picture, by the exported camera, that it has in the photograph."""
    for name in NAMES:
        points = points_of(truth)
        values = []
        for folder, pixels in (
            (photos, colmap_projection(truth, name, points)),
            (undistorted, read.project(name, points)),
        ):
            picture = cv2.imread(str(folder / name), cv2.IMREAD_GRAYSCALE).astype(np.float32)
            x, y = (pixels - 0.5).astype(np.float32).T
            inside = (x > 1) & (y > 1) & (x < picture.shape[1] - 2) & (y < picture.shape[0] - 2)
            colors = cv2.remap(picture, x[None], y[None], cv2.INTER_LINEAR)[0]
            values.append(np.where(inside, colors, np.nan))
        off = np.abs(values[0] - values[1])
        assert np.isfinite(off).sum() > 100
        assert np.nanmax(off) < 3  # twice interpolated and rounded


def check_observations(read):
    """Keypoints lie where their points project to."""
    assert len(read.observed) > 500
    for name, point, pixel in read.observed:
        assert np.abs(read.project(name, read.points[point : point + 1])[0] - pixel).max() < 0.1


def test_a_cloud_and_cameras_open_in_a_viewer(maps, tmp_path):
    export_map(maps("RADIAL") / "sfm", "ply", tmp_path / "out")
    truth = load_model(maps("RADIAL") / "sfm")
    cloud = PlyData.read(tmp_path / "out" / "points.ply")["vertex"]
    assert len(cloud) > 0.8 * truth.num_points3D()
    mesh = PlyData.read(tmp_path / "out" / "cameras.ply")
    vertices = np.stack([mesh["vertex"][axis] for axis in "xyz"], 1).reshape(-1, 5, 3)
    faces = np.stack(mesh["face"]["vertex_indices"])
    assert faces.shape == (4 * len(NAMES), 3)
    assert set(faces.ravel()) == set(range(5 * len(NAMES)))
    for (center, *corners), name in zip(vertices, sorted(NAMES)):
        image = truth.find_image_with_name(name)
        assert np.abs(center - image.projection_center()).max() < 1e-5
        pixels = colmap_projection(truth, name, np.array(corners, float))
        assert np.abs(pixels - [[0, 0], [640, 0], [640, 480], [0, 480]]).max() < 0.05  # float32


def test_colmap_verifies_and_maps_the_raw_matches(maps, tmp_path):
    """As `matches_importer` and `mapper` do."""
    said = export_map(maps("SIMPLE_RADIAL") / "sfm", "database", tmp_path / "out").said
    path = tmp_path / "out" / "database.db"
    with pycolmap.Database.open(path) as database:
        assert database.num_verified_image_pairs() == 0
        assert database.num_matched_image_pairs() == 10
        assert f"{database.num_matches():,} raw matches of 10 pairs" == said
        assert all(database.read_keypoints(image.image_id).shape[0] for image in database.read_all_images())
    assert not list(path.parent.glob(".*partial*"))  # SQLite's journal was closed
    assert len((tmp_path / "out" / "pairs.txt").read_text().split("\n")) == 11
    pycolmap.verify_matches(path, tmp_path / "out" / "pairs.txt")
    (model,) = pycolmap.incremental_mapping(path, maps("SIMPLE_RADIAL") / "photos", tmp_path / "mapped").values()
    assert model.num_reg_images() == 5
    assert model.num_points3D() > 250
    assert model.compute_mean_reprojection_error() < 0.1
    with pycolmap.Database.open(maps("SIMPLE_RADIAL") / "sfm" / "database.db") as database:
        assert database.num_verified_image_pairs() == 10  # the map's own is as it was


def test_kapture_reads_cameras_poses_and_points(maps, tmp_path):
    export_map(maps("OPENCV") / "sfm", "kapture", tmp_path / "out")
    truth = load_model(maps("OPENCV") / "sfm")
    tables = {
        name: [
            [word.strip() for word in line.split(",")]
            for line in (tmp_path / "out" / name).read_text().split("\n")
            if line and not line.startswith("#")
        ]
        for name in ("sensors/sensors.txt", "sensors/records_camera.txt", "sensors/trajectories.txt")
    }
    cameras = {row[0]: row[3:] for row in tables["sensors/sensors.txt"]}
    for (time, device, name), (when, who, *numbers) in zip(
        tables["sensors/records_camera.txt"], tables["sensors/trajectories.txt"]
    ):
        assert (time, device) == (when, who)
        image = truth.find_image_with_name(name)
        quaternion, translation = np.array(numbers[:4], float), np.array(numbers[4:], float)
        pose = image.cam_from_world()
        assert np.abs(quaternion[[1, 2, 3, 0]] - pose.rotation.quat).max() < 1e-12
        assert np.abs(translation - pose.translation).max() < 1e-12
        model, width, height, *params = cameras[device]
        assert (model, width, height) == ("OPENCV", "640", "480")
        assert np.array_equal(np.array(params, float), truth.camera(image.camera_id).params)
        assert (tmp_path / "out" / "sensors" / "records_data" / name).is_file()
    assert np.loadtxt(tmp_path / "out" / "reconstruction" / "points3d.txt", delimiter=",").shape == (
        truth.num_points3D(),
        6,
    )


def test_the_kapture_library_reads_it(maps, tmp_path):
    csv = pytest.importorskip("kapture.io.csv")
    export_map(maps("OPENCV") / "sfm", "kapture", tmp_path / "out")
    read, truth = csv.kapture_from_dir(str(tmp_path / "out")), load_model(maps("OPENCV") / "sfm")
    for time, device, name in [(t, d, n) for t, rows in read.records_camera.items() for d, n in rows.items()]:
        image = truth.find_image_with_name(name)
        assert np.abs(read.trajectories[time, device].t_raw - image.cam_from_world().translation).max() < 1e-12
        assert np.array_equal(read.sensors[device].camera_params[2:], truth.camera(image.camera_id).params)
    assert read.points3d.shape == (truth.num_points3D(), 6)
