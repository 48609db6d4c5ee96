"""Serve a map over HTTP: answer where photographs were taken, with a web page.

OUT is what `map`, `reconstruct`, `triangulate` or `demo` wrote. The network, the map and everything computed from its
images stay in memory, so nothing is loaded twice. Open the address in a browser and drop or take a photograph, or send
requests with curl or `pdc_sfm.client` (docs/serve.md). Answers are those of `localize --map`.

Requests wait in a queue (serve.queue); when it is full, clients are told when to try again. Requests and answers are
stored in --state and survive a kill; SIGTERM finishes the work in progress. If the map in OUT is replaced, the server
loads the new one. With serve.additions=true, photographs sent to /images are added to the map as by `extend`; OUT
itself is not changed. Only this machine can connect, unless --host says otherwise and --token-file names a secret that
others must send; for TLS, use a proxy. Needs: pip install 'pdc-sfm[serve]'.

Examples:
  pdc-sfm serve --map outputs/photos
  curl --data-binary @photo.jpg http://127.0.0.1:8080/localize
  pdc-sfm serve --map outputs/photos --host 0.0.0.0 --token-file token.txt serve.queue=8 match.memory=2GB
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.commands.shared.query_settings import TARGETS, by_prefix, load_query_settings
from pdc_sfm.errors import SettingsError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--map", type=Path, required=True, metavar="OUT", help="map: output of map, reconstruct, triangulate, demo"
    )
    parser.add_argument("--port", type=int, default=8080, help="port to listen on; 0: any free one (8080)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file with the secret that requests must send")
    parser.add_argument("--top", type=int, default=20, help="at most so many images of the map per photograph (20)")
    parser.add_argument("--state", type=Path, metavar="DIR", help="folder of what is kept between runs (OUT/serve)")
    parser.add_argument("--database-images", type=Path, help="the map's images, if they were moved")
    parser.add_argument("--features", type=Path, help="feature file (h5) of the map, if it was moved")
    add_settings(parser, {**TARGETS, "serve": "pdc_sfm.serve.settings:ServeSettings"})
    parser.set_defaults(
        paths=Paths(images=("database_images",), inputs=("features", "token_file"), models=("map",), folders=("state",))
    )


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.serve.resident_map import QuerySettings
    from pdc_sfm.serve.run import serve
    from pdc_sfm.serve.settings import ServeSettings
    from pdc_sfm.settings import load_settings

    own = by_prefix(args.settings, ("match", "retrieve", "serve"))
    queries = QuerySettings(*load_query_settings(args.config, own), top=args.top)
    serve(
        args.map,
        host=args.host,
        port=args.port,
        token=None if args.token_file is None else _token(args.token_file),
        images=args.database_images,
        features=args.features,
        state=args.state,
        queries=queries,
        settings=load_settings(ServeSettings, None, own["serve"]),
        started=lambda url: print(f"the map answers at {url} (page for people, /api for programs)", flush=True),
    )


def _token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the token in {path}: {error}") from None
