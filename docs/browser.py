"""A headless Chromium driven over its debugging pipe: open a file or a page, ask for values, take pictures, hear complaints."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

FLAGS = (
    "--headless --no-sandbox --disable-quic --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --hide-scrollbars --use-angle=swiftshader --enable-unsafe-swiftshader --remote-debugging-pipe"
).split()


def find_chromium() -> str | None:
    """The program, if it is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page. `complaints` are console errors, exceptions, and requests that leave the machine."""

    def __init__(self, program: str, width: int = 1280, height: int = 900, dark: bool = False, timeout: float = 240):
        self.timeout, self.complaints, self._number, self._buffer = timeout, [], 0, b""
        self._server = "file:"
        self._folder = tempfile.mkdtemp()
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def place() -> None:  # Chromium reads from descriptor 3 and writes to 4
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        command = [program, *FLAGS, f"--user-data-dir={self._folder}", f"--window-size={width},{height}", "about:blank"]
        self._process = subprocess.Popen(
            command, preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def open(self, path: Path) -> None:
        """Load a file and wait until it is complete."""
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'")

    def visit(self, url: str) -> None:
        """Load a page of a server, which may ask that server for more."""
        self._server = url[: url.index("/", url.index("://") + 3) + 1]
        self.call("Page.navigate", url=url)
        self.wait_for(f"document.readyState === 'complete' && location.href.startsWith({url!r})")

    def ask(self, expression: str):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + self.timeout
        while not self.ask(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {expression}; heard: {self.complaints}")
            time.sleep(0.1)

    def picture(self, path: Path, clip: tuple[float, float, float, float] | None = None) -> None:
        """A PNG of the view, or of (x, y, width, height) of the page."""
        options = {"format": "png"}
        if clip:
            options |= {
                "clip": dict(zip(("x", "y", "width", "height", "scale"), (*clip, 1))),
                "captureBeyondViewport": True,
            }
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))

    def call(self, method: str, **parameters):
        """A command of the DevTools protocol to the page."""
        return self._call(method, self._session, **parameters)

    def _call(self, method: str, session: str | None = None, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._hear(answer)

    def _next(self) -> dict:
        end = time.monotonic() + self.timeout
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise RuntimeError("the browser ended")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _hear(self, event: dict) -> None:
        method, content = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(content["exceptionDetails"].get("text", "") + str(content["exceptionDetails"])[:300])
        elif method == "Runtime.consoleAPICalled" and content["type"] in ("error", "assert"):
            self.complaints.append(str(content["args"])[:300])
        elif method == "Log.entryAdded" and content["entry"]["level"] == "error":
            self.complaints.append(content["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = content["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:", "about:", self._server)):
                self.complaints.append(f"asks the network for {url[:200]}")

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for descriptor in (self._read, self._write):
            os.close(descriptor)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
