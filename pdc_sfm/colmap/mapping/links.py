"""What holds a map together: the links between its parts, what supports each, and what speaks against it.

The verified pairs that the model explains make a graph of its images; its maximum spanning tree has the fewest links without
which the map falls in two, and the strongest. A true link is supported by pairs that cover much of their images. A false one
(things that look alike, a patch of smooth flow) covers little, or pairs as strong as itself contradict it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from pdc_sfm.colmap.mapping.evidence import EXPLAINED, PairEvidence

# Cells (of `evidence.GRID`) that the strongest pair across a link covers, at least: one in fifteen of a 4:3 image. Development
# half of benchmarks/honesty.py: 412 and more in right maps, 29 to 102 where two parts of a map were joined by mistake.
MIN_CELLS = 200
# Times as many where no second pair confirms it: of the wrong pairs of the suite's rooms, courts, towns and photographs one in
# twenty covers more than 364 cells; two may agree, since they show the same thing that looks alike. For the same reason a pair
# that is alone counts half against one that contradicts it.
ALONE = 2.0
# Where so many pairs of a map are not explained by it, these tell what wrong pairs cover there, and twice what the strongest
# covers is enough, from MIN_CELLS on: a wrong pair that stands out so among twenty is none of their kind.
MANY_WRONG = 20
# Where three pairs or more support a link, and pictures have keypoints in few cells (a thing before a plain background):
MIN_SHARE = 0.2  # of these cells in a middle image,
FEWEST_CELLS = 100  # but no fewer than these
# Cells of the strongest pair that contradicts a link, by those of the strongest that supports it: up to .61 in right maps (a
# town of repeated facades; .37 in others), .81 and more in wrong ones but one of .54, of which `missing` tells too; this is
# the geometric mean.
MAX_AGAINST = 0.7
# Cells of all pairs that contradict a link and agree with each other on how its part would stand instead, by those of all that
# support it. Wrong pairs by chance do not agree; those of things that look alike do: .36 at most in right
# maps, .77 and more in wrong ones (benchmarks/honesty.py, worlds 13xxx); this is the geometric mean.
MAX_ALTERNATIVE = 0.53
ALIKE = np.radians(10)  # between the turns that pairs want, for them to agree
MOST_COMPARED = 300  # of the contradicting pairs of a link, those that cover most
# Of the matches of the pairs across a link, weighted by cells, what the map explains within a 256th of the picture, by what each
# pair's own geometry explains so: matches of wide views are less sharp than that, whatever cameras say. Fresh worlds of
# benchmarks/honesty.py (6xxx): .86 and more of every link in right maps, .25 to .65 of some link where sides of a thing were
# mixed up; this is their geometric mean.
MIN_FIT = 0.75
# Of the cells in which the images of a link's pairs see a surface at one place, by the map, those in which they share no point
# of it (`missing`): .105 at most of any link in right maps (of a town's image by four pairs; .03 of the fresh worlds 6xxx of
# benchmarks/honesty.py), .29 to .39 where a wing of a court was laid over another; this is the geometric mean.
MAX_MISSED = 0.17
FEWEST_MISSED = 100  # cells, for a share to mean something


@dataclasses.dataclass(frozen=True)
class Link:
    """What ties a part of the map to the rest."""

    pair: PairEvidence  # the strongest across it
    pairs: int  # that support it
    against: PairEvidence | None  # the strongest that contradicts it
    part: frozenset[int]  # image ids of the smaller side
    needed: float  # cells that prove it, by the number of pairs that support it
    fit: float  # share of the matches of all that support it that the map explains closely
    missed: float = 0.0  # share of the cells in which its images should see the same points, and do not
    # cells of pairs that agree on another place of the part, by those of the pairs that support it
    alternative: float = 0.0

    @property
    def is_weak(self) -> bool:
        """Whether too little supports it."""
        return self.pair.explained_cells < self.needed

    @property
    def is_denied(self) -> bool:
        """Whether the pictures of both sides are of two things that look alike."""
        return self.missed > MAX_MISSED

    @property
    def is_contradicted(self) -> bool:
        """Whether pairs that agree say otherwise, or one nearly as strong as the strongest of the link, or as half of it where
        it is alone."""
        weight = self.pair.explained_cells / (ALONE if self.pairs == 1 else 1)
        one = self.against is not None and self.against.cells > MAX_AGAINST * weight
        return one or self.has_alternative

    @property
    def has_alternative(self) -> bool:
        """Whether pairs that together cover half as much as those that support it agree on another place of the part."""
        return self.alternative > MAX_ALTERNATIVE

    @property
    def is_bent(self) -> bool:
        """Whether the map is only near what the pairs of the link say."""
        return self.fit < MIN_FIT


def supports(pair: PairEvidence) -> bool:
    """Whether the model explains most of a pair."""
    return pair.explained >= EXPLAINED


def needed_cells(pairs: Sequence[PairEvidence]) -> float:
    """Cells that a pair must cover to prove a link of this map that others confirm."""
    middle = np.median([pair.occupied for pair in pairs]) if pairs else 0
    return float(np.clip(MIN_SHARE * middle, FEWEST_CELLS, MIN_CELLS))


def needed_alone(pairs: Sequence[PairEvidence]) -> float:
    """Cells that a pair must cover to prove a link of this map that no other confirms."""
    wrong = [pair.cells for pair in pairs if not supports(pair)]
    most = ALONE * MIN_CELLS
    return float(np.clip(ALONE * max(wrong), MIN_CELLS, most)) if len(wrong) >= MANY_WRONG else most


def connected_parts(images: Collection[int], pairs: Sequence[PairEvidence]) -> list[frozenset[int]]:
    """Images that pairs connect, the largest part first."""
    return connected_sets(images, [(pair.first, pair.second) for pair in pairs])


def connected_sets(images: Collection[int], pairs: Sequence[tuple[int, int]]) -> list[frozenset[int]]:
    """The same, of pairs of images."""
    part = {image: {image} for image in images}
    for first, second in pairs:
        small, large = sorted((part[first], part[second]), key=len)
        if small is not large:
            large |= small
            part.update(dict.fromkeys(small, large))
    distinct = {id(members): members for members in part.values()}.values()
    return sorted((frozenset(members) for members in distinct), key=lambda members: (-len(members), min(members)))


def find_links(images: Collection[int], pairs: Sequence[PairEvidence]) -> list[Link]:
    """The links of a map, the weakest first."""
    tree = _Tree(images, sorted(filter(supports, pairs), key=lambda pair: -pair.explained_cells))
    count, cells, exact = (dict.fromkeys(tree.edges, 0.0) for _ in range(3))
    against: dict[int, list[PairEvidence]] = {edge: [] for edge in tree.edges}
    for pair in pairs:
        for edge in tree.path(pair.first, pair.second):
            if supports(pair):
                count[edge] += 1
                cells[edge] += pair.cells
                exact[edge] += pair.cells * pair.exact
            else:
                against[edge].append(pair)
    missed = _missed_shares(tree, pairs)
    needed = {1: needed_alone(pairs), 2: float(MIN_CELLS)}
    confirmed = needed_cells(pairs)  # by three pairs or more
    found = [
        Link(
            pair,
            int(count[edge]),
            max(against[edge], key=lambda other: other.cells, default=None),
            (side := tree.smaller_side(edge)),
            needed.get(int(count[edge]), confirmed),
            exact[edge] / max(1.0, cells[edge]),
            missed[edge],
            _agreed_cells(against[edge], side) / max(1.0, cells[edge]),
        )
        for edge, pair in tree.edges.items()
    ]
    return sorted(found, key=lambda link: link.pair.explained_cells)


def _agreed_cells(pairs: Sequence[PairEvidence], part: Collection[int]) -> int:
    """Cells of those pairs, two or more, that agree on how a part of the map would stand instead; 0 if none do."""
    known = sorted((pair for pair in pairs if pair.turn is not None), key=lambda pair: -pair.cells)[:MOST_COMPARED]
    if len(known) < 2:
        return 0
    turns = Rotation.from_rotvec([np.array(pair.turn) * (1 if pair.first in part else -1) for pair in known])
    alike = np.stack([(turn.inv() * turns).magnitude() < ALIKE for turn in turns])
    sums = alike @ np.array([pair.cells for pair in known])
    return int(sums[alike.sum(1) > 1].max(initial=0))


def _missed_shares(tree: _Tree, pairs: Sequence[PairEvidence]) -> dict[int, float]:
    """Of each link by the pairs across it. Pairs of a link that is denied say nothing of the others that they cross."""
    missed, shared = (dict.fromkeys(tree.edges, 0) for _ in range(2))

    def add(pair: PairEvidence, times: int) -> None:
        for edge in tree.path(pair.first, pair.second):
            missed[edge] += times * pair.missed
            shared[edge] += times * pair.shared

    def share(edge: int) -> float:
        return missed[edge] / (missed[edge] + shared[edge]) if missed[edge] >= FEWEST_MISSED else 0.0

    heard = [pair for pair in pairs if supports(pair)]
    for pair in heard:
        add(pair, 1)
    found: dict[int, float] = {}
    while len(found) < len(missed):
        worst = max((edge for edge in missed if edge not in found), key=share)
        if share(worst) <= MAX_MISSED:
            break
        found[worst], side = share(worst), tree.smaller_side(worst)
        crosses = [(pair.first in side) != (pair.second in side) for pair in heard]
        for pair in itertools.compress(heard, crosses):
            add(pair, -1)
        heard = [pair for pair, gone in zip(heard, crosses) if not gone]
    return {edge: share(edge) for edge in missed} | found


def opposed_links(links: Sequence[Link]) -> list[Link]:
    """Of the links, the weakest first, that each contradicting pair crosses: the weakest, unless little holds it anyway."""
    by_pair = {link.against: link for link in reversed(links) if link.is_contradicted and not link.is_weak}
    return list(reversed(by_pair.values()))


def proven_parts(images: Collection[int], pairs: Sequence[PairEvidence]) -> list[frozenset[int]]:
    """Images that hold together without weak and denied links, the largest part first."""
    cuts = [link.part for link in find_links(images, pairs) if link.is_weak or link.is_denied]
    inside = (p for p in pairs if supports(p) and all((p.first in cut) == (p.second in cut) for cut in cuts))
    return connected_parts(images, list(inside))


class _Tree:
    """The maximum spanning forest of pairs, the strongest given first. An edge is named by its lower image."""

    def __init__(self, images: Collection[int], pairs: Sequence[PairEvidence]):
        neighbors: dict[int, dict[int, PairEvidence]] = {image: {} for image in images}
        part = {image: {image} for image in images}
        for pair in pairs:
            small, large = sorted((part[pair.first], part[pair.second]), key=len)
            if small is not large:
                neighbors[pair.first][pair.second] = neighbors[pair.second][pair.first] = pair
                large |= small
                part.update(dict.fromkeys(small, large))
        self._parent: dict[int, int] = {}
        self._depth: dict[int, int] = {}
        self._root: dict[int, int] = {}
        self._order: list[int] = []
        self.edges: dict[int, PairEvidence] = {}
        for root in sorted(images):
            if root not in self._depth:
                self._hang(root, neighbors)

    def _hang(self, root: int, neighbors: dict[int, dict[int, PairEvidence]]) -> None:
        self._depth[root], waiting = 0, [root]
        while waiting:
            image = waiting.pop()
            self._root[image] = root
            self._order.append(image)
            for other, pair in neighbors[image].items():
                if other not in self._depth:
                    self._depth[other], self._parent[other], self.edges[other] = self._depth[image] + 1, image, pair
                    waiting.append(other)

    def path(self, first: int, second: int) -> list[int]:
        """The edges between two images; none if nothing connects them."""
        edges: list[int] = []
        if self._root[first] != self._root[second]:
            return edges
        while first != second:
            first, second = sorted((first, second), key=lambda image: -self._depth[image])
            edges.append(first)
            first = self._parent[first]
        return edges

    def smaller_side(self, edge: int) -> frozenset[int]:
        """The images on one side of an edge, the side with fewer."""
        below = {edge}
        for image in self._order:  # parents come before children
            if self._parent.get(image) in below:
                below.add(image)
        whole = {image for image in self._order if self._root[image] == self._root[edge]}
        rest = whole - below
        return frozenset(below if len(below) <= len(rest) else rest)
