"""Readers of what is exported, written from the formats' specifications, each giving (project, names) in COLMAP's pixels.

`project(name, points)` takes (N, 3) world points to (N, 2) pixels from the image's top left corner.
"""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

Project = Callable[[str, np.ndarray], np.ndarray]


@dataclasses.dataclass
class Read:
    """What a program that reads an export knows of it."""

    names: list[str]
    project: Project
    points: np.ndarray  # (P, 3)
    observed: list[tuple[str, int, np.ndarray]] = dataclasses.field(default_factory=list)  # image, point, pixel


def read_nerfstudio(folder: Path) -> Read:
    """transforms.json: world from camera with OpenGL's axes, OpenCV's distortion, pixels from the corner."""
    from plyfile import PlyData

    content = json.loads((folder / "transforms.json").read_text())
    frames = {frame["file_path"].removeprefix("images/"): frame for frame in content["frames"]}

    def project(name, points):
        frame = frames[name]
        cam = np.linalg.inv(np.array(frame["transform_matrix"]))
        x, y, z = cam[:3, :3] @ points.T + cam[:3, 3:]
        u, v = x / -z, -y / -z
        r2 = u * u + v * v
        if content["camera_model"] == "OPENCV":
            k1, k2, p1, p2 = (frame[key] for key in ("k1", "k2", "p1", "p2"))
            radial = 1 + k1 * r2 + k2 * r2**2
            xd = u * radial + 2 * p1 * u * v + p2 * (r2 + 2 * u * u)
            yd = v * radial + 2 * p2 * u * v + p1 * (r2 + 2 * v * v)
        else:
            assert content["camera_model"] == "OPENCV_FISHEYE"
            r = np.sqrt(r2)
            angle = np.arctan(r)
            bent = angle * (1 + sum(frame[f"k{i}"] * angle ** (2 * i) for i in range(1, 5)))
            xd, yd = u * bent / r, v * bent / r
        return np.stack([frame["fl_x"] * xd + frame["cx"], frame["fl_y"] * yd + frame["cy"]], 1)

    cloud = PlyData.read(folder / content["ply_file_path"])["vertex"]
    points = np.stack([cloud[axis] for axis in "xyz"], 1)
    assert {p.name for p in cloud.properties} == {"x", "y", "z", "red", "green", "blue"}
    assert all((folder / frame["file_path"]).is_file() for frame in content["frames"])
    return Read(list(frames), project, points)


def read_bundler(folder: Path) -> Read:
    """Bundler v0.3: a camera looks along -z with y up, pixels from the image's center with y up."""
    import cv2

    names = [line.removeprefix("images/") for line in (folder / "list.txt").read_text().split("\n") if line]
    header, *rest = (folder / "bundle.out").read_text().split("\n")
    assert header == "# Bundle file v0.3"
    words = iter(" ".join(rest).split())
    count, total = int(next(words)), int(next(words))
    take = lambda n: np.array([float(next(words)) for _ in range(n)])  # noqa: E731
    cameras = [(take(3), take(9).reshape(3, 3), take(3)) for _ in range(count)]
    assert len(names) == count
    centers = [np.array(cv2.imread(str(folder / "images" / name)).shape[1::-1]) / 2 for name in names]

    def project(name, points):
        (f, k1, k2), rotation, translation = cameras[names.index(name)]
        p = points @ rotation.T + translation
        p = -p[:, :2] / p[:, 2:]
        r2 = (p**2).sum(1, keepdims=True)
        return f * (1 + k1 * r2 + k2 * r2**2) * p * [1, -1] + centers[names.index(name)]

    points, observed = [], []
    for number in range(total):
        points.append(take(3))
        assert (take(3) <= 255).all()
        for _ in range(int(next(words))):
            row, _, x, y = int(next(words)), int(next(words)), float(next(words)), float(next(words))
            observed.append((names[row], number, np.array([x, -y]) + centers[row]))
    assert next(words, None) is None
    return Read(names, project, np.array(points), observed)


def read_nvm_export(folder: Path) -> Read:
    """NVM_V3: quaternion of camera from world, center, pixels from the image's center with y down."""
    import cv2

    lines = [line for line in (folder / "model.nvm").read_text().split("\n") if line]
    assert lines[0] == "NVM_V3"
    assert lines[-1] == "0"
    count = int(lines[1])
    cameras, centers = {}, {}
    for line in lines[2 : 2 + count]:
        name, numbers = line.split("\t")
        f, w, x, y, z, *center, distortion, zero = map(float, numbers.split())
        assert distortion == zero == 0
        rotation = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
        name = name.removeprefix("images/")
        cameras[name] = f, rotation, np.array(center)
        centers[name] = np.array(cv2.imread(str(folder / "images" / name)).shape[1::-1]) / 2
    names = list(cameras)

    def project(name, points):
        f, rotation, center = cameras[name]
        p = (points - center) @ rotation.T
        return f * p[:, :2] / p[:, 2:] + centers[name]

    points, observed = [], []
    for number, line in enumerate(lines[3 + count : -1]):
        words = line.split()
        points.append(np.array(words[:3], float))
        seen = np.array(words[7:], float).reshape(-1, 4)
        assert len(seen) == int(words[6])
        observed += [(names[int(row)], number, np.array([x, y]) + centers[names[int(row)]]) for row, _, x, y in seen]
    assert len(points) == int(lines[2 + count])
    return Read(names, project, np.array(points), observed)
