"""The same files by workers on Ray: when one is killed, when the run is stopped and continued, when nothing goes right."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from fake_matcher import FakeMatcher, write_images
from fake_network import FakeNetwork, gray_images
from h5_content import content
from noting_matcher import Doubling, NotingMatcher

from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.errors import ClusterError, ImageError
from pdc_sfm.keypoints.extraction import export_keypoints
from pdc_sfm.keypoints.types import KeypointSettings
from pdc_sfm.retrieval import RetrievalSettings, retrieve
from pdc_sfm.store.journal import RawStore
from pdc_sfm.workers import RaySettings, open_pool

if find_spec("ray") is None:  # not imported here: it reads its environment on import
    pytest.skip("Ray is an optional extra: pip install pdc_sfm[ray]", allow_module_level=True)

pytestmark = pytest.mark.slow
TESTS = Path(__file__).resolve().parents[1]
TWO = MatchingSettings(engine="ray", ray=RaySettings(workers=2, block=4))


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two cores for all tests of this file, as a run starts it; in the end nothing of it is left."""
    from pdc_sfm.workers.cluster import connected

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{TESTS}:{TESTS.parent}")  # for the fakes
        with contextlib.ExitStack() as stack:
            try:
                ray = stack.enter_context(connected(None, 2))
            except ClusterError as error:
                if "timed out during startup" in str(error):
                    pytest.skip("this machine is too busy: Ray gives its own processes 30 seconds to start")
                raise
            folder = Path(ray._private.worker._global_node.get_session_dir_path()).parent
            yield ray.get_runtime_context().gcs_address
    assert not folder.exists()
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if folder.name in _read(path)]


def _read(path):
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.fixture
def photos(tmp_path):
    """Nine images, all their pairs, a folder, and the content of the local engine's files."""
    names = write_images(tmp_path / "photos", 9)
    match_pairs(tmp_path / "photos", exhaustive_pairs(names), tmp_path / "local", matcher=FakeMatcher())
    return tmp_path / "photos", exhaustive_pairs(names), tmp_path / "out", content(tmp_path / "local")


def finished(output):
    return len(RawStore(output / "matches-pdc_pairs.raw"))


def notes_of(path):
    return [line.split() for line in path.read_text().splitlines()]


def test_a_stopped_local_run_goes_on_with_two_workers_of_which_one_is_killed(
    cluster, photos, monkeypatch, caplog, tmp_path
):
    images, pairs, output, expected = photos

    class Stopped(FakeMatcher):
        identity = "FakeMatcher"

        def match(self, *codes):
            if len(self.matched) == 10:
                raise KeyboardInterrupt
            return super().match(*codes)

    with pytest.raises(KeyboardInterrupt):
        match_pairs(images, pairs, output, matcher=Stopped())
    assert finished(output) == 10
    result = match_pairs(images, pairs, output, TWO, matcher=NotingMatcher(tmp_path / "notes", dies_of=pairs[-1]))
    assert (result.loop.pairs, result.complete) == (26, True)
    assert content(output) == expected
    assert 26 < len(notes_of(tmp_path / "notes")) <= 26 + 3  # blocks are of 26 // (4 * 2) pairs, and one is done again
    assert [record.message.split(" (")[0] for record in caplog.records] == ["a worker was lost"]


STOPPED = """
import sys
from noting_matcher import NotingMatcher
from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.settings import load_settings

images, output, notes, address = sys.argv[1:]
settings = load_settings(MatchingSettings, None, ["engine=ray", "ray.workers=2", "ray.block=1", f"ray.address={address}"])
try:
    names = [f"db/{i:03d}.png" for i in range(9)]
    match_pairs(images, exhaustive_pairs(names), output, settings, matcher=NotingMatcher(notes, seconds=0.3))
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_a_terminated_run_ends_quietly_with_its_workers_and_goes_on_with_one_worker(cluster, photos, tmp_path):
    images, pairs, output, expected = photos
    arguments = [sys.executable, "-c", STOPPED, images, output, tmp_path / "notes", cluster]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    until = time.monotonic() + 300
    while not list(output.glob("*.raw/*.matches")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    said = process.communicate()[0].decode()
    assert (process.returncode, said) == (130, "")
    done = finished(output)
    assert 0 < done < 36
    workers = [Path("/proc") / number for number, *_ in notes_of(tmp_path / "notes")]
    while any(map(Path.exists, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(Path.exists, workers))
    (tmp_path / "notes").unlink()
    one = replace(TWO, ray=RaySettings(workers=1))
    assert match_pairs(images, pairs, output, one, matcher=NotingMatcher(tmp_path / "notes")).complete
    assert len(notes_of(tmp_path / "notes")) == 36 - done
    assert content(output) == expected


def test_what_kills_every_worker_is_left_to_the_end_and_users_errors_keep_their_kind(cluster):
    found = {}
    with open_pool("ray", RaySettings(workers=1), Doubling) as pool:
        with pytest.raises(ImageError, match=r"^seven is no image$"):
            list(pool.run("double", [7, 8], 2, block=2))
        first = pool.call("process", None)
        results = ((block.start, numbers) for block, numbers in pool.run("double", [11, 12, 13, 14, 15], 5, block=2))
        with pytest.raises(ClusterError, match="3 workers died of each of 1 blocks of 2"):
            found.update(results)
        assert found == {0: [22, 24], 4: [30]}
        assert pool.call("process", None) not in (first, os.getpid())


def test_a_cluster_without_room_for_a_worker_is_one_line(cluster):
    with open_pool("ray", RaySettings(cores=64), Doubling) as pool, pytest.raises(ClusterError, match="has 64 cores"):
        pool.call("process", None)
    with open_pool("ray", RaySettings(), Doubling, device="cuda") as pool, pytest.raises(ClusterError, match="1 GPUs"):
        pool.call("process", None)


def test_retrieval_and_keypoints_are_those_of_the_local_engine(cluster, tmp_path):
    images = tmp_path / "images"
    names = [f"{value}.png" for value in range(100, 120)]
    gray_images(images, {name: int(name[:3]) for name in names})
    settings = RetrievalSettings(method="direct", candidates=8, best=4, min_side=48, readers=0, coarse_batch=5)
    files = {}
    for engine in ("local", "ray"):
        where = {"engine": engine, "ray": RaySettings(workers=1, block=3)}
        folder = tmp_path / engine
        found = retrieve(
            images, names[:6], names, folder / "pairs.txt", 3, replace(settings, **where), network=FakeNetwork()
        ).found
        assert [len(some) for some in found.values()] == [3] * 6
        export_keypoints(images, folder / "keypoints.h5", KeypointSettings(max_keypoints=9, **where))
        files[engine] = [(folder / name).read_text() for name in ("pairs.txt", "pairs.json")], content(folder)
    assert files["ray"] == files["local"]
