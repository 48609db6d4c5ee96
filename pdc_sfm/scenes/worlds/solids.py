"""Smooth surfaces of triangles with a continuous texture, beside the quads of the builder."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.render.mesh import PARAMETERS, Frame, Mesh, MeshBuilder
from pdc_sfm.scenes.worlds.skins import Skin


class Solids(MeshBuilder):
    """A builder that also takes curved surfaces. Every surface has the same material: pictures."""

    def __init__(self) -> None:
        super().__init__()
        self._surfaces: list[Mesh] = []

    def block(self, frame: Frame, lo: tuple, hi: tuple, skin: Skin, faces: str = "+x-x+y-y+z-z") -> None:
        """A box with one skin, its picture laid on each face from the box's own corner."""
        x0, y0, z0 = lo
        size = tuple(high - low for low, high in zip(lo, hi))
        self.box(frame.shifted(x0, y0, z0), (0, 0, 0), size, 0, skin.tint, skin.params, faces)

    def picture(self, frame: Frame, x: tuple[float, float], z: tuple[float, float], y: float, skin: Skin) -> None:
        """An upright rectangle facing +y that shows its picture from its lower left corner."""
        self.panel(frame, x, z, y, 0, skin.tint, skin.params, own_uv=True)

    def level(self, frame: Frame, x: tuple[float, float], y: tuple[float, float], z: float, skin: Skin) -> None:
        """A level rectangle facing up."""
        corners = [(x[0], y[0], z), (x[1], y[0], z), (x[1], y[1], z), (x[0], y[1], z)]
        self.quads(frame, [corners], 0, skin.tint, skin.params, np.array(corners[0], float))

    def post(
        self, frame: Frame, radius: tuple[float, float], z: tuple[float, float], skin: Skin, sides: int = 20
    ) -> None:
        """A round post with a lid."""
        self.cylinder(frame, radius, z, 0, skin.tint, skin.params, sides, caps="+")

    def surface(self, frame: Frame, points: np.ndarray, uv: np.ndarray, skin: Skin) -> None:
        """A grid of points (rows, columns, 3), local, with texture metres (rows, columns, 2).

        Rows run upwards and columns to the right, seen from the front. Texture and normals are interpolated.
        """
        world = frame.to_world(points)
        normals = _grid_normals(world)
        a, b, c, d = (_corner(world, uv, normals, *at) for at in ((0, 0), (0, 1), (1, 1), (1, 0)))
        triangles = [[np.concatenate(parts) for parts in zip(*both)] for both in ((a, a), (b, c), (c, d))]
        points, texture, smooth = (np.stack([corner[k] for corner in triangles], 1) for k in range(3))
        self._surfaces.append(_triangles(points, texture, smooth, skin))

    def build(self) -> Mesh:
        mesh = super().build()
        for part in self._surfaces:
            mesh = mesh.joined(part)
        return mesh


def _corner(world: np.ndarray, uv: np.ndarray, normals: np.ndarray, row: int, column: int) -> tuple[np.ndarray, ...]:
    """Values at one corner of every cell, each (cells, k)."""
    rows, columns = world.shape[0] - 1, world.shape[1] - 1
    return tuple(
        x[row : row + rows, column : column + columns].reshape(rows * columns, -1) for x in (world, uv, normals)
    )


def _grid_normals(points: np.ndarray) -> np.ndarray:
    right, up = np.gradient(points, axis=1), np.gradient(points, axis=0)
    if np.allclose(points[:, 0], points[:, -1]):  # closed: the seam has one normal
        right[:, 0] = right[:, -1] = (points[:, 1] - points[:, -2]) / 2
    normal = np.cross(right, up)
    return normal / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-12)


def _triangles(points: np.ndarray, uv: np.ndarray, normals: np.ndarray, skin: Skin) -> Mesh:
    """Corners (n, 3, 3), texture (n, 3, 2) and normals (n, 3, 3) -> a mesh; triangles without area are left out."""
    sides = points[:, 1:] - points[:, :1]
    flat = np.cross(sides[:, 0], sides[:, 1])
    area = np.linalg.norm(flat, axis=1)
    keep = area > 1e-10
    points, uv, normals, sides, flat = (
        x[keep] for x in (points, uv, normals, sides, flat / np.maximum(area, 1e-12)[:, None])
    )
    inverse = np.linalg.pinv(sides)  # (n, 3, 2): in-plane differences to weights of the two sides
    axes = np.swapaxes(inverse @ (uv[:, 1:] - uv[:, :1]), 1, 2)  # (n, 2, 3)
    origin = points[:, 0] - np.einsum("nij,nj->ni", np.linalg.pinv(axes), uv[:, 0])
    matrix = np.swapaxes(
        inverse @ (normals[:, 1:] - normals[:, :1]), 1, 2
    )  # the normal at X: its first + M (X - first)
    shift = normals[:, 0] - np.einsum("nij,nj->ni", matrix, points[:, 0])
    n = len(points)
    params = np.zeros((n, PARAMETERS))
    params[:, : len(skin.params)] = skin.params
    return Mesh(
        np.concatenate([points, points[:, 2:]], 1),
        flat,
        np.zeros(n, np.int16),
        np.tile(np.asarray(skin.tint, float), (n, 1)),
        params,
        origin,
        axes,
        np.zeros(n, bool),
        np.concatenate([matrix, shift[..., None]], 2),
    )
