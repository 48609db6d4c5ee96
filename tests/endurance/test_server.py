"""A server under a thousand requests, a tenth of them bad, whose clients go away; within its memory; and killed in between."""

import collections
import resource
import signal
import threading

import pytest
from many_clients import GOOD, ServerProcess, ask_many
from plane_map import make_map
from serving import wait_until

from pdc_sfm.client import Client, ServerError

GROWN = 40 << 20  # bytes that it may be larger after a thousand requests than after a hundred
LIMIT = 1 << 30  # bytes of its data, stacks of threads included
KILLS = 3
pytestmark = pytest.mark.endurance


@pytest.fixture(scope="module")
def wall(tmp_path_factory):
    pytest.importorskip("uvicorn", reason="needs the extra [serve]")
    return make_map(tmp_path_factory.mktemp("wall"))


def test_a_thousand_requests(wall, tmp_path, tally):
    outcomes = collections.Counter()
    server = ServerProcess(wall / "sfm", tmp_path / "state")
    resource.prlimit(server.process.pid, resource.RLIMIT_DATA, (LIMIT, LIMIT))
    with tally("server: requests", 1000):
        ask_many(server.url, 100, outcomes)
        before = server.bytes()
        for part in range(1, 10):
            ask_many(server.url, 100, outcomes, part)
        grown = server.bytes() - before
        assert server.end(signal.SIGTERM) == 0
        print(f"\n{dict(outcomes)}; after 1,000 requests {grown / 2**20:.1f} MB larger than after 100")
        assert outcomes == {"answered": 800, "refused": 100, "went away": 100}
        assert grown < GROWN
        assert "Traceback" not in server.complaints()


def test_kills_lose_no_request_that_was_taken(wall, tmp_path, tally):
    """Photographs are sent all the time; whenever a number was given for one, its answer comes, whoever is killed."""
    taken, ended = {}, threading.Event()
    server = ServerProcess(wall / "sfm", tmp_path / "state")

    def keep_sending():
        lights = list(GOOD)
        while not ended.is_set():
            light = lights[len(taken) % len(lights)]
            try:
                taken[Client(server.url, timeout=30).submit(GOOD[light])] = light
            except ServerError:  # it is dead: the next one listens elsewhere
                ended.wait(0.2)

    sender = threading.Thread(target=keep_sending)
    sender.start()
    with tally("server: kills", KILLS):
        try:
            for kill in range(KILLS):
                more = len(taken) + 10 + kill
                wait_until(lambda more=more: len(taken) >= more)
                server.end(signal.SIGKILL)
                server = ServerProcess(wall / "sfm", tmp_path / "state")
        finally:
            ended.set()
            sender.join()
        client = Client(server.url)
        for number, light in taken.items():
            wait_until(lambda number=number: client.request(number).state not in ("queued", "running"))
            assert client.request(number).answer["inliers"] == light
        assert server.end(signal.SIGTERM) == 0
