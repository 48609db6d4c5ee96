"""A map and a server in this process, for all tests of serving."""

import pytest
from plane_map import MATCHING, RETRIEVAL, make_map

from pdc_sfm.client import Client
from pdc_sfm.demo.queries import open_map
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.retrieval import RetrievalSettings
from pdc_sfm.serve.resident_map import QuerySettings
from pdc_sfm.serve.settings import ServeSettings
from pdc_sfm.settings import load_settings

pytest.importorskip("uvicorn", reason="needs the extra [serve]")
pytest.importorskip("fastapi", reason="needs the extra [serve]")


@pytest.fixture(scope="session")
def wall(tmp_path_factory):
    return make_map(tmp_path_factory.mktemp("wall"))


@pytest.fixture(scope="session")
def queries():
    matching, finding = (
        load_settings(MatchingSettings, None, MATCHING),
        load_settings(RetrievalSettings, None, RETRIEVAL),
    )
    return QuerySettings(matching, finding, top=3)


@pytest.fixture(scope="session")
def network():
    from pdc_sfm.weights import load_network

    return load_network(None, "cpu")


@pytest.fixture
def make_server(wall, queries, network, tmp_path):
    """Servers of the wall in a folder of this test. `light`: answers tell the brightness of a photograph, at once."""
    from pdc_sfm.serve.server import MapServer

    def make(light=None, **limits):
        server = MapServer(
            lambda: open_map(wall / "sfm"), tmp_path / "state", queries, ServeSettings(**limits), network
        )
        if light is not None:
            server.map.localize = light
        return server

    return make


@pytest.fixture
def ask():
    return lambda url, **options: Client(url, timeout=60, **options)
