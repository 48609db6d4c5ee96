"""Moving objects on constructed scenes: whose flow a pixel has, which pixels the loss may use, which are seen."""

import numpy as np
import pytest

from pdc_sfm.synthetic.objects import (
    MovingObject,
    compose_layers,
    invert,
    paste,
    random_cutout,
    random_objects,
    transform,
)
from pdc_sfm.synthetic.warps import ImageFrame

FRAME = ImageFrame(80, 100)
SHIFT = np.array([5.0, 3.0], np.float32)  # motion of the background: integers, so that targets are pixels


def square(side: int, color=(255, 0, 0)) -> np.ndarray:
    """An opaque square of `side` pixels with a transparent rim of one pixel."""
    rgba = np.zeros((side + 2, side + 2, 4), np.uint8)
    rgba[1:-1, 1:-1] = (*color, 255)
    return rgba


def at(x: int, y: int) -> np.ndarray:
    """The placement that puts the first opaque pixel of a square at (x, y)."""
    return np.array([[1.0, 0, x - 1], [0, 1.0, y - 1]])


def box(x: int, y: int, side: int) -> np.ndarray:
    region = np.zeros((FRAME.height, FRAME.width), bool)
    region[max(y, 0) : y + side, max(x, 0) : x + side] = True
    return region


def layers(objects, mask="injective"):
    return compose_layers(FRAME.grid() + SHIFT, objects, FRAME, mask)


IN_VIEW = FRAME.contains(FRAME.grid() + SHIFT)


def test_without_objects_everything_is_used_and_what_is_in_view_is_visible():
    for mask in ("none", "injective", "occlusion"):
        result = layers([], mask)
        assert result.mask.all()
        assert (result.visible == IN_VIEW).all()
        assert (result.target == FRAME.grid() + SHIFT).all()


def test_case_a_keeps_the_background_flow_behind_the_object_and_is_not_visible():
    item = MovingObject(square(10), at(20, 30), None)
    assert item.case == "A"
    result = layers([item])
    assert (result.target == FRAME.grid() + SHIFT).all()
    assert result.mask.all()
    assert (result.visible == IN_VIEW & ~box(20, 30, 10)).all()
    assert (layers([item], "occlusion").mask == ~box(20, 30, 10)).all()


def test_case_b_keeps_the_background_flow_of_what_it_hides():
    item = MovingObject(square(10), None, at(40, 30))
    assert item.case == "B"
    result = layers([item])
    hidden = box(40 - 5, 30 - 3, 10)  # B': the background moves by (5, 3)
    assert (result.target == FRAME.grid() + SHIFT).all()
    assert result.mask.all()
    assert (result.visible == IN_VIEW & ~hidden).all()
    assert (layers([item], "occlusion").mask == ~hidden).all()


def test_case_c_has_its_own_flow_and_what_it_comes_to_hide_is_masked_out():
    item = MovingObject(square(10), at(20, 30), at(60, 40))
    assert item.case == "C"
    result = layers([item])
    own, hidden = box(20, 30, 10), box(60 - 5, 40 - 3, 10)
    assert np.allclose(result.target[own] - FRAME.grid()[own], (40, 10))
    assert np.allclose(result.target[~own] - FRAME.grid()[~own], SHIFT)
    assert (result.mask == ~hidden).all()
    assert (result.visible == IN_VIEW & ~hidden).all()
    assert (layers([item], "none").mask).all()


def test_all_three_cases_together_give_the_masks_of_the_paper():
    a = MovingObject(square(8), at(10, 10), None)
    b = MovingObject(square(8), None, at(40, 60))
    c = MovingObject(square(8), at(60, 20), at(70, 50))
    a_region, b_hidden, c_hidden = box(10, 10, 8), box(35, 57, 8), box(65, 47, 8)
    assert (layers([a, b, c]).mask == ~c_hidden).all()
    assert (layers([a, b, c], "occlusion").mask == ~(a_region | b_hidden | c_hidden)).all()


def test_an_object_turned_and_scaled_moves_by_its_affine_map():
    item = MovingObject(square(20), at(20, 20), np.array([[0.0, -1.5, 70], [1.5, 0.0, 20]]))
    inside = np.array([[25.0, 31.0]], np.float32)
    in_cutout = inside - (19, 19)  # at(20, 20) puts cut-out pixel (1, 1) at (20, 20)
    x, y = in_cutout[0]
    assert layers([item]).target[31, 25] == pytest.approx([70 - 1.5 * y, 20 + 1.5 * x])
    assert transform(item.query_from_reference(), inside)[0] == pytest.approx([70 - 1.5 * y, 20 + 1.5 * x])


def test_a_later_object_takes_the_flow_and_uncovers_what_only_the_earlier_one_hid():
    low = MovingObject(square(10), at(20, 30), at(60, 40))
    # the later object covers all of the earlier one in the reference and goes elsewhere in the query
    high = MovingObject(square(14), at(18, 28), at(70, 10))
    result = layers([low, high])
    own = box(18, 28, 14)
    assert np.allclose(result.target[own] - FRAME.grid()[own], (52, -18))
    hidden_by_low, hidden_by_high = box(55, 37, 10), box(65, 7, 14)
    # only the background goes to where the earlier object stands in the query: one-to-one, so it stays in the loss
    assert (result.mask == ~hidden_by_high).all()
    assert (result.visible == IN_VIEW & ~hidden_by_low & ~hidden_by_high).all()


def test_an_object_that_leaves_the_reference_hides_without_a_collision():
    item = MovingObject(square(10), at(-6, 30), at(50, 40))  # columns -6..3: four of ten are in the frame
    result = layers([item])
    hidden = box(45, 37, 10)
    collides = hidden.copy()
    collides[:, :51] = False  # the first six columns of the object are outside the reference
    assert (result.mask == ~collides).all()
    assert (result.visible == IN_VIEW & ~hidden).all()


def collisions(target: np.ndarray, used: np.ndarray) -> int:
    pixels = target[used].round().astype(int)
    return len(pixels) - len(np.unique(pixels, axis=0))


def test_the_injective_mask_is_the_smallest_that_makes_the_map_one_to_one():
    rng, collided = np.random.default_rng(0), 0
    for _ in range(40):
        objects = []
        for case in rng.choice(list("ABC"), 4):
            places = [at(*rng.integers(0, 70, 2)) for _ in range(2)]
            item = square(int(rng.integers(6, 25)))
            objects.append(MovingObject(item, None if case == "B" else places[0], None if case == "A" else places[1]))
        result = layers(objects)
        assert collisions(result.target, result.mask) == 0
        # each pixel masked out would collide with one that is kept
        kept = {tuple(p) for p in result.target[result.mask].round().astype(int)}
        assert all(tuple(p) in kept for p in result.target[~result.mask].round().astype(int))
        collided += collisions(result.target, np.ones_like(result.mask))
    assert collided > 1000


def test_what_is_visible_shows_the_same_object_in_both_images():
    rng = np.random.default_rng(1)
    for _ in range(20):
        reference, query = np.zeros((80, 100, 3), np.uint8), np.zeros((80, 100, 3), np.uint8)
        objects = []
        for k, case in enumerate(rng.choice(list("ABC"), 4)):
            places = [at(*rng.integers(0, 70, 2)) for _ in range(2)]
            item = square(15, (60 * (k + 1), 0, 0))
            objects.append(MovingObject(item, None if case == "B" else places[0], None if case == "A" else places[1]))
        for item in objects:
            for image, place in ((reference, item.reference_from_cutout), (query, item.query_from_cutout)):
                if place is not None:
                    paste(image, item.rgba, place)
        result = layers(objects)
        x, y = result.target[result.visible].round().astype(int).T
        assert (query[y, x] == reference[result.visible]).all()


def test_a_pasted_cutout_is_where_its_map_says_and_nothing_else_changes():
    image = np.full((80, 100, 3), 50, np.uint8)
    paste(image, square(10), at(20, 30))
    assert (image[30:40, 20:30] == (255, 0, 0)).all()
    image[30:40, 20:30] = 50
    assert (image == 50).all()


def test_a_small_copy_is_averaged_and_no_color_from_outside_the_outline_bleeds_in():
    rgba = square(32, (200, 200, 200))
    rgba[rgba[..., 3] == 0] = (0, 255, 0, 0)  # a color that must never be seen
    image = np.full((80, 100, 3), 200, np.uint8)
    paste(image, rgba, np.array([[0.3, 0, 40.2], [0, 0.3, 31.7]]))
    assert (np.abs(image.astype(int) - 200) <= 1).all()


def test_an_object_beyond_the_image_changes_nothing():
    image = np.full((80, 100, 3), 50, np.uint8)
    paste(image, square(10), at(500, -90))
    assert (image == 50).all()


def test_random_objects_come_in_all_cases_and_those_seen_twice_move_against_the_background():
    rng, cutout = np.random.default_rng(0), square(30)

    def background(points):
        return points + SHIFT

    objects = random_objects(200, lambda: cutout, background, FRAME, rng)
    assert {item.case for item in objects} == {"A", "B", "C"}
    motions = [item.query_from_reference() for item in objects if item.case == "C"]
    scales = [np.sqrt(np.linalg.det(motion[:, :2])) for motion in motions]
    assert 0.6 < min(scales) < max(scales) < 1.6
    assert np.std([motion[0, 2] for motion in motions]) > 1


def test_shapes_cut_from_a_photograph_have_an_inside_and_an_outside():
    photo = np.random.default_rng(0).integers(0, 256, (100, 130, 3), dtype=np.uint8)
    for seed in range(10):
        cutout = random_cutout(photo, np.random.default_rng(seed))
        assert cutout.shape[2] == 4
        assert 0.05 < (cutout[..., 3] == 255).mean() < 0.95


def test_an_inverted_map_brings_points_back():
    place = np.array([[1.2, -0.4, 7], [0.3, 0.8, -2]])
    points = np.array([[3.0, 4.0], [50.0, -1.0]], np.float32)
    assert transform(invert(place), transform(place, points)) == pytest.approx(points, abs=1e-4)


@pytest.mark.parametrize("shape", [(70_000,), (300, 240)])
def test_any_number_of_points_may_lie_on_an_object(shape):
    points = np.random.default_rng(0).uniform(0, 60, (*shape, 2)).astype(np.float32)
    found = MovingObject(square(20), at(20, 20), None).covers(at(20, 20), points)
    well_inside = ((points > 20.5) & (points < 38.5)).all(-1)
    outside = ((points < 18.5) | (points > 40.5)).any(-1)
    assert found.shape == shape
    assert found[well_inside].all()
    assert not found[outside].any()
