"""Files cut off or with a flipped bit between two steps: refused in one line, left out, or of no consequence."""

import random
import shutil

import pytest
from aachen_folder import write_database
from fault_injection import run
from odd_input import in_child
from projections import make_scene, write_features, write_matches, write_pairs

from pdc_sfm.colmap.mapping.filled_database import fill_database
from pdc_sfm.store.journal import RawStore

NAMES = [f"db/{k}.png" for k in range(3)]

SEEDS = [pytest.param(seed, marks=[] if seed == 0 else [pytest.mark.endurance]) for seed in range(6)]


def damage(path, seed):
    """Cut the file off, or flip one of its bits."""
    rng, data = random.Random(f"{path.name} {seed}"), bytearray(path.read_bytes())
    place = rng.randrange(len(data))
    if seed % 2:
        data[place] ^= 1 << rng.randrange(8)
    else:
        del data[place:]
    path.write_bytes(data)


def damaged_inputs(world, tmp_path, name, seed):
    inputs = tmp_path / "inputs"
    shutil.copytree(world.inputs, inputs)
    damage(inputs / name, seed)
    return inputs


def refused(code, said):
    assert code in (0, 2), said
    assert code == 0 or said.splitlines()[-1].startswith("pdc-sfm: "), said
    return code == 2


@pytest.mark.parametrize("name", ["features.h5", "matches.h5", "pairs.txt", "known/images.bin", "known/cameras.bin"])
@pytest.mark.parametrize("seed", SEEDS)
def test_an_input_of_mapping(worlds, tally, tmp_path, name, seed):
    world = worlds("triangulate")
    inputs, output = damaged_inputs(world, tmp_path, name, seed), tmp_path / "output"
    with tally(f"damaged {name}, then triangulate"):
        if refused(*run("triangulate", inputs, output)):
            assert not (output / "sfm").exists()
        elif name.endswith(".h5"):  # one number of thousands may be another
            expected, found = (set(points) for points in (world.expected[0], world.job.result(output)[0]))
            assert len(expected - found) <= 0.02 * len(expected) + 3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_before_localization(worlds, tally, tmp_path, seed):
    world = worlds("localize")
    inputs = damaged_inputs(world, tmp_path, "sfm/points3D.bin", seed)
    with tally("damaged model, then localize"):
        refused(*run("localize", inputs, tmp_path / "output"))


@pytest.mark.parametrize("seed", SEEDS)
def test_raw_matches_between_two_runs(worlds, tally, seed):
    world = worlds("aggregate")
    output = world.output()
    damage(output / "matches-pdc_pairs.raw" / "00000.matches", seed)
    with tally("damaged raw matches, then match"):
        world.continued(output)  # what was lost is matched again


@pytest.mark.parametrize("seed", SEEDS)
def test_an_image_costs_its_own_pairs_only(worlds, tally, tmp_path, seed):
    world = worlds("match")
    inputs, output = damaged_inputs(world, tmp_path, "images/db/003.png", seed), tmp_path / "output"
    with tally("damaged image, then match"):
        code, said = run("match", inputs, output)
        assert code == 0, said
        before, after = (RawStore(folder / "matches-pdc_pairs.raw") for folder in (world.undisturbed, output))
        others = [pair for pair in before.pairs() if "db/003.png" not in pair]
        assert all((before.read(pair).scores == after.read(pair).scores).all() for pair in others)
        assert len(after) == len(others)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["feats_matches-pdc.h5", "matches-pdc_pairs.h5"])
def test_an_output_of_an_earlier_run(worlds, tally, seed, name):
    world = worlds("aggregate")
    output = world.output()
    shutil.copytree(world.undisturbed, output, dirs_exist_ok=True)
    damage(output / name, 2 * seed)  # cut off
    with tally("damaged output, then match"):
        if refused(*run("aggregate", world.inputs, output)):
            (output / name).unlink()
            world.continued(output)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_state_of_training(worlds, tally, tmp_path, seed):
    world = worlds("train")
    output = tmp_path / "output"
    shutil.copytree(world.undisturbed, output)
    damage(output / "last.safetensors", seed)
    with tally("damaged training state, then train"):
        if refused(*run("train", world.inputs, output)):
            (output / "last.safetensors").unlink()
            world.continued(output)
        else:
            assert world.job.result(output) == world.expected


@pytest.mark.parametrize("seed", SEEDS)
def test_the_database_of_the_challenge(tally, tmp_path, seed):
    scene = make_scene(NAMES, points=60)
    write_database(scene, tmp_path / "official.db", NAMES)
    write_pairs(tmp_path / "pairs.txt", scene.pairs())
    files = write_features(scene, tmp_path / "f.h5"), write_matches(scene, tmp_path / "m.h5", scene.pairs())
    damage(tmp_path / "official.db", seed)
    target = tmp_path / "filled.db"
    with tally("damaged database, then fill it"):
        became = in_child(lambda: fill_database(tmp_path / "official.db", target, tmp_path / "pairs.txt", *files))
        assert became in ("done", "refused")
        assert target.exists() == (became == "done")
