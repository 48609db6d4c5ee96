"""The two halves of the network: batches, sizes, variants, gradients, inference transforms."""

from dataclasses import replace

import pytest
import torch

from pdc_sfm.errors import SettingsError
from pdc_sfm.network import COMPACT, ImageCode, MixtureSettings, NetworkSettings, PDCNet, for_inference
from pdc_sfm.network.model import Upsampled

SMALL = replace(
    COMPACT,
    pyramid_channels=(16, 16, 16),
    decoder_channels=(8, 8, 8, 8, 8),
    refinement_channels=(8, 8),
    refinement_dilations=(1, 2),
    finest_channels=(),
    finest_radius=0,
    slice_channels=(8, 8, 8, 4),
    predictor_channels=(8, 8),
    passes=(),
)


def network(settings=SMALL, seed=0):
    """Random weights with batch-norm statistics that are not the identity, and residuals that are not zero."""
    torch.manual_seed(seed)
    net = PDCNet(settings)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_mean, -0.2, 0.2)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
    for level in net.levels.values():
        torch.nn.init.normal_(level.decoder.output.weight, std=0.05)
    return net.eval()


def images(n, height, width, seed=0):
    torch.manual_seed(seed)
    coarse = torch.rand(n, 3, height // 8, width // 8)
    return torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic").clamp(0, 1)


def assert_same(a, b, tolerance=1e-4):
    for x, y in zip(a, b):
        for name in ("flow", "log_var", "logits"):
            p, q = getattr(x, name), getattr(y, name)
            assert (p - q).abs().max() <= tolerance * q.abs().max().clamp(min=1)


@torch.no_grad()
def test_a_batch_gives_what_its_images_give_alone():
    # in float64: of an untrained network two places may be equally good up to rounding, which a batch does in another order
    net, x, y = network().double(), images(2, 256, 264).double(), images(2, 256, 264, seed=1).double()
    together = net.decode(net.encode(x), net.encode(y))
    for i in range(2):
        alone = net.decode(net.encode(x[i : i + 1]), net.encode(y[i : i + 1]))
        part = [
            replace(o, flow=o.flow[i : i + 1], log_var=o.log_var[i : i + 1], logits=o.logits[i : i + 1])
            for o in together
        ]
        assert_same(alone, part)


@torch.no_grad()
def test_codes_can_be_taken_from_a_batch_and_put_together_again():
    net, x = network(), images(2, 256, 256)
    code = net.encode(x)
    again = ImageCode.cat([code[1], code[0]])
    assert len(again) == 2
    assert torch.equal(again.features[1][0], code.features[1][1])
    assert code[0].nbytes * 2 == code.nbytes
    assert code[-1].features[4].equal(code[1].features[4])


@torch.no_grad()
def test_a_level_with_several_passes_starts_each_from_where_the_last_one_ended():
    once, thrice = network(), network(replace(SMALL, passes=(3, 2, 1)))
    thrice.load_state_dict(once.state_dict())
    x, y = images(1, 264, 320), images(1, 264, 320, seed=1)
    a, b = (net.decode(net.encode(x), net.encode(y)) for net in (once, thrice))
    assert [o.level for o in b] == [4, 3, 3, 3, 2, 2, 1]
    assert_same(b[:2], a[:2], tolerance=0)
    by_hand, last = network(), a[1]
    up = Upsampled(last.flow, [last.log_var, last.logits], None)
    compared = by_hand._compared(by_hand.encode(x), by_hand.encode(y), 3, 1.0)
    again, _ = by_hand._decode_local(3, up, *compared, (last.reference_size,) * 2)
    assert_same(b[2:3], [again], tolerance=0)
    assert (b[2].flow - b[1].flow).abs().max() > 0.01


@torch.no_grad()
def test_fewer_passes_are_the_first_of_all():
    net = network(replace(SMALL, passes=(3, 2, 1)))
    x, y = net.encode_low(images(1, 256, 256)), net.encode_low(images(1, 256, 256, seed=1))
    assert_same(net.decode(x, y, last_level=3, passes=1), net.decode(x, y, last_level=3)[:2], tolerance=0)


def test_passes_are_as_many_as_local_levels():
    with pytest.raises(SettingsError, match="passes needs 3 numbers"):
        replace(SMALL, passes=(3, 3))


@torch.no_grad()
def test_reference_and_query_may_differ_in_size():
    net = network()
    reference, query = net.encode(images(1, 256, 320)), net.encode(images(1, 400, 264, seed=1))
    outputs = net.decode(reference, query)
    assert [tuple(o.flow.shape[-2:]) for o in outputs] == [(16, 16), (32, 32), (32, 40), (64, 80)]
    assert outputs[-1].reference_size == (256, 320)
    assert outputs[-1].query_size == (400, 264)
    assert all(torch.isfinite(o.flow).all() for o in outputs)


@torch.no_grad()
def test_flow_is_carried_from_level_to_level_between_images_of_other_sizes():
    """With every residual at zero the coarsest level points each pixel to the middle of the query; so must all others."""
    net = PDCNet(replace(SMALL, soft_argmax=False)).eval()
    for name, parameter in net.named_parameters():
        if ".output." in name and (".decoder." in name or ".refinement." in name):
            parameter.zero_()
    outputs = net.decode(net.encode(images(1, 480, 640)), net.encode(images(1, 720, 512, seed=1)))
    for output in outputs:
        height, width = output.flow.shape[-2:]
        (rh, rw), (qh, qw) = output.reference_size, output.query_size
        x = (torch.arange(width) + 0.5) * rw / width - 0.5
        y = (torch.arange(height) + 0.5) * rh / height - 0.5
        rows, columns = (slice(n // 4, n - n // 4) for n in (height, width))  # at the border upsampling lacks neighbors
        points = torch.stack((x.expand(height, width), y[:, None].expand(height, width))) + output.flow[0]
        assert (points[0, rows, columns] - (qw - 1) / 2).abs().max() < 1e-3 * qw
        assert (points[1, rows, columns] - (qh - 1) / 2).abs().max() < 1e-3 * qh


@pytest.mark.parametrize("size", [(16, 16), (40, 300), (257, 255)])
@torch.no_grad()
def test_images_of_any_size_are_taken(size):
    net = network()
    code = net.encode(torch.rand(1, 3, *size))
    assert code.size == size
    assert code.high_size == tuple(max(256, side // 8 * 8) for side in size)
    assert torch.isfinite(net.decode(code, code)[-1].flow).all()


GOCOR = replace(SMALL, correlation="gocor", global_iterations=1, local_iterations=2)


@pytest.mark.parametrize(
    "settings",
    [
        SMALL,
        GOCOR,
        replace(SMALL, detach_levels=False, soft_argmax=False, normalize_local=False),
        replace(SMALL, uncertainty="none"),
        replace(SMALL, uncertainty="common"),
        replace(SMALL, uncertainty="correlation"),
        replace(SMALL, propagate=False),
        replace(SMALL, slice_layers="convolution"),
        replace(SMALL, mixture=MixtureSettings(components=1)),
        replace(SMALL, mixture=MixtureSettings(components=3, learned_bounds=True)),
        replace(SMALL, strides=(8, 4, 2), pyramid_channels=(16, 16, 16, 8), refined_levels=(3, 0)),
    ],
    ids=lambda s: "",
)
def test_gradients_reach_every_parameter_of_every_variant(settings):
    net = network(settings).train()
    outputs = net(images(2, 64, 64), images(2, 64, 64, seed=1))
    loss = sum(o.flow.square().mean() for o in outputs)
    if settings.uncertainty != "none":
        loss = loss + sum(o.log_var.sin().mean() + o.logits.sin().mean() for o in outputs)
    else:
        assert all(o.log_var is None for o in outputs)
    loss.backward()
    without = [name for name, p in net.named_parameters() if p.grad is None]
    assert not without
    assert len(outputs) == len(settings.levels)


@torch.no_grad()
def test_inference_transforms_change_no_number():
    for settings in (SMALL, replace(GOCOR, slice_layers="convolution")):
        net, x, y = network(settings), images(1, 256, 256), images(1, 256, 256, seed=1)
        before = net.decode(net.encode(x), net.encode(y))
        fast = for_inference(net)
        assert not any(isinstance(m, torch.nn.BatchNorm2d) for m in fast.modules())
        assert_same(fast.decode(fast.encode(x), fast.encode(y)), before)


@torch.no_grad()
def test_sixteen_bits_stay_close_and_leave_float32():
    for settings in (SMALL, GOCOR):
        x, y = images(1, 256, 256), images(1, 256, 256, seed=1)
        exact, half = for_inference(network(settings)), for_inference(network(settings), "float16")
        expected, found = (net.decode(net.encode(x), net.encode(y)) for net in (exact, half))
        assert all(o.flow.dtype == o.log_var.dtype == torch.float32 for o in found)
        # compared at the first level: later ones look where the rounded flow points
        assert 0 < (found[0].logits - expected[0].logits).abs().max() < 0.05 * expected[0].logits.abs().max()


def test_slices_give_the_same_in_training_form_and_in_inference_form():
    """The first convolution as a matrix product equals the convolution, gradients included."""
    from pdc_sfm.network.uncertainty import SliceModule

    torch.manual_seed(0)
    module = SliceModule((4, 4, 4, 3)).double().eval()
    x = torch.randn(1, 81, 4, 5, dtype=torch.float64, requires_grad=True)
    as_matrix = module(x)
    slices = x.permute(0, 2, 3, 1).reshape(-1, 1, 9, 9)
    as_convolution = module._rest(module.conv_0(slices)).view(1, 4, 5, 3).permute(0, 3, 1, 2)
    assert torch.allclose(as_matrix, as_convolution)
    gradients = [torch.autograd.grad(y.sin().sum(), x)[0] for y in (as_matrix, as_convolution)]
    assert torch.allclose(*gradients)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radius": 9}, "radius"),
        ({"strides": (16, 8)}, "strides"),
        ({"pyramid_channels": ()}, "pyramid_channels"),
        ({"local_iterations": -1}, "local_iterations"),
        ({"refinement_channels": (8, 4)}, "refinement_channels"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(SettingsError, match=message):
        replace(SMALL, **change)


def test_the_default_settings_are_the_published_network():
    assert NetworkSettings().levels == (4, 3, 2, 1)
    with torch.device("meta"):
        assert sum(p.numel() for p in PDCNet().parameters()) == pytest.approx(18.4e6, rel=0.01)


@torch.no_grad()
@pytest.mark.parametrize("settings", [SMALL, replace(SMALL, correlation="gocor")])
def test_the_low_branch_alone_gives_the_coarse_levels(settings):
    net, x, y = network(settings), images(1, 256, 320), images(1, 400, 264, seed=1)
    whole = net.decode(net.encode(x), net.encode(y))
    low = net.encode_low(x)
    assert set(low.features) == {4, 3}
    assert_same(net.decode(low, net.encode_low(y), last_level=3), whole[:2])


@torch.no_grad()
@pytest.mark.parametrize(
    "settings",
    [SMALL, replace(SMALL, correlation="gocor"), replace(SMALL, passes=(3, 2, 1)), replace(SMALL, detach_levels=True)],
)
def test_the_fine_levels_go_on_from_the_coarse_ones_with_the_same_numbers(settings):
    net, x, y = network(settings), images(2, 256, 320), images(2, 400, 264, seed=1)
    reference, query = net.encode(x), net.encode(y)
    whole = net.decode(reference, query)
    coarse = net.decode(reference.coarse, query.coarse, last_level=3)
    fine = net.decode(reference, query, coarse=coarse[-1])
    assert [output.level for output in (*coarse, *fine)] == [output.level for output in whole]
    assert_same((*coarse, *fine), whole, tolerance=0)
    first = net.decode(reference.coarse, query.coarse, last_level=3, passes=1)  # and from its first pass
    rest = net.decode(reference, query, coarse=first[-1])
    assert len((*first, *rest)) == len(whole)
    assert_same((*first, *rest), whole, tolerance=0)


@torch.no_grad()
def test_the_coarse_levels_of_images_of_all_sizes_are_one_batch_of_which_some_go_on():
    net = network(SMALL)
    codes = [net.encode(images(1, *size, seed=n)) for n, size in enumerate(((256, 320), (400, 264), (264, 264)))]
    batch = ImageCode.cat([code.coarse for code in codes])
    coarse = net.decode(batch, batch.map(lambda x: x.roll(1, 0)), last_level=3)[-1]
    alone = net.decode(codes[1], codes[0])
    fine = net.decode(codes[1], codes[0], coarse=coarse.take([1]))
    assert_same(fine, alone[-len(fine) :])


def test_the_finest_level_can_be_narrower_and_look_less_far():
    settings = replace(SMALL, refinement_channels=(8,) * 5, refinement_dilations=(1,) * 5)
    narrow = PDCNet(replace(settings, finest_channels=(6, 6, 4, 4, 4), finest_radius=2))
    wide = PDCNet(settings)
    assert [level.radius for level in narrow.levels.values()] == [4, 4, 4, 2]
    for name in ("4", "3", "2"):
        ours, theirs = (sum(p.numel() for p in net.levels[name].parameters()) for net in (narrow, wide))
        assert ours == theirs
    assert sum(p.numel() for p in narrow.levels["1"].parameters()) < sum(
        p.numel() for p in wide.levels["1"].parameters()
    )
    images = torch.rand(2, 1, 3, 256, 264)
    with torch.inference_mode():
        last = narrow.eval()(images[0], images[1])[-1]
    assert last.flow.shape == (1, 2, 64, 66)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"finest_channels": (8, 8)}, "finest_channels must be as many"),
        ({"finest_radius": 5}, "between 0 and radius"),
        ({"finest_radius": 2, "correlation": "gocor"}, "needs correlation=plain"),
    ],
)
def test_a_finest_level_that_cannot_be_is_refused(changes, message):
    with pytest.raises(SettingsError, match=message):
        replace(SMALL, **changes)
