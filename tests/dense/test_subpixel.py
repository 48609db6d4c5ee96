"""Sub-pixel alignment: how exact it is, and what it must not do."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

from pdc_sfm.dense.gray import Gray, gray
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.subpixel import LARGEST_SHIFT, align, align_likely
from pdc_sfm.matcher import PairSettings, load_matcher, match_images
from pdc_sfm.network import LevelOutput
from pdc_sfm.network.warp import pixel_grid
from pdc_sfm.pixels import transform

SIZE = (192, 256)  # height, width
STRIDE = 4
SCALES = (8, 16, 32, 64, 128)  # detail of the texture that the built-in model sees


def textured(seed=0):
    """Smooth random texture, (1, 1, H, W) in [0, 1], as a function that can be read anywhere."""
    rng = np.random.default_rng(seed)
    waves = rng.uniform(-0.35, 0.35, (60, 2))
    phases, heights = rng.uniform(0, 2 * np.pi, 60), rng.uniform(0.2, 1, 60)

    def read(points):  # (1, 2, H, W) -> (1, 1, H, W)
        x, y = points[0].double().numpy()
        value = sum(h * np.sin(u * x + v * y + p) for (u, v), p, h in zip(waves, phases, heights))
        return torch.from_numpy(0.5 + value / 15)[None, None].float()

    return read


def cells(like=SIZE):
    """Centers of the cells in pixels, (1, 2, h, w)."""
    return (pixel_grid(like[0] // STRIDE, like[1] // STRIDE, torch.zeros(1)) + 0.5) * STRIDE - 0.5


def level(flow):
    return LevelOutput(1, flow, None, None, SIZE, SIZE)


def fitted(output, reference, query):
    """`align` of images (B, 1, H, W)."""
    return align(output, Gray.of(reference), Gray.of(query))


def likely_fitted(output, reference, query):
    """`align_likely` of as many images."""
    return align_likely(output, *([Gray.of(one[None]) for one in images] for images in (reference, query)))


def aligned_error(matrix, offset, error, light=lambda image: image):
    """Errors before and after, where the query shows the reference mapped by x -> matrix x + offset."""
    matrix, offset = torch.tensor(matrix, dtype=torch.float32), torch.tensor(offset).view(1, 2, 1, 1)
    read = textured()
    pixels = pixel_grid(*SIZE, torch.zeros(1))
    to_query = lambda points: torch.einsum("ij,bjhw->bihw", matrix, points) + offset  # noqa: E731
    inverse = torch.linalg.inv(matrix)
    from_query = lambda points: torch.einsum("ij,bjhw->bihw", inverse, points - offset)  # noqa: E731
    reference, query = read(pixels), light(read(from_query(pixels)))
    truth = to_query(cells()) - cells()
    landed = (truth + cells())[0]
    inside = ((landed > 12) & (landed < torch.tensor([SIZE[1], SIZE[0]]).view(2, 1, 1) - 13)).all(0)
    inner = torch.zeros_like(inside)
    inner[3:-3, 3:-3] = True
    found = fitted(level(truth + error), reference, query).flow
    distance = lambda flow: (flow - truth).norm(dim=1)[0][inside & inner]  # noqa: E731
    return distance(truth + error), distance(found)


OFF = torch.tensor([0.9, -0.7]).view(1, 2, 1, 1)


@pytest.mark.parametrize(
    "matrix",
    [
        ((1.0, 0.0), (0.0, 1.0)),
        ((1.2, 0.0), (0.0, 1.2)),
        ((0.0, -1.0), (1.0, 0.0)),  # a quarter turn: steps must be turned too
        ((0.94, -0.34), (0.34, 0.94)),
        ((1.0, 0.3), (0.0, 0.9)),
    ],
)
def test_errors_of_a_pixel_shrink_to_a_small_fraction(matrix):
    offset = (256.0, 0.0) if matrix[0][0] == 0 else (3.4, -5.3)
    before, after = aligned_error(matrix, offset, OFF)
    assert len(after) > 200
    assert before.median() > 1.1
    assert after.median() < 0.06
    assert after.quantile(0.95) < 0.25


def test_light_may_differ():
    shade = torch.linspace(0.4, 1.3, SIZE[1])
    _, after = aligned_error(((1.0, 0.0), (0.0, 1.0)), (2.5, 1.5), OFF, lambda image: 0.2 + 0.5 * shade * image)
    assert after.median() < 0.1


def test_what_is_exact_stays():
    _, after = aligned_error(((1.05, 0.1), (-0.1, 1.05)), (2.0, 8.0), torch.zeros(1, 2, 1, 1))
    assert after.quantile(0.95) < 0.1


def test_without_texture_linear_flow_stays():
    flat = torch.full((1, 1, *SIZE), 0.5)
    start = torch.einsum("ij,bjhw->bihw", torch.tensor(((0.2, -0.1), (0.05, 0.3))), cells())
    assert torch.allclose(fitted(level(start), flat, flat).flow, start, atol=1e-3)


def test_no_cell_moves_farther_than_the_limit_and_no_number_is_lost():
    reference, query = (torch.rand(1, 1, *SIZE, generator=torch.manual_seed(s)) for s in (0, 1))
    start = 300 * torch.randn(1, 2, SIZE[0] // STRIDE, SIZE[1] // STRIDE, generator=torch.manual_seed(2))
    moved = fitted(level(start), reference, query).flow - start
    assert torch.isfinite(moved).all()
    assert moved.norm(dim=1).max() <= LARGEST_SHIFT * 1.001


def test_a_batch_gives_what_its_pairs_give_alone():
    images = torch.rand(4, 1, *SIZE, generator=torch.manual_seed(0))
    flow = torch.randn(2, 2, SIZE[0] // STRIDE, SIZE[1] // STRIDE, generator=torch.manual_seed(2))
    both = fitted(level(flow), images[:2], images[2:]).flow
    alone = [fitted(level(flow[i : i + 1]), images[i : i + 1], images[i + 2 : i + 3]).flow for i in range(2)]
    assert torch.allclose(both, torch.cat(alone), atol=1e-4)


def test_gray_has_the_size_the_network_saw():
    found = gray(torch.rand(1, 3, 270, 301), (264, 296))
    assert found.image.shape == (1, 1, 264, 296)
    assert found.cells.shape == (1, 4, 4, 66, 74)
    assert found.nbytes == 2 * 4 * 264 * 296
    white = gray(torch.ones(1, 3, 64, 64), (64, 64))
    assert torch.allclose(white.image, torch.ones(1, 1, 64, 64))
    assert not white.cells.any()


@pytest.mark.parametrize("method", ["direct", "homography"])
def test_matches_of_the_built_in_model_become_more_exact(method):
    rng = np.random.default_rng(3)
    large = sum(
        cv2.resize(rng.random((n, n, 3), np.float32), (512, 512), interpolation=cv2.INTER_CUBIC) for n in SCALES
    )
    image = np.clip(255 * large / len(SCALES), 0, 255).astype(np.uint8)
    homography = np.array([[0.98, -0.12, 30.3], [0.1, 1.02, -20.7], [0.0, 1e-4, 1.0]])
    other = cv2.warpPerspective(image, homography, (512, 512), flags=cv2.INTER_CUBIC)
    median = {}
    for subpixel in (False, True):
        settings = PairSettings(DenseSettings(method=method, subpixel=subpixel))
        found = match_images(image, other, matcher=load_matcher(settings=settings)).matches
        assert len(found) > 1000
        error = found.keypoints1 - transform(found.keypoints0, homography)
        median[subpixel] = np.median(np.linalg.norm(error, axis=1))
    assert median[True] < 0.2
    assert median[True] < median[False] / 2


def test_where_the_images_do_not_tell_the_place_the_variance_grows_and_never_by_more_than_one():
    """A texture that fades to the right, under noise: the fit holds the left side only."""
    torch.manual_seed(0)
    reference = textured()(pixel_grid(*SIZE, torch.zeros(1)))
    reference = 0.5 + (reference - 0.5) * torch.linspace(1, 0, SIZE[1]).square()
    query = reference + 0.01 * torch.randn_like(reference)
    flow = torch.zeros(1, 2, SIZE[0] // STRIDE, SIZE[1] // STRIDE)
    log_var = torch.tensor([0.0, 5.0]).view(1, 2, 1, 1).expand(-1, -1, *flow.shape[-2:])
    found = fitted(LevelOutput(1, flow, log_var, torch.zeros_like(log_var), SIZE, SIZE), reference, query).log_var
    grown = found[0, 0, 4:-4].exp().mean(0) - 1  # of each column
    assert grown[:16].max() < 0.03
    assert grown[-8:].min() > 0.1
    assert found[:, 0].exp().max() <= 2
    assert torch.equal(found[:, 1], log_var[:, 1])


def test_a_place_that_lies_off_its_neighbors_is_less_sure():
    """Of a texture as clear as around it, a small piece is shifted by half a pixel."""
    pixels = pixel_grid(*SIZE, torch.zeros(1))
    piece = torch.exp(-((pixels[:, :1] - 130) ** 2 + (pixels[:, 1:] - 98) ** 2) / (2 * 5.0**2))
    reference, query = textured()(pixels), textured()(pixels - 0.5 * piece)
    log_var = torch.zeros(1, 2, SIZE[0] // STRIDE, SIZE[1] // STRIDE)
    found = fitted(LevelOutput(1, log_var, log_var, log_var, SIZE, SIZE), reference, query).log_var
    grown = found[0, 0].exp() - 1
    assert grown[24, 32] > 0.02
    assert grown[24, 32] > 10 * grown[8:-8, 40:-4].max()


def test_what_cannot_be_a_match_is_left_as_it_is_and_the_rest_is_aligned_as_if_all_were():
    read, pixels = textured(), pixel_grid(*SIZE, torch.zeros(1))
    reference, query = read(pixels), read(pixels - torch.tensor([5.3, -2.6]).view(1, 2, 1, 1))
    grid = SIZE[0] // STRIDE, SIZE[1] // STRIDE
    flow = torch.tensor([5.0, -3.0]).view(1, 2, 1, 1).expand(1, 2, *grid)
    logits = torch.zeros(1, 2, *grid)
    logits[:, 0] = -20
    logits[:, 0, 18:30, 26:44] = 20
    output = LevelOutput(1, flow, torch.tensor([0.0, 9.0]).view(1, 2, 1, 1).expand(1, 2, *grid), logits, SIZE, SIZE)
    part, whole = likely_fitted(output, reference, query), fitted(output, reference, query)
    sure = logits[0, 0] > 0
    error = (part.flow[0, :, sure] - torch.tensor([[5.3], [-2.6]])).norm(dim=0)
    assert error.mean() < 0.02
    torch.testing.assert_close(part.flow[..., sure], whole.flow[..., sure], atol=0.01, rtol=0)
    torch.testing.assert_close(part.log_var[..., sure], whole.log_var[..., sure], atol=0.01, rtol=0)
    assert torch.equal(part.flow[..., :8, :], flow[..., :8, :])
    nothing = replace(output, logits=-logits.abs())  # the first channel at -20, the other at 0
    assert torch.equal(likely_fitted(nothing, reference, query).flow, flow)


def test_all_is_aligned_if_the_network_states_no_confidence():
    read, pixels = textured(), pixel_grid(*SIZE, torch.zeros(1))
    shift = torch.tensor([5.3, -2.6]).view(1, 2, 1, 1)
    start = (shift + 0.4).expand(1, 2, SIZE[0] // STRIDE, SIZE[1] // STRIDE)
    found = likely_fitted(level(start), read(pixels), read(pixels - shift))
    assert (found.flow - shift)[..., 4:-4, 4:-4].norm(dim=1).mean() < 0.02
    assert found.log_var is None


def test_the_part_that_is_aligned_does_not_depend_on_the_other_pairs_of_a_batch():
    read, pixels = textured(), pixel_grid(*SIZE, torch.zeros(1))
    images = [torch.cat([read(pixels + shift) for shift in shifts]) for shifts in ((0, 7), (0.4, 7.3))]
    grid = SIZE[0] // STRIDE, SIZE[1] // STRIDE
    logits = torch.full((2, 2, *grid), -20.0)
    logits[:, 1] = 0
    logits[0, 0, 10:20, 10:20] = logits[1, 0, 30:44, 40:60] = 20
    log_var = torch.tensor([0.0, 9.0]).view(1, 2, 1, 1).expand(2, 2, *grid)
    outputs = LevelOutput(1, torch.zeros(2, 2, *grid), log_var, logits, SIZE, SIZE)
    both = likely_fitted(outputs, *images)
    for n in range(2):
        one = slice(n, n + 1)
        fields = {name: getattr(outputs, name)[one] for name in ("flow", "log_var", "logits")}
        alone = likely_fitted(replace(outputs, **fields), *(image[one] for image in images))
        assert torch.equal(both.flow[one], alone.flow)
        assert torch.equal(both.log_var[one], alone.log_var)
        assert alone.flow.abs().max() > 0.1
