"""Memory below need: said, and gone on with less; the result is the same."""

import pytest
from fake_matcher import FakeMatcher, write_images, write_list
from h5_content import content

from pdc_sfm.engine.cache import CodeCache
from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.errors import SettingsError


class Tight(FakeMatcher):
    """As on a machine that has no room for more than `room` codes; `error` is how it says so."""

    identity = "FakeMatcher"

    def __init__(self, room, error):
        super().__init__()
        self.room, self.error, self.held = room, error, lambda: 0

    def encode(self, image, name):
        if self.held() >= self.room:
            raise self.error
        return super().encode(image, name)

    def match_batch(self, codes):
        raise self.error

    def match(self, code0, code1):
        if self.held() > self.room:
            raise self.error
        return super().match(code0, code1)


@pytest.fixture
def photos(tmp_path):
    names = write_images(tmp_path / "photos", 8)
    return tmp_path / "photos", write_list(tmp_path / "all.txt", exhaustive_pairs(names))


@pytest.fixture
def held(monkeypatch):
    """Codes in memory now."""
    caches = []
    begin = CodeCache.__init__
    monkeypatch.setattr(CodeCache, "__init__", lambda self, *a: (begin(self, *a), caches.append(self))[0])
    return lambda: caches[-1].bytes // 1000 if caches else 0


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
              RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"),
              RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
              RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")],
)  # fmt: skip
@pytest.mark.parametrize("batch", [1, 4])
def test_when_memory_runs_out_fewer_codes_are_kept_and_the_result_is_the_same(photos, tmp_path, held, error, batch):
    matcher = Tight(4, error)
    matcher.held = held
    settings = MatchingSettings(memory="1GB", batch=batch, readers=0)
    result = match_pairs(photos[0], photos[1], tmp_path / "tight", settings, matcher=matcher)
    assert any("MB of codes are kept" in remark for remark in result.loop.remarks)
    match_pairs(photos[0], photos[1], tmp_path / "wide", MatchingSettings(memory="1GB"), matcher=FakeMatcher())
    assert content(tmp_path / "tight") == content(tmp_path / "wide")


def test_when_even_one_pair_is_too_much_that_is_said_and_what_was_done_is_kept(photos, tmp_path):
    with pytest.raises(SettingsError, match=r"not enough memory for db/000\.png: set a lower dense\.max_side"):
        match_pairs(photos[0], photos[1], tmp_path / "out", matcher=Tight(0, MemoryError()))


def test_no_more_codes_are_kept_than_the_device_has_room_for(photos, tmp_path, held):
    matcher = FakeMatcher()
    matcher.free_bytes = lambda: 5000
    most = []
    match = matcher.match
    matcher.match = lambda *codes: (most.append(held()), match(*codes))[1]
    result = match_pairs(
        photos[0], photos[1], tmp_path / "a", MatchingSettings(memory="1GB", readers=0), matcher=matcher
    )
    assert max(most) == 3  # of 1000 bytes: 0.7 of what is free
    assert list(result.loop.remarks) == ["the device has 0 MB free: 0 MB of codes are kept, not 953"]


def test_other_errors_are_not_taken_for_a_lack_of_memory(photos, tmp_path):
    with pytest.raises(RuntimeError, match="shape mismatch"):
        match_pairs(photos[0], photos[1], tmp_path / "out", matcher=Tight(0, RuntimeError("shape mismatch")))


def test_a_limit_below_two_codes_is_said_and_the_result_is_the_same(photos, tmp_path):
    result = match_pairs(photos[0], photos[1], tmp_path / "a", MatchingSettings(memory="1500"), matcher=FakeMatcher())
    assert list(result.loop.remarks) == [
        "memory=1500 bytes holds no two codes of 1000: images are encoded again and again; give more"
    ]
    match_pairs(photos[0], photos[1], tmp_path / "b", matcher=FakeMatcher())
    assert content(tmp_path / "a") == content(tmp_path / "b")
