"""A mesh of a cloud with normals, by COLMAP's screened Poisson reconstruction."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

from pdc_sfm.errors import StorageError
from pdc_sfm.files import atomic_path

_CALL = """
import sys, pycolmap
options = pycolmap.PoissonMeshingOptions(depth=int(sys.argv[3]), trim=float(sys.argv[4]))
pycolmap.poisson_meshing(sys.argv[1], sys.argv[2], options)
"""


def write_mesh(cloud: Path, output: Path, points: int) -> None:
    """Of a PLY file of so many points with normals, to another one.

    A surface of N points is sampled at the octree's depth of log2 sqrt N: the mesh is finer by two, and what is sampled
    more coarsely by one is trimmed (COLMAP's own depths, 13 and 10, are for millions of points).
    In a process of its own: the library ends the process where memory or the disk does not suffice.
    """
    sampled = 0.5 * math.log2(max(points, 4))
    with atomic_path(output) as partial:
        named = partial.with_suffix(".ply")  # which COLMAP insists on
        words = [str(cloud), str(named), str(min(13, math.ceil(sampled) + 2)), str(max(0.0, sampled - 1))]
        made = subprocess.run([sys.executable, "-c", _CALL, *words], capture_output=True, text=True, check=False)
        if made.returncode or not named.is_file():
            named.unlink(missing_ok=True)
            said = (made.stderr.strip().splitlines() or ["nothing was said"])[-1]
            raise StorageError(f"COLMAP made no mesh of {cloud}: {said}")
        os.replace(named, partial)
