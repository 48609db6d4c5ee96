"""What made-up pairs say of a map, for tests of its links and its verdict."""

from pdc_sfm.colmap.mapping.evidence import PairEvidence


def evidence(first: int, second: int, cells: int, explained: float = 1.0, occupied: int = 2000, **more) -> PairEvidence:
    """A pair that covers so many cells, of which the map explains a share."""
    more = {"exact": explained, **more}
    return PairEvidence(first, second, 2 * cells, cells, explained, round(explained * cells), occupied, **more)
