"""Learning rate, image sizes and the averaged weights over the iterations."""

import pytest
import torch

from pdc_sfm.errors import SettingsError
from pdc_sfm.training.schedule import ScheduleSettings, SizeSettings
from pdc_sfm.training.step import Average


def test_steps_halve_the_rate():
    schedule = ScheduleSettings(iterations=100, kind="steps", milestones=(40, 80))
    assert [schedule.factor(i) for i in (0, 39, 40, 79, 80, 99)] == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_a_trapezoid_rises_stays_and_falls_to_its_final_share():
    schedule = ScheduleSettings(iterations=1000, kind="trapezoid", warm_up=10, decay=0.4, final=0.1)
    assert [schedule.factor(i) for i in (0, 4, 9, 600)] == pytest.approx([0.1, 0.5, 1, 1])
    assert schedule.factor(800) == pytest.approx(0.55)  # half-way down between 1 and 0.1
    assert schedule.factor(1000) == pytest.approx(0.1)


def test_phases_continue_the_stream_of_pairs_without_gap_or_overlap():
    sizes = SizeSettings(phases=((0, 256, 8), (3, 320, 6), (5, 384, 4)), aspects=(1, 1.5))
    batches = [sizes.phase(i).batch for i in range(8)]
    assert batches == [8, 8, 8, 6, 6, 4, 4, 4]
    assert [sizes.pairs_before(i) for i in range(9)] == [sum(batches[:i]) for i in range(9)]


def test_aspects_keep_the_area_and_the_multiple_of_8():
    sizes = SizeSettings(phases=((0, 320, 1),), aspects=(1, 1.5, 0.75))
    assert sizes.image_size(0) == (320, 320)
    for iteration, aspect in ((1, 1.5), (2, 0.75)):
        height, width = sizes.image_size(iteration)
        assert height % 8 == width % 8 == 0
        assert width / height == pytest.approx(aspect, rel=0.05)
        assert width * height == pytest.approx(320**2, rel=0.05)


@pytest.mark.parametrize("phases", [(), ((5, 256, 4),), ((0, 256, 4), (0, 320, 4)), ((0, 40, 4),), ((0, 256, 0),)])
def test_impossible_phases_are_refused(phases):
    with pytest.raises(SettingsError, match="sizes"):
        SizeSettings(phases=phases)


def test_the_average_follows_fast_at_first_and_slowly_later():
    network = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(network.weight)
    average = Average(network, 0.99)
    torch.nn.init.ones_(network.weight)
    average.update(network, 0)  # keeps min(.99, 1/10)
    assert average.network.weight.item() == pytest.approx(0.9)
    average.update(network, 10_000)
    assert average.network.weight.item() == pytest.approx(0.9 * 0.99 + 0.01)
