"""What a cloud is made of: planes carried between views, votes of flows, partners, COLMAP's map files."""

import dataclasses

import numpy as np
import pytest
from two_planes import FLOOR, NAMES, SIZE, TrueFlow, true_depth, write_map

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.posed_views import posed_views
from pdc_sfm.errors import FormatError, SettingsError
from pdc_sfm.fusion.checks import drop_speckles
from pdc_sfm.fusion.geometry import Transfer, normals, pixel_grid
from pdc_sfm.fusion.partners import choose_partners
from pdc_sfm.fusion.settings import DensifySettings
from pdc_sfm.fusion.votes import SIGMA, combine, vote
from pdc_sfm.fusion.workspace import read_map
from pdc_sfm.fusion.workspace import write_map as write_dense_map


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    return posed_views(load_model(write_map(tmp_path_factory.mktemp("views"))))


def floor_of(view) -> np.ndarray:
    """(3,) gx, gy, c of the floor: rho = n (K^-1 x) / (1 - n center)."""
    return FLOOR @ np.linalg.inv(view.intrinsics) / (1 - FLOOR @ view.center)


def test_a_plane_is_the_same_plane_from_the_other_view(views):
    first, second = views[0], views[3]
    carried = Transfer.between(first, second, SIZE, SIZE).planes(floor_of(first))
    assert carried == pytest.approx(floor_of(second), rel=1e-4, abs=1e-7)
    half = (SIZE[0] // 2, SIZE[1] // 2)  # pixel x of the half is pixel 2 x + 0.5: the gradient doubles
    smaller = Transfer.between(first, second, SIZE, half).planes(floor_of(first))
    assert smaller[:2] == pytest.approx(2 * floor_of(second)[:2], rel=1e-4, abs=1e-7)


def test_the_floor_faces_up(views):
    gx, gy, constant = floor_of(views[0])
    x, y = pixel_grid(SIZE)
    rho = gx * x + gy * y + constant
    found = normals(rho, np.full_like(rho, gx), np.full_like(rho, gy), views[0].intrinsics)[rho > 0]
    assert found == pytest.approx(np.broadcast_to([0, -1, 0], found.shape), abs=1e-4)


def test_flows_that_agree_give_depth_and_how_sure_it_is(views):
    source = TrueFlow()
    codes = [source.encode(None, name) for name in NAMES]
    votes = [
        vote(source.estimate(codes[2], codes[other]), Transfer.between(views[2], views[other], SIZE, SIZE))
        for other in (0, 1, 3, 4)
    ]
    found = combine(votes)
    truth = true_depth(2)[2::4, 2::4][: found.rho.shape[0], : found.rho.shape[1]]
    known = found.probability > 0.5
    assert known.mean() > 0.9
    assert np.median(np.abs(1 / found.rho - truth)[known] / truth[known]) < 0.01  # cells lie between those pixels
    alone = votes[0][1]  # 0.7 to the side of a wall at 4 with a focal length of 110: 77 pixels a unit of inverse depth
    assert np.median(alone[np.isfinite(alone)]) == pytest.approx(SIGMA / 77, rel=0.02)
    assert np.all(found.sigma[known] <= np.stack([one[1] for one in votes]).max(0)[known])


def test_a_wrong_flow_is_outvoted(views):
    source = TrueFlow()
    codes = [source.encode(None, name) for name in NAMES]
    estimates = [source.estimate(codes[2], codes[other]) for other in (0, 1, 3, 4)]
    estimates[0] = dataclasses.replace(estimates[0], flow=estimates[0].flow + np.float32([6, 0]))
    transfers = [Transfer.between(views[2], views[other], SIZE, SIZE) for other in (0, 1, 3, 4)]
    found = combine([vote(estimate, transfer) for estimate, transfer in zip(estimates, transfers)])
    right = combine([vote(estimate, transfer) for estimate, transfer in zip(estimates[1:], transfers[1:])])
    both = right.probability > 0.99  # two of them see the cell, each sure by 0.95
    assert both.mean() > 0.7
    assert np.mean(np.abs(found.rho / right.rho - 1)[both] < 0.01) > 0.95


def test_partners_are_not_the_image_itself_and_see_it_from_elsewhere(views):
    chosen = choose_partners(views, 2)
    assert all(len(set(own)) == 2 and number not in own for number, own in enumerate(chosen))
    twin = [*views[:2], dataclasses.replace(views[0], name="twin"), *views[3:]]
    assert 2 not in choose_partners(twin, 2)[0]  # from the same place there is no depth


def test_maps_are_colmaps(tmp_path):
    normal = np.arange(2 * 3 * 3, dtype=np.float32).reshape(2, 3, 3)
    write_dense_map(tmp_path / "n.bin", normal)
    data = (tmp_path / "n.bin").read_bytes()
    assert data.startswith(b"3&2&3&")
    theirs = np.frombuffer(data[6:], np.float32).reshape((3, 2, 3), order="F").transpose(1, 0, 2)  # as COLMAP reads it
    assert np.array_equal(theirs, normal)
    assert np.array_equal(read_map(tmp_path / "n.bin"), normal)
    write_dense_map(tmp_path / "d.bin", normal[..., 0])
    assert np.array_equal(read_map(tmp_path / "d.bin"), normal[..., 0])


@pytest.mark.parametrize("data", [b"", b"3&2&", b"3&2&1&1234", b"x&2&1&", b"99999999999&99999999999&9&1234"])
def test_a_damaged_map_is_refused(tmp_path, data):
    (tmp_path / "d.bin").write_bytes(data)
    with pytest.raises(FormatError, match=r"d\.bin (is no depth|ends early)"):
        read_map(tmp_path / "d.bin")


def test_small_patches_are_dropped():
    rho = np.full((40, 60), 0.25, np.float32)
    rho[10:14, 10:14] = 0.5  # 16 pixels, twice as near
    rho[20:30, 20:30] = 0.2  # 100 pixels, further off
    rho[:, 40] = 0
    rho[:, 41:43] *= 1.01
    found = drop_speckles(rho, 40)
    assert not found[10:14, 10:14].any()
    assert np.array_equal(found[20:30, 20:30], rho[20:30, 20:30])
    assert (found > 0).sum() == (rho > 0).sum() - 16
    assert drop_speckles(rho, 0) is rho


def test_more_pictures_than_fit_on_a_sheet_are_refused():
    """32 pictures lie six by six: six of 5,441 pixels and their borders are 32,766, the most that OpenCV samples from."""
    assert DensifySettings(partners=32, max_side=5441).max_side == 5441
    with pytest.raises(SettingsError, match="take fewer of one"):
        DensifySettings(partners=32, max_side=5442)
