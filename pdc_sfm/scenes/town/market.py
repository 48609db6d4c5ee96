"""Where everything stands on the square."""

from __future__ import annotations

import numpy as np

from pdc_sfm.scenes.materials.lettering import STALLS, WORDS
from pdc_sfm.scenes.render.mesh import Frame, MeshBuilder
from pdc_sfm.scenes.town import furniture
from pdc_sfm.scenes.town.ground_plan import HALF, ISLAND, KERB, SIDEWALK
from pdc_sfm.scenes.town.trees import tree

_EDGE = (HALF[0] - 2.3, HALF[1] - 2.3)  # on the pavement, near the kerb
_RIM = (ISLAND[0] - 0.5, ISLAND[1] - 0.5)  # on the raised middle, near its kerb

FOUNTAIN = (0.8, 0.3)
TREES = ((-8.2, 4.3), (8.6, 4.6), (-8.6, -4.4), (8.2, -4.8))
LAMPS = (
    *((-_RIM[0], 0.6), (_RIM[0], -0.4), (-4.2, -_RIM[1]), (4.6, -_RIM[1]), (-4.8, _RIM[1]), (5.2, _RIM[1])),
    *((-_EDGE[0], 8.5), (_EDGE[0], 7.5), (-9.5, -_EDGE[1]), (9.0, -_EDGE[1])),
    *((-_EDGE[0], -6.5), (_EDGE[0], -7.0), (7.5, _EDGE[1]), (-8.0, _EDGE[1])),
)
MARKET = ((-3.3, 4.7, np.pi), (-6.6, 0.6, -1.75), (4.9, 4.2, 2.6))  # x, y, heading
BENCHES = ((-6.2, -3.4, 1.2), (6.0, -3.2, 2.0), (-2.2, -5.2, 0.1), (2.6, -5.3, -0.05), (7.4, 1.8, 1.6))
BILLS = (6.4, -5.9)
CAFES = ((-6.5, 1.5 - HALF[1]), (-3.4, 1.4 - HALF[1]), (HALF[0] - 1.5, 1.5))


def furnish(b: MeshBuilder, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Build everything; returns what ground is taken, (m, 3) x, y, radius, and where lamps burn, (k, 3)."""
    taken: list[tuple[float, float, float]] = []

    def place(x: float, y: float, radius: float, heading: float = 0.0) -> Frame:
        taken.append((x, y, radius))
        return Frame.standing(x, y, KERB, heading)

    furniture.fountain(b, place(*FOUNTAIN, 3.5), random)
    for x, y in TREES:
        spot = place(x + random.uniform(-0.4, 0.4), y, 0.5)
        tree(b, spot, random, random.uniform(6.2, 7.8), random.uniform(1.8, 2.3))
    lamps = [furniture.lamp_post(b, place(x, y, 0.25)) for x, y in LAMPS]
    for (x, y, heading), word in zip(MARKET, random.permutation(len(STALLS))):
        spot = place(x, y, 1.9, heading + random.uniform(-0.15, 0.15))
        furniture.stall(b, spot, WORDS.index(STALLS[word]), random)
    for x, y, heading in BENCHES:
        furniture.bench(b, place(x, y, 0.9, heading), float(random.random()))
    furniture.bill_column(b, place(*BILLS, 0.9), random)
    for x, y in CAFES:
        furniture.cafe(b, place(x, y, 1.3), random)
    for x in np.arange(-12.0, 12.1, 2.0):
        for y in (SIDEWALK - 0.25 - HALF[1], HALF[1] - SIDEWALK + 0.25):
            if min(np.hypot(x - tx, y - ty) - radius for tx, ty, radius in taken) > 0.3:
                furniture.bollard(b, place(float(x), float(y), 0.15))
    return np.array(taken), np.array(lamps)
