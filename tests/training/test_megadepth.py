"""MegaDepth's layout: depth, poses and intrinsics of a made scene, a wall with a pillar before it."""

import pickle

import h5py
import numpy as np
import pytest

from pdc_sfm.errors import FormatError
from pdc_sfm.images import write_image
from pdc_sfm.store.depth import read_depth
from pdc_sfm.training.megadepth import open_megadepth
from pdc_sfm.training.npz import read_npz
from pdc_sfm.training.supervision import SupervisionSettings

WIDTH, HEIGHT = 120, 90
K = np.array([[100.0, 0, 60], [0, 100, 45], [0, 0, 1]])
BASELINE, WALL, PILLAR = 0.4, 4.0, 2.0


def depth_map(camera_x):
    """A wall at depth 4, a pillar at depth 2 between world x = -0.2 and 0.2; no depth in the top rows (sky)."""
    columns = (np.arange(WIDTH) + 0.5 - 60) / 100
    at_pillar = np.abs(columns * PILLAR + camera_x) < 0.2
    depth = np.where(at_pillar, PILLAR, WALL)[None].repeat(HEIGHT, 0)
    depth[:20] = 0
    return depth.astype(np.float32)


def objects(items):
    array = np.empty(len(items), object)
    array[:] = items
    return array


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("megadepth")
    poses = []
    for number, camera_x in enumerate((0.0, BASELINE)):
        write_image(folder / f"images/{number}.png", np.full((HEIGHT, WIDTH, 3), number, np.uint8))
        (folder / "depths").mkdir(exist_ok=True)
        with h5py.File(folder / f"depths/{number}.h5", "w") as file:
            file["depth"] = depth_map(camera_x)
        pose = np.eye(4)
        pose[0, 3] = -camera_x
        poses.append(pose)
    (folder / "scene_info").mkdir()
    np.savez(
        folder / "scene_info" / "0000.npz",
        image_paths=objects(["images/0.png", "images/1.png", None]),
        depth_paths=objects(["depths/0.h5", "depths/1.h5", None]),
        intrinsics=objects([K, K, None]),
        poses=objects([*poses, None]),
        overlap_matrix=np.array([[1, 0.8, 0.9], [0.2, 1, 0.9], [0.9, 0.9, 1]]),
    )
    return folder


def test_correspondences_follow_depth_and_leave_out_what_is_occluded(root):
    settings = SupervisionSettings(max_points=4000)
    (scene,) = open_megadepth(root, settings)
    assert len(scene) == 1  # 0 -> 1 alone: 1 -> 0 overlaps too little, the third image has no depth
    pair = scene.pair(0, np.random.default_rng(0))
    assert (pair.reference[0, 0, 0], pair.query[0, 0, 0]) == (0, 1)
    x, y, landed_x, landed_y = pair.points.T
    distance = depth_map(0.0)[y.astype(int), x.astype(int)]
    assert (y >= 20).all()
    np.testing.assert_allclose(landed_x - x, -100 * BASELINE / distance, atol=1e-4)  # the disparity
    np.testing.assert_allclose(landed_y, y, atol=1e-4)
    assert ((landed_x >= -0.5) & (landed_x < WIDTH)).all()
    # The pillar covers in the query the wall that lies 10 px left of it there. Its sides blur the check by a pixel.
    pillar_in_query = depth_map(BASELINE)[50] == PILLAR
    wall = distance == WALL
    inner = np.flatnonzero(pillar_in_query)[2:-2]
    assert not np.isin(np.rint(landed_x[wall]), inner).any()
    assert wall.sum() > 1000
    assert (~wall).sum() > 500


def test_number_of_points_is_bounded(root):
    (scene,) = open_megadepth(root, SupervisionSettings(max_points=50, min_points=5))
    assert len(scene.pair(0, np.random.default_rng(0)).points) <= 50


def test_a_scene_file_cannot_execute_anything(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("executed",)

    np.savez(tmp_path / "evil.npz", image_paths=objects([Evil()]))
    with pytest.raises(FormatError, match=r"names builtins.print"):
        read_npz(tmp_path / "evil.npz", ["image_paths"])


def test_arrays_of_objects_come_back_as_they_were(tmp_path):
    mixed = objects(["a", None, np.arange(4.0).reshape(2, 2), np.float64(2.5)])
    np.savez(tmp_path / "a.npz", mixed=mixed, plain=np.arange(3))
    read, plain = read_npz(tmp_path / "a.npz", ["mixed", "plain"])
    assert (read[0], read[1], read[3]) == ("a", None, 2.5)
    np.testing.assert_array_equal(read[2], mixed[2])
    np.testing.assert_array_equal(plain, np.arange(3))


def test_bad_files_are_named(tmp_path):
    with pytest.raises(FormatError, match=r"scene_info holds no \.npz"):
        open_megadepth(tmp_path, SupervisionSettings())
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(FormatError, match=r"cannot read .*cut.npz"):
        read_npz(tmp_path / "cut.npz", ["poses"])
    np.savez(tmp_path / "other.npz", a=np.zeros(1))
    with pytest.raises(FormatError, match=r"other.npz has no array poses"):
        read_npz(tmp_path / "other.npz", ["poses"])
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(1))
    with pytest.raises(FormatError, match=r"plain.pkl"):
        read_npz(tmp_path / "plain.pkl", ["poses"])
    (tmp_path / "d.h5").write_bytes(b"nothing")
    with pytest.raises(FormatError, match=r"cannot read depth map .*d.h5"):
        read_depth(tmp_path / "d.h5")
    with h5py.File(tmp_path / "e.h5", "w") as file:
        file["other"] = 1
    with pytest.raises(FormatError, match=r"no dataset `depth`"):
        read_depth(tmp_path / "e.h5")
