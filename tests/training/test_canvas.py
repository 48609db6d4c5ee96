"""Images of which a part lies on an empty canvas."""

import numpy as np
from tiny_training import make_settings, make_source

from pdc_sfm.training.canvas import EMPTY, SMALLEST, CanvasSource, laid_on_canvas, random_part
from pdc_sfm.training.sources import Sample

SIZE = (64, 96)
LEFT_HALF = np.indices(SIZE)[1] < 48


def shifted(by: int) -> Sample:
    """A reference whose pixels lie `by` columns further right in the query."""
    rng = np.random.default_rng(0)
    reference, query = (rng.integers(0, 100, (*SIZE, 3), dtype=np.uint8) for _ in range(2))
    flow = np.zeros((*SIZE, 2), np.float32)
    flow[..., 0] = by
    seen = np.indices(SIZE)[1] + by < SIZE[1]
    return Sample(reference, query, flow, seen, ~seen)


def test_what_the_canvas_covers_has_no_counterpart():
    sample = laid_on_canvas(shifted(0), "reference", LEFT_HALF)
    assert (sample.reference[~LEFT_HALF] == EMPTY).all()
    assert np.array_equal(sample.valid, LEFT_HALF)
    assert np.array_equal(sample.hidden, ~LEFT_HALF)


def test_what_lands_on_the_canvas_of_the_query_has_no_counterpart():
    sample = laid_on_canvas(shifted(10), "query", LEFT_HALF)
    assert np.array_equal(sample.reference, shifted(10).reference)
    assert np.array_equal(sample.valid, np.indices(SIZE)[1] < 38)
    assert np.array_equal(sample.hidden, np.indices(SIZE)[1] >= 38)


def test_parts_are_never_slivers():
    shares = [random_part(SIZE, np.random.default_rng(seed)).mean() for seed in range(40)]
    assert min(shares) > 0.5 * SMALLEST**2
    assert max(shares) < 1


def test_the_share_says_how_many_images_lie_on_a_canvas_and_a_number_gives_the_same_sample():
    settings = make_settings()
    source = CanvasSource(make_source(settings), 0.5, settings.seed)
    plain = make_source(settings)
    on_canvas = 0
    for index in range(12):
        sample, again, before = (
            source.sample(index, (64, 64)),
            source.sample(index, (64, 64)),
            plain.sample(index, (64, 64)),
        )
        assert np.array_equal(sample.query, again.query)
        on_canvas += sum(not np.array_equal(getattr(sample, n), getattr(before, n)) for n in ("reference", "query"))
        assert not (sample.valid & ~before.valid).any()
    assert 6 <= on_canvas <= 18
