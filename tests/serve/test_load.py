"""Many who ask at once, a tenth of them badly, some of whom go away; a server that is stopped, and one that is killed.

A thousand of them, and kills in between: tests/endurance.
"""

import collections
import signal

import pytest
from many_clients import GOOD, ServerProcess, ask_many
from serving import running, tell_brightness, wait_until

from pdc_sfm.client import Client


def test_each_gets_its_own_answer(make_server, caplog):
    outcomes = collections.Counter()
    with running(make_server(tell_brightness, queue=16, upload="2MB")) as url:
        ask_many(url, 100, outcomes)
    assert outcomes == {"answered": 80, "refused": 10, "went away": 10}
    assert caplog.text == ""  # what clients do is no failure of the server


@pytest.mark.slow
def test_sigterm_ends_it_without_a_failure_and_a_kill_loses_nothing(wall, tmp_path):
    server = ServerProcess(wall / "sfm", tmp_path / "state")
    answered = Client(server.url).submit(GOOD[50])
    wait_until(lambda: Client(server.url).request(answered).state == "done")
    queued = [Client(server.url).submit(GOOD[light]) for light in (10, 20, 30)]
    assert server.end(signal.SIGKILL) == -signal.SIGKILL
    server = ServerProcess(wall / "sfm", tmp_path / "state")
    client = Client(server.url)
    for number, light in zip([answered, *queued], (50, 10, 20, 30)):
        wait_until(lambda number=number: client.request(number).state not in ("queued", "running"))
        assert client.request(number).answer["inliers"] == light
    assert server.end(signal.SIGTERM) == 0
    assert server.complaints() == ""
