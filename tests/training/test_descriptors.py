"""The descriptor warm-up."""

import torch

from pdc_sfm.training.batch import Batch
from pdc_sfm.training.descriptors import DescriptorSettings, descriptor_loss


def shifted(shift, size=(64, 64), pairs=1):
    """A batch whose true flow is the same everywhere, all of it visible."""
    flow = torch.tensor(shift, dtype=torch.float32).view(1, 2, 1, 1).expand(pairs, 2, *size).clone()
    everywhere = torch.ones(pairs, *size, dtype=torch.bool)
    images = torch.zeros(pairs, 3, *size)
    return Batch(images, images, flow, everywhere, ~everywhere)


def test_descriptors_that_move_with_the_picture_are_found_and_others_are_not():
    torch.manual_seed(0)
    batch = shifted((16.0, 0.0))
    cells = torch.randn(1, 32, 8, 8)  # cells of 8 px: the shift is two of them
    moved = torch.roll(cells, 2, dims=3)
    settings = DescriptorSettings(temperature=0.05)
    loss, hits = descriptor_loss([cells], [moved], batch, settings, seed=0)
    assert hits.item() == 1
    assert loss.item() < 0.1
    loss, hits = descriptor_loss([cells], [torch.randn(1, 32, 8, 8)], batch, settings, seed=0)
    assert hits.item() < 0.2
    assert loss.item() > 2


def test_unrelated_pairs_teach_descriptors_nothing():
    batch = shifted((0.0, 0.0))
    batch.valid[:], batch.hidden[:] = False, True
    cells = torch.randn(1, 8, 8, 8, requires_grad=True)
    loss, _ = descriptor_loss([cells], [cells], batch, DescriptorSettings(), seed=0)
    loss.backward()
    assert loss.item() == 0
    assert (cells.grad == 0).all()
