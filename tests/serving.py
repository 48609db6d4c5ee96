"""A server in this process, and an answer that needs no network."""

import contextlib
import threading
import time

from pdc_sfm.client import Localization


@contextlib.contextmanager
def running(server, token=None, local=True):
    """A server on a free port of this machine; its address."""
    import uvicorn

    from pdc_sfm.serve.app import make_app

    config = uvicorn.Config(
        make_app(server, token, local), port=0, log_config=None, lifespan="on", timeout_keep_alive=1
    )
    own = uvicorn.Server(config)
    thread = threading.Thread(target=own.run)
    thread.start()
    while not own.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{own.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.workers.end()
        own.should_exit = True
        thread.join()


def tell_brightness(photograph, content, where, report):
    """In the place of the network: an answer that tells which photograph it is of."""
    return Localization(False, "brightness", int(photograph.pixels[0, 0, 0]))


def wait_until(true, seconds=300):
    """A machine that does other things is slow, not wrong."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
