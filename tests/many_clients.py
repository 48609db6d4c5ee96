"""Many who ask a server at once, a tenth of them badly, some of whom go away; and a server that is a process of its own."""

import collections
import http.client
import io
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

from pdc_sfm.client import Client, ServerError

TESTS = Path(__file__).resolve().parent
CLIENTS = 8
PATIENCE = 300  # seconds: a machine that does other things is slow, not wrong


def picture(light):
    content = io.BytesIO()
    Image.fromarray(np.full((48, 64, 3), light, np.uint8)).save(content, "PNG")
    return content.getvalue()


GOOD = {light: picture(light) for light in range(0, 256, 5)}
BAD = [b"", b"no picture", bytes(3_000_000), GOOD[5][:60], b"\xff\xd8\xff\xe1\xff\xff" + bytes(50)]


def ask_many(url, count, outcomes, seed=0):
    """So many requests by several clients: what became of each is counted, and no answer is another's."""
    todo = collections.deque(range(count))
    lock = threading.Lock()

    def one(number, rng):
        if number % 10 == 3:  # badly
            try:
                Client(url, timeout=PATIENCE).localize(rng.choice(BAD))
            except ServerError as error:
                # 0: it hung up on three megabytes
                return "refused" if error.status in (0, 413, 415, 422) else f"refused with {error.status}"
            return "answered what is no picture"
        light = rng.choice(list(GOOD))
        if number % 10 == 7:  # and goes away
            where = urlsplit(url)
            gone = http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE)
            gone.request("POST", "/localize", GOOD[light])
            gone.close()
            return "went away"
        found = Client(url, timeout=PATIENCE).localize(GOOD[light])
        return "answered" if found.inliers == light else f"wrong: {found.inliers} for {light}"

    def client(own):
        rng = random.Random(own)
        while True:
            try:
                number = todo.popleft()
            except IndexError:
                return
            try:
                outcome = one(number, rng)
            except ServerError as error:
                outcome = f"failed: {error}"
            with lock:
                outcomes[outcome] += 1

    threads = [threading.Thread(target=client, args=(seed * 100 + own,)) for own in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class ServerProcess:
    """A server whose answers tell the brightness of a photograph, of the map in `folder`. What it complains of is in `log`."""

    def __init__(self, folder, state):
        words = [sys.executable, str(TESTS / "brightness_server.py"), str(folder), str(state)]
        path = os.pathsep.join([str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")])
        own = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        self._log = Path(f"{state}.log")  # a file: a pipe that no one reads would hold it up
        with self._log.open("a") as log:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=own)
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.complaints()

    def complaints(self):
        return self._log.read_text()

    def bytes(self):
        """What it has in memory."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) << 10

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)
