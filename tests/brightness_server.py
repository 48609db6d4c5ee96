"""A server whose answers tell the brightness of a photograph: a program of its own, to be stopped and killed.

python brightness_server.py MAP STATE: prints its address.
"""

import sys
from pathlib import Path

from fake_network import FakeNetwork
from serving import tell_brightness

from pdc_sfm.demo.queries import open_map
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.retrieval import RetrievalSettings
from pdc_sfm.serve.app import make_app
from pdc_sfm.serve.http import run_app
from pdc_sfm.serve.resident_map import QuerySettings
from pdc_sfm.serve.server import MapServer
from pdc_sfm.serve.settings import ServeSettings


def main(folder: Path, state: Path) -> None:
    queries = QuerySettings(MatchingSettings(device="cpu"), RetrievalSettings(device="cpu"))
    settings = ServeSettings(queue=16, upload="2MB")
    server = MapServer(lambda: open_map(folder), state, queries, settings, FakeNetwork())
    server.map.localize = tell_brightness
    run_app(make_app(server), "127.0.0.1", 0, lambda url: print(url, flush=True), server.workers.end)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
