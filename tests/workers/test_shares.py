"""A list is given out in blocks: each item once, neighbors to the same worker, nobody idle while there is work."""

import contextlib
import random
from types import SimpleNamespace

import pytest

from pdc_sfm.errors import ClusterError, SettingsError
from pdc_sfm.workers import Block, LocalPool, RaySettings, Shares, open_pool


def items(blocks):
    return sorted(i for block in blocks for i in range(block.start, block.stop))


def taken(shares, workers, rng):
    """All blocks, asked for by workers at random."""
    found = {worker: [] for worker in range(workers)}
    while shares:
        worker = rng.randrange(workers)
        if block := shares.take(worker):
            found[worker].append(block)
    assert all(shares.take(worker) is None for worker in range(workers))
    return found


@pytest.mark.parametrize(("count", "workers", "size"), [(100, 1, 7), (100, 3, 7), (5, 8, 2), (1, 2, 32), (1000, 4, 1)])
def test_every_item_is_given_out_once(count, workers, size):
    found = taken(Shares(count, workers, size), workers, random.Random(count))
    blocks = [block for some in found.values() for block in some]
    assert items(blocks) == list(range(count))
    assert all(0 < block.stop - block.start <= size and block.stop <= block.end <= count for block in blocks)


def test_a_worker_goes_on_where_it_was():
    shares = Shares(120, 3, 10)
    first = [shares.take(1) for _ in range(4)]
    assert [(block.start, block.stop, block.end) for block in first] == [(40 + k, 50 + k, 80) for k in (0, 10, 20, 30)]


def test_who_has_finished_takes_the_later_half_of_the_largest_share():
    shares = Shares(120, 2, 10)
    assert [shares.take(0).start for _ in range(6)] == [0, 10, 20, 30, 40, 50]
    shares.take(1)
    assert shares.take(0) == Block(90, 100, 120)  # of 70 to 120: in whole blocks, the larger part
    assert [shares.take(1) for _ in range(3)] == [Block(70, 80, 90), Block(80, 90, 90), Block(110, 120, 120)]


def test_the_last_block_is_taken_from_who_has_not_begun_it():
    shares = Shares(20, 2, 10)
    assert shares.take(0).start == 0
    assert shares.take(0) == Block(10, 20, 20)
    assert shares.take(1) is None


def test_blocks_of_a_lost_worker_come_again_before_the_rest_of_its_share():
    shares = Shares(100, 2, 10)
    lost = [shares.take(0), shares.take(0)]
    shares.give_back(0, lost)
    assert shares.take(0) == Block(0, 10, 50)
    assert items(
        [Block(0, 10, 50), *(b for some in taken(shares, 2, random.Random(0)).values() for b in some)]
    ) == list(range(100))


def test_blocks_of_a_worker_lost_at_the_end_go_to_the_others():
    shares = Shares(20, 2, 10)
    lost, _ = [shares.take(0)], shares.take(1)
    assert not shares
    shares.give_back(0, lost)
    assert shares
    assert shares.take(1) == Block(0, 10, 10)


class Doubling:
    def double(self, numbers, item):
        return [2 * number for number in numbers[item.start : item.stop]]


def test_the_local_pool_makes_its_work_object_when_it_is_needed_and_once():
    made = []
    with LocalPool(lambda: made.append(0) or Doubling(), block=2) as pool:
        assert made == []
        results = list(pool.run("double", [1, 2, 3], 3))
        assert results == [(Block(0, 2, 3), [2, 4]), (Block(2, 3, 3), [6])]
        assert pool.call("double", [5]) == [10]
    assert made == [0]


def test_settings_out_of_range_are_named():
    for values in ({"workers": 0}, {"cores": 0}, {"gpus": -1.0}, {"block": 0}, {"address": "ray://head:10001"}):
        with pytest.raises(SettingsError, match=f"ray.{next(iter(values))}="):
            RaySettings(**values)
    with pytest.raises(SettingsError, match="device=cuda:1"):
        open_pool("ray", RaySettings(), Doubling, device="cuda:1")


@pytest.mark.parametrize(("device", "gpus"), [("auto", 1.0), ("cuda", 1.0), ("cpu", 0.0)])
@pytest.mark.parametrize("there", [0, 2])
def test_auto_gives_each_worker_a_gpu_if_the_cluster_has_any(monkeypatch, device, gpus, there):
    from pdc_sfm.workers import ray_pool

    machines = [{"CPU": 8.0}, {"CPU": 8.0, **({"GPU": float(there)} if there else {})}]
    ray = SimpleNamespace(nodes=lambda: [{"Alive": True, "Resources": machine} for machine in machines])
    monkeypatch.setattr(ray_pool, "connected", lambda *_: contextlib.nullcontext(ray))
    monkeypatch.setattr(ray_pool.RayPool, "_new_slot", lambda pool, number: (number, pool._gpus))
    pool = open_pool("ray", RaySettings(), Doubling, device=device)
    if device == "cuda" and not there:
        with pytest.raises(ClusterError, match="1 GPUs"):
            pool._start()
        return
    pool._start()
    assert pool._slots == [(i, gpus) for i in range(2)] if gpus and there else [(i, 0.0) for i in range(16)]
    assert RaySettings(gpus=0.5).gpus_of_worker(device) == 0.5


def test_without_ray_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with open_pool("ray", RaySettings(), Doubling) as pool, pytest.raises(ClusterError, match=r"pdc_sfm\[ray\]"):
        pool.call("double", [1])


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense"])
def test_a_cluster_that_is_not_there_is_one_line_at_once(address):
    with open_pool("ray", RaySettings(address=address), Doubling) as pool, pytest.raises(ClusterError, match=address):
        pool.call("double", [1])
