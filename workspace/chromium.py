"""A headless browser that tests and benchmarks of pages drive over its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PATH = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Chromium:
    """A browser with one page; console errors and exceptions are collected in `problems`."""

    def __init__(self) -> None:
        assert PATH is not None
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        reads, self._out = os.pipe()
        self._in, writes = os.pipe()
        flags = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
                 f"--user-data-dir={self._profile.name}", "--hide-scrollbars")  # fmt: skip
        script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@" 3<&3 4>&4'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", str(reads), str(writes), PATH, *flags],
            pass_fds=[reads, writes], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        os.close(reads)
        os.close(writes)
        self._count, self._buffer, self._session = 0, b"", ""
        self.problems: list[str] = []
        target = self._send("Target.createTarget", url="about:blank")["targetId"]
        attached = self._send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._send(f"{domain}.enable")

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def open(self, file: Path, width: int = 1280, height: int = 800, dark: bool = False) -> float:
        """Show a page; seconds until it is built."""
        self._send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                   deviceScaleFactor=1, mobile=False)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", features=[scheme])
        self.problems.clear()
        start = time.perf_counter()
        self._send("Page.navigate", url=file.resolve().as_uri())
        while not self.run("document.documentElement?.dataset.ready === 'true'"):
            assert time.perf_counter() - start < 60, "the page was not built in a minute"
            time.sleep(0.01)
        return time.perf_counter() - start

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited."""
        done = self._send("Runtime.evaluate", expression=expression, returnByValue=True,
                          awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def screenshot(self, file: Path) -> None:
        size = self._send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        done = self._send("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(done["data"]))

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            read = os.read(self._in, 1 << 20)
            assert read, "the browser has ended"
            self._buffer += read
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            self.problems.append(str(parameters["exceptionDetails"]))
        elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(parameters["entry"]["text"])
        elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.problems.append(str(parameters["args"]))
