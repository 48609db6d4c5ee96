"""A worker gets its share in blocks and needs no more encodings than if it had it at once."""

import numpy as np
import pytest
from fake_matcher import FakeMatcher, write_images

from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.work import PairWork, Plan
from pdc_sfm.errors import ImageError
from pdc_sfm.workers import Block


@pytest.fixture
def plan(tmp_path):
    """Every image with the next three of a row of twelve."""
    names = write_images(tmp_path, 12)
    return Plan(names, np.array([(i, i + k) for i in range(9) for k in (1, 2, 3)], np.int32))


def in_blocks(work, plan, size, start, end):
    """The pairs that were found, block after block, and the images that were encoded."""
    found, encoded = [], []
    for first in range(start, end, size):
        done = work.match(plan, Block(first, min(first + size, end), end))
        found += [some.pair for some in done.found]
        encoded += done.encoded
    return found, encoded


@pytest.mark.parametrize("memory", [4000, 10**6])
def test_codes_are_kept_from_block_to_block(plan, tmp_path, memory):
    whole = in_blocks(PairWork(tmp_path, FakeMatcher(), memory=memory), plan, 27, 0, 27)
    parts = in_blocks(PairWork(tmp_path, FakeMatcher(), memory=memory), plan, 2, 0, 27)
    assert parts == whole
    assert len(parts[1]) == 12  # four codes fit, and more are never needed
    assert parts[0] == [plan.pair(step) for step in range(27)]


def test_batches_end_with_their_block(plan, tmp_path):
    work = PairWork(tmp_path, FakeMatcher(), memory=10**6, batch=4)
    assert len(work.match(plan, Block(0, 6, 27)).found) == 6


def test_another_share_begins_with_the_codes_it_needs_of_those_in_memory(plan, tmp_path):
    work = PairWork(tmp_path, FakeMatcher(), memory=10**6)
    work.match(plan, Block(0, 3, 27))  # images 0 to 3
    assert work.match(plan, Block(6, 9, 9)).encoded == [plan.names[4], plan.names[5]]  # 2 with 3, 4, 5
    assert work.match(plan, Block(24, 27, 27)).encoded == plan.names[8:]  # 8 with 9, 10, 11
    other = Plan(plan.names[8:], np.array([(0, 1), (2, 3)], np.int32))
    done = work.match(other, Block(0, 2, 2))
    assert [found.pair for found in done.found] == [tuple(plan.names[8:10]), tuple(plan.names[10:])]


def test_images_read_ahead_for_pairs_that_another_worker_took_make_room(plan, tmp_path):
    work = PairWork(tmp_path, FakeMatcher(), memory=10**6, readers=2)
    work.match(plan, Block(0, 1, 27))
    assert [name for name in plan.names if name in work._reader] == plan.names[2:4]  # as the first pairs to come say
    work.match(plan, Block(18, 19, 27))  # the rest of the first share was taken
    assert [name for name in plan.names if name in work._reader] == plan.names[8:10]
    work.close()


def test_a_bad_image_costs_its_pairs_in_later_blocks_too(plan, tmp_path):
    (tmp_path / plan.names[2]).write_bytes(b"no image")
    work = PairWork(tmp_path, FakeMatcher(), memory=10**6)
    first, second = work.match(plan, Block(0, 3, 27)), work.match(plan, Block(3, 6, 27))
    assert (list(first.bad), first.skipped) == ([plan.names[2]], [tuple(plan.names[0:3:2])])
    assert (second.bad, second.skipped) == ({}, [tuple(plan.names[1:3])])
    with pytest.raises(ImageError, match=r"002\.png"):
        PairWork(tmp_path, FakeMatcher(), memory=10**6, strict=True).match(plan, Block(0, 3, 27))


def test_the_first_readable_image_tells_the_size_of_a_code(plan, tmp_path):
    (tmp_path / plan.names[0]).write_bytes(b"no image")
    matcher = FakeMatcher(code_bytes=1234)
    size, done = PairWork(tmp_path, matcher, memory=10**6).code_bytes(plan.names)
    assert (size, list(done.bad), done.encoded) == (1234, [plan.names[0]], [plan.names[1]])
    names = [name for pair in exhaustive_pairs(plan.names[:1]) for name in pair]
    assert PairWork(tmp_path, matcher, memory=10**6).code_bytes([*names, plan.names[0]])[0] is None
