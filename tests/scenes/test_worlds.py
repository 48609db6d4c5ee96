"""Rooms and objects: pictures lie where the mesh says, flow is exact, look-alikes share nothing, folders are complete."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from pdc_sfm.cli import main
from pdc_sfm.errors import SettingsError
from pdc_sfm.images import list_images, write_image
from pdc_sfm.scenes import Camera, Conditions, SceneTruth, flow_between
from pdc_sfm.scenes.layouts.worlds import build_world, write_world
from pdc_sfm.scenes.render.mesh import Frame
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import WorldSettings
from pdc_sfm.scenes.worlds.skins import Skin, Textures
from pdc_sfm.scenes.worlds.solids import Solids
from pdc_sfm.scenes.worlds.world import World, picture_of

TINY = WorldSettings(width=128, height=96, images=4, textures=6, twin=0)
EVEN = Conditions(sun_strength=0, zenith=(1, 1, 1), horizon=(1, 1, 1), exposure=0.5, metering=0, noise=0, vignette=0)


def world_of(builder: Solids, pictures: list[np.ndarray], radius: float = 2.0) -> World:
    mesh = builder.build()
    return World(mesh, mesh, Textures(pictures), np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(3), radius, (0, 0, 0))


def taken(world: World, camera: Camera, conditions: Conditions = EVEN):
    return picture_of(world, Shot("db", 1, camera, conditions, 0))


def test_a_picture_is_seen_as_it_was_given():
    """Red at its left, green at its lower right corner, on a table seen from above with +x to the right."""
    picture = np.full((40, 60, 3), 128, np.uint8)
    picture[:, :20] = (255, 0, 0)
    picture[30:, 50:] = (0, 255, 0)
    b = Solids()
    b.level(Frame.standing(0, 0), (-0.3, 0.3), (-0.2, 0.2), 0, Skin(0, extent=0.6))
    camera = Camera.looking(np.array([0, -1e-3, 1.0]), np.zeros(3), (120, 80), 190)
    image = taken(world_of(b, [picture]), camera).image.astype(int)
    red, green, gray = image[40, 20], image[72, 110], image[10, 110]
    assert red[0] > 2 * red[1]
    assert green[1] > 2 * green[0]
    assert np.ptp(gray) < 4


def test_the_texture_of_a_curved_surface_is_continuous_and_its_normals_are_round():
    angle, height = np.linspace(0, 2 * np.pi, 25), np.linspace(0, 1, 5)
    points = np.stack(np.broadcast_arrays(np.cos(angle), np.sin(angle), height[:, None]), -1)
    uv = np.stack(np.broadcast_arrays(angle, height[:, None]), -1)
    b = Solids()
    b.surface(Frame.standing(3, 4, 5, 0.7), points, uv, Skin(0))
    mesh = b.build()
    # at every corner the texture is what was given: u grows with the angle around the axis
    local = (mesh.corners - [3, 4, 5]) @ Frame.standing(0, 0, 0, 0.7).axes.T
    at = np.einsum("nkc,nqc->nqk", mesh.uv_axes, mesh.corners - mesh.uv_origin[:, None])
    wanted = np.mod(np.arctan2(local[..., 1], local[..., 0]), 2 * np.pi)
    off = np.abs(at[..., 0] - wanted)
    assert np.minimum(off, 2 * np.pi - off).max() < 1e-6
    np.testing.assert_allclose(at[..., 1], local[..., 2], atol=1e-6)
    # and the smooth normal points away from the axis
    normal = np.einsum("nij,nqj->nqi", mesh.curve[..., :3], mesh.corners) + mesh.curve[:, None, :, 3]
    outward = np.array([mesh.corners[..., 0] - 3, mesh.corners[..., 1] - 4, 0 * mesh.corners[..., 2]]).transpose(
        1, 2, 0
    )
    assert (normal * outward).sum(-1).min() > 0.99


def test_triangles_without_area_are_left_out():
    polar, azimuth = np.meshgrid(np.linspace(0, np.pi, 5), np.linspace(0, 2 * np.pi, 9), indexing="ij")
    ball = np.stack([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), -np.cos(polar)], -1)
    b = Solids()
    b.surface(Frame.standing(0, 0), ball, np.stack([azimuth, polar], -1), Skin(0))
    assert len(b.build()) == 2 * 4 * 8 - 2 * 8  # one of two at each pole
    assert np.isfinite(b.build().uv_axes).all()


@pytest.mark.parametrize(("kind", "seed"), [("room", 2), ("object", 3), ("court", 1)])
def test_flow_leads_to_the_same_place(kind, seed):
    """In even light, what the flow says is one place has one color in both pictures."""
    views = build_world(kind, replace(TINY, seed=seed, views=4))
    found = 0
    renderings = [taken(world, shot.camera) for world, shot in views]
    for first in renderings:
        for second in renderings:
            flow, seen = flow_between(first, second)
            if first is second or seen.mean() < 0.3:
                continue
            y, x = np.nonzero(cv2.erode(seen.astype(np.uint8), np.ones((5, 5))))
            at = (np.stack([x, y], -1) + flow[y, x]).astype(np.float32)
            other = cv2.remap(cv2.GaussianBlur(second.image, (0, 0), 1), at[:, None], None, cv2.INTER_LINEAR)[:, 0]
            own = cv2.GaussianBlur(first.image, (0, 0), 1)[y, x]
            shuffled = own[np.random.default_rng(0).permutation(len(own))]
            near, far = (np.abs(a.astype(float) - other).mean() for a in (own, shuffled))
            assert near < 0.4 * far
            found += 1
    assert found >= 2


def test_visitors_have_no_flow():
    (world, shot), *_ = build_world("object", replace(TINY, seed=1))
    camera = Camera.looking(np.array([0.01, -0.1, 2.2]), np.zeros(3), (96, 96), 120)
    alone, visited = (taken(world, camera, replace(EVEN, people=k)) for k in (0, 1))
    assert not alone.moving.any()
    assert visited.moving.any()
    assert not flow_between(visited, visited)[1][visited.moving].any()


def test_twins_look_alike_and_share_nothing(tmp_path):
    folder = write_world(tmp_path / "twins", "room", replace(TINY, seed=4, twin=1, images=6))
    truth = SceneTruth(folder)
    names = sorted(truth.cameras)
    for first in names[:3]:
        for second in names[3:]:
            assert truth.overlap(first, second) == 0
    (one, _), *_, (other, _) = build_world("room", replace(TINY, seed=4, twin=1))
    assert one is not other
    sizes = [np.ptp(world.mesh.corners.reshape(-1, 3), axis=0) for world in (one, other)]
    np.testing.assert_allclose(*sizes)  # of one design


def test_no_picture_of_a_stage_is_that_of_its_twin():
    """With the same tablecloth or the same walls, both would be one stage at two times."""
    for seed in range(4):
        settings = WorldSettings(width=128, height=96, images=4, textures=40, twin=1, seed=seed)
        (one, _), *_, (other, _) = build_world("object", settings)
        assert one is not other
        pictures = [{tuple(row) for row in world.mesh.params.round(6).tolist()} for world in (one, other)]
        assert len(pictures[0] & pictures[1]) == 0


def test_most_of_a_court_is_repeated():
    """Panes of one picture, the same on all four wings, and pictures of which some show nothing in common."""
    views = build_world("court", replace(TINY, seed=1, images=12))
    params = views[0][0].mesh.params
    _, counts = np.unique(params, axis=0, return_counts=True)
    assert counts.max() > 0.5 * len(params)
    renderings = [taken(world, shot.camera) for world, shot in views[::2]]
    shares = [flow_between(a, b)[1].mean() for a in renderings for b in renderings if a is not b]
    assert min(shares) == 0
    assert max(shares) > 0.1


def test_a_folder_is_read_like_a_towns_and_written_once(tmp_path):
    settings = replace(TINY, seed=2)
    folder = write_world(tmp_path / "room", "room", settings)
    truth = SceneTruth(folder)
    names = sorted(truth.cameras)
    assert list_images(folder / "images") == names
    assert len(names) == 4
    assert max(truth.overlap(a, b) for a in names for b in names if a != b) > 0.2
    before = (folder / "images" / names[0]).stat().st_mtime_ns
    write_world(folder, "room", settings)
    assert (folder / "images" / names[0]).stat().st_mtime_ns == before
    with pytest.raises(SettingsError, match="layout: room -> object"):
        write_world(folder, "object", settings)


def test_the_same_seed_gives_the_same_pictures_another_one_others():
    def first(seed: int) -> np.ndarray:
        return picture_of(*build_world("object", replace(TINY, seed=seed))[0]).image

    np.testing.assert_array_equal(first(5), first(5))
    assert (first(5).astype(int) - first(6)).any()


@pytest.mark.parametrize("kind", ["room", "object", "court"])
def test_every_picture_finds_a_place(kind):
    for seed in range(6):
        assert len(build_world(kind, replace(TINY, seed=seed, images=12, textures=4, twin=0.5))) == 12


def test_the_command_dresses_worlds_in_photographs_that_are_not_held_out(tmp_path, monkeypatch):
    from pdc_sfm.synthetic.photographs import held_out

    rng = np.random.default_rng(0)
    for number in range(0, 400, 10):
        write_image(tmp_path / "photos" / f"p{number:04d}.jpg", rng.integers(0, 255, (100, 100, 3)).astype(np.uint8))
    given = []
    monkeypatch.setattr(
        "pdc_sfm.scenes.write_world", lambda *args, **kwargs: given.extend(path.name for path in args[3])
    )
    words = ["scene", "--kind", "room", "--photos", str(tmp_path / "photos"), "--output", str(tmp_path / "room")]
    assert main(words) == 0
    assert 0 < len(given) < 40
    assert not any(held_out(name) for name in given)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--photos", "x"], "--kind room, object or court"),
        (["--kind", "room", "--layout", "aachen"], "is for towns"),
        (["--kind", "object", "images=1"], "images=1"),
        (["--kind", "object", "database=3"], "database"),
    ],
)
def test_what_does_not_fit_together_is_said(words, said, tmp_path, capsys):
    assert main(["scene", "--output", str(tmp_path / "out"), *words]) == 2
    assert said in capsys.readouterr().err
