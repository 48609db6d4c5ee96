"""Depth maps to one cloud: every surface once, at the mean of what the images that see it say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.files import atomic_path
from pdc_sfm.fusion.depth import DensePlan
from pdc_sfm.fusion.geometry import Transfer, lookup
from pdc_sfm.fusion.workspace import DENSE, Workspace, read_map
from pdc_sfm.images import read_image
from pdc_sfm.progress import progress

# COLMAP's fused format, and the uncertainty behind it, which other readers pass over
VERTEX = np.dtype([("xyz", "<f4", 3), ("normal", "<f4", 3), ("rgb", "u1", 3), ("sigma", "<f4")])
PROPERTIES = (
    *(f"float {name}" for name in ("x", "y", "z", "nx", "ny", "nz")),
    *(f"uchar {name}" for name in ("red", "green", "blue")),
    "float sigma",
)
LONGEST_HEADER = 1 << 12  # bytes
ONE_POINT = 0.01  # of its depth: what two images show there is one point


def fuse(plan: DensePlan) -> int:
    """Write the cloud of all checked depth maps, and which images see each point. Returns the number of points."""
    used = {number: np.zeros(view.size[::-1], bool) for number, view in enumerate(plan.views)}
    path, count = plan.workspace.cloud, 0
    seen_path = path.with_name(f"{path.name}.vis")
    with atomic_path(seen_path) as seen_partial, open(seen_partial, "wb") as seen_file:
        seen_file.write(bytes(8))
        with atomic_path(path) as partial, open(partial, "wb") as file:
            file.write(_header(0))
            for number in progress(range(len(plan.views)), "fusing", "image"):
                points, visible = _points_of(plan, number, used)
                file.write(points.tobytes())
                seen_file.write(_visibility(visible))
                count += len(points)
            file.seek(0)
            file.write(_header(count))
        seen_file.seek(0)
        seen_file.write(np.uint64(count).astype("<u8").tobytes())
    return count


def _points_of(plan: DensePlan, number: int, used: dict[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Points of the pixels of an image that no image before it has shown; and who sees them, (N, images of plan) as a list.

    The pixels of partners that show the same points are used up.
    """
    view = plan.views[number]
    depth, sigma, normal = (read_map(plan.workspace.map(kind, view.name)) for kind in ("depth", "sigma", "normal"))
    rows, columns = np.nonzero((depth > 0) & ~used[number])
    x, y, rho = columns.astype(np.float32), rows.astype(np.float32), 1 / depth[rows, columns]
    sees = np.zeros((len(rows), 1 + len(plan.partners[number])), bool)
    sees[:, 0] = True
    for slot, other in enumerate(plan.partners[number], start=1):
        there = plan.views[other]
        u, v, expected = Transfer.between(view, there, view.size, there.size).points(x, y, rho)
        own = lookup(read_map(plan.workspace.map("depth", there.name)), u, v)
        with np.errstate(invalid="ignore"):
            same = (own > 0) & (np.abs(own * expected - 1) < ONE_POINT)
        sees[:, slot] = same
        used[other][np.rint(v[same]).astype(np.int64), np.rint(u[same]).astype(np.int64)] = True
    used[number][:] = True
    image = read_image(plan.workspace.images / view.name)
    points = np.empty(len(rows), VERTEX)
    rays = np.stack([x, y, np.ones_like(x)], -1) @ np.linalg.inv(view.intrinsics).T
    rotation, translation = view.cam_from_world[:, :3], view.cam_from_world[:, 3]
    points["xyz"] = (rays / rho[:, None] - translation) @ rotation
    points["normal"] = normal[rows, columns] @ rotation
    points["rgb"] = image[rows, columns]
    points["sigma"] = sigma[rows, columns] * np.linalg.norm(rays, axis=1)  # along the ray
    return points, _numbers(sees, [number, *plan.partners[number]])


def _numbers(sees: np.ndarray, images: Sequence[int]) -> np.ndarray:
    """(N, 1 + P) numbers of the images that see each point, -1 where one does not."""
    return np.where(sees, np.array(images, np.int64), -1)


def _visibility(images: np.ndarray) -> bytes:
    """COLMAP's: of each point uint32 how many images see it, then their numbers."""
    if not len(images):
        return b""
    rows = np.concatenate([(images >= 0).sum(1, keepdims=True), images], 1)
    return rows[rows >= 0].astype("<u4").tobytes()


def _header(count: int) -> bytes:
    """Of one length whatever the count, which is known at the end."""
    lines = "".join(f"property {text}\n" for text in PROPERTIES)
    return f"ply\nformat binary_little_endian 1.0\nelement vertex {count:<12}\n{lines}end_header\n".encode("ascii")


def read_cloud(path: Path | str) -> np.ndarray:
    """The points of a cloud of ours, as `VERTEX`."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FormatError(f"cannot read {path}: {error.strerror}") from None
    header, mark, _ = data[:LONGEST_HEADER].partition(b"end_header\n")
    own = [
        line.split(b" ", 1)[1].decode("ascii", "replace") for line in header.splitlines() if line[:9] == b"property "
    ]
    start = len(header) + len(mark)
    if tuple(own) != PROPERTIES or (len(data) - start) % VERTEX.itemsize:
        raise FormatError(f"{path} is no whole cloud that `pdc-sfm densify` wrote")
    return np.frombuffer(data, VERTEX, offset=start)


def dense_cloud(folder: Path | str) -> tuple[np.ndarray, np.ndarray] | None:
    """Points (N, 3) float64 and colors (N, 3) of the cloud that was made of the map in `folder`, in its usual place."""
    workspace = Workspace(Path(folder) / DENSE)
    if not workspace.record.is_file() or not workspace.cloud.is_file():
        return None
    cloud = read_cloud(workspace.cloud)
    return (cloud["xyz"].astype(np.float64), cloud["rgb"].copy()) if len(cloud) else None
