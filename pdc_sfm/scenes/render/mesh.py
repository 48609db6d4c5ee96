"""The town's geometry: planar quads, each with a material and a texture frame measured in metres.

World: x east, y north, z up, metres. Local frames: x along a facade (to the left of who looks at it), y out of it, z up.
Texture coordinates (u, v) are metres, u to the viewer's right, v upwards.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike

from pdc_sfm.scenes.render.round_shapes import RoundShapes

PARAMETERS = 8  # free numbers a material may read, per quad


@dataclass(frozen=True)
class Frame:
    """A local frame: `axes` holds the local x, y, z directions in the world as rows."""

    origin: np.ndarray  # (3,)
    axes: np.ndarray  # (3, 3)

    @classmethod
    def standing(cls, x: float, y: float, z: float = 0.0, heading: float = 0.0) -> Frame:
        """A frame on the ground; at heading 0 (radians) local and world axes agree."""
        c, s = np.cos(heading), np.sin(heading)
        return cls(np.array([x, y, z], float), np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]], float))

    def shifted(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Frame:
        return replace(self, origin=self.origin + np.array([x, y, z], float) @ self.axes)

    def turned(self, heading: float) -> Frame:
        """Turned about its own z axis."""
        return replace(self, axes=Frame.standing(0, 0, 0, heading).axes @ self.axes)

    def tilted(self, angle: float) -> Frame:
        """Turned about its own x axis."""
        c, s = np.cos(angle), np.sin(angle)
        return replace(self, axes=np.array([[1, 0, 0], [0, c, s], [0, -s, c]], float) @ self.axes)

    def to_world(self, points: ArrayLike) -> np.ndarray:
        """(..., 3) local -> world."""
        return self.origin + np.asarray(points, float) @ self.axes


@dataclass(frozen=True)
class Mesh:
    """n quads; a triangle repeats its last corner. Corners run counter-clockwise seen from the front."""

    corners: np.ndarray  # (n, 4, 3) world
    normal: np.ndarray  # (n, 3)
    material: np.ndarray  # (n,) int16
    tint: np.ndarray  # (n, 3) linear base color
    params: np.ndarray  # (n, PARAMETERS)
    uv_origin: np.ndarray  # (n, 3)
    uv_axes: np.ndarray  # (n, 2, 3)
    two_sided: np.ndarray  # (n,) bool
    curve: np.ndarray  # (n, 3, 4) [M | -M c]: the smooth normal at X is M (X - c), normalized; all zero: flat

    def __len__(self) -> int:
        return len(self.corners)

    def joined(self, other: Mesh) -> Mesh:
        return Mesh(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))


class MeshBuilder(RoundShapes):
    """Collects quads. All coordinates are local to the frame given with each call."""

    def __init__(self) -> None:
        self._parts: list[tuple] = []

    def quads(
        self,
        frame: Frame,
        corners: ArrayLike,
        material: int,
        tint: np.ndarray | tuple = (1, 1, 1),
        params: tuple = (),
        uv_origin: ArrayLike | None = None,
        uv_axes: np.ndarray | None = None,
        two_sided: bool = False,
        curve: np.ndarray | None = None,
    ) -> None:
        """Add (n, 4, 3) quads. Unless given, the texture frame starts at the frame's origin and lies in each quad's plane.

        uv_origin: (3,) or (n, 3); uv_axes: (2, 3) or (n, 2, 3); curve: (3, 4), see Mesh. All local.
        """
        self._parts.append(
            (
                frame,
                np.asarray(corners, float).reshape(-1, 4, 3),
                material,
                tint,
                params,
                uv_origin,
                uv_axes,
                two_sided,
                curve,
            )
        )

    def build(self) -> Mesh:
        parts = self._parts
        count = np.array([len(part[1]) for part in parts], int)

        def spread(values: ArrayLike, dtype: type = float) -> np.ndarray:
            return np.repeat(np.array(values, dtype), count, axis=0)

        axes = spread([part[0].axes for part in parts]).reshape(-1, 3, 3)
        origin = spread([part[0].origin for part in parts]).reshape(-1, 3)
        local = np.concatenate([part[1] for part in parts]) if parts else np.zeros((0, 4, 3))
        corners = origin[:, None] + local @ axes
        normal = _unit(_cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]))
        uv_axes, uv_origin, curve = _texture_axes(normal, axes[:, 0]), origin, np.zeros((len(corners), 3, 4))
        end = np.cumsum(count)
        for start, stop, (frame, _, _, _, _, own_origin, own_axes, _, bend) in zip(end - count, end, parts):
            if own_origin is not None:
                uv_origin[start:stop] = frame.to_world(own_origin)
            if own_axes is not None:
                uv_axes[start:stop] = own_axes @ frame.axes
            if bend is not None:  # to the world, where normals go by the inverse transpose (axes may be squeezed)
                inverse = np.linalg.inv(frame.axes)
                matrix = inverse @ bend[:, :3] @ inverse.T
                curve[start:stop, :, :3] = matrix
                curve[start:stop, :, 3] = inverse @ bend[:, 3] - matrix @ frame.origin
        padded = [(*part[4], *(0.0,) * (PARAMETERS - len(part[4]))) for part in parts]
        return Mesh(
            corners,
            normal,
            spread([part[2] for part in parts], np.int16),
            spread([part[3] for part in parts]).reshape(-1, 3),
            spread(padded).reshape(-1, PARAMETERS),
            uv_origin,
            uv_axes,
            spread([part[7] for part in parts], bool),
            curve,
        )

    def panel(
        self,
        frame: Frame,
        x: tuple[float, float],
        z: tuple[float, float],
        y: float,
        material: int,
        tint: np.ndarray | tuple = (1, 1, 1),
        params: tuple = (),
        own_uv: bool = False,
    ) -> None:
        """An upright rectangle facing +y; with `own_uv` its texture starts at its own lower left corner."""
        corners = [(x[0], y, z[0]), (x[1], y, z[0]), (x[1], y, z[1]), (x[0], y, z[1])]
        self.quads(frame, [corners[::-1]], material, tint, params, corners[1] if own_uv else None)

    def box(
        self,
        frame: Frame,
        lo: tuple,
        hi: tuple,
        material: int,
        tint: np.ndarray | tuple = (1, 1, 1),
        params: tuple = (),
        faces: str = "+x-x+y-y+z-z",
    ) -> None:
        (x0, y0, z0), (x1, y1, z1) = lo, hi
        sides = {
            "+x": [(x1, y0, z0), (x1, y1, z0), (x1, y1, z1), (x1, y0, z1)],
            "-x": [(x0, y1, z0), (x0, y0, z0), (x0, y0, z1), (x0, y1, z1)],
            "+y": [(x1, y1, z0), (x0, y1, z0), (x0, y1, z1), (x1, y1, z1)],
            "-y": [(x0, y0, z0), (x1, y0, z0), (x1, y0, z1), (x0, y0, z1)],
            "+z": [(x0, y0, z1), (x1, y0, z1), (x1, y1, z1), (x0, y1, z1)],
            "-z": [(x0, y1, z0), (x1, y1, z0), (x1, y0, z0), (x0, y0, z0)],
        }
        wanted = [faces[i : i + 2] for i in range(0, len(faces), 2)]
        self.quads(frame, [sides[face] for face in wanted], material, tint, params)

    def prism(
        self,
        frame: Frame,
        outline: ArrayLike,
        y: tuple[float, float],
        material: int,
        tint: np.ndarray | tuple = (1, 1, 1),
        params: tuple = (),
        caps: bool = True,
    ) -> None:
        """A convex outline (n, 2) in x-z, counter-clockwise seen from -y, drawn out from y[0] to y[1]."""
        outline = np.asarray(outline, float)
        back = np.insert(outline, 1, y[0], axis=1)
        front = np.insert(outline, 1, y[1], axis=1)
        sides = np.stack([back, front, np.roll(front, -1, 0), np.roll(back, -1, 0)], 1)
        self.quads(frame, sides, material, tint, params)
        if caps:
            self.fan(frame, back, material, tint, params)
            self.fan(frame, front[::-1], material, tint, params)

    def fan(
        self,
        frame: Frame,
        outline: ArrayLike,
        material: int,
        tint: np.ndarray | tuple = (1, 1, 1),
        params: tuple = (),
        uv_origin: ArrayLike | None = None,
    ) -> None:
        """A convex planar polygon (n, 3) as triangles around its first corner."""
        corners = np.asarray(outline, float)
        triangles = [(corners[0], corners[i], corners[i + 1], corners[i + 1]) for i in range(1, len(corners) - 1)]
        self.quads(frame, triangles, material, tint, params, uv_origin)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """np.cross for (n, 3), without its overhead."""
    return np.stack(
        [
            a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1],
            a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
            a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0],
        ],
        1,
    )


def _texture_axes(normal: np.ndarray, along: np.ndarray) -> np.ndarray:
    """In-plane axes (n, 2, 3): v as upright as the plane allows, u horizontal; on level planes u is `along`."""
    level = np.abs(normal[:, 2:]) > 0.999
    across = np.stack([-normal[:, 1], normal[:, 0], np.zeros(len(normal))], 1)  # up x normal
    u = _unit(np.where(level, along, across))
    return np.stack([u, _unit(_cross(normal, u))], 1)
