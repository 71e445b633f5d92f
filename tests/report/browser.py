"""Headless Chromium, driven by its DevTools protocol over a pipe: pages from file:, their messages and requests."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SECONDS = 60


class Page:
    """A page in the browser, with everything that the browser reports about it."""

    def __init__(self, to: int, answers: int) -> None:
        self._to, self._answers = to, answers
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._loaded = False
        self.errors: list[str] = []  # of the console, exceptions, and the browser's log
        self._requests: dict[str, str] = {}

    @property
    def requests(self) -> list[str]:
        """Return the addresses of the requests since the last page was opened, without those that its policy blocks."""
        return list(self._requests.values())

    def attach(self) -> None:
        """Open a tab and have its events reported."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Mapping[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: Mapping[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._answers, 1 << 16)
            assert data, "the browser ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, message: Mapping[str, Any]) -> None:
        event, about = message.get("method"), message.get("params", {})
        self._loaded |= event == "Page.loadEventFired"
        if event == "Network.requestWillBeSent":
            self._requests[about["requestId"]] = about["request"]["url"]
        elif event == "Network.loadingFailed" and about.get("blockedReason") == "csp":
            self._requests.pop(about["requestId"], None)
        elif event == "Runtime.consoleAPICalled":
            self.errors.append(json.dumps(about["args"]))
        elif event == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(about["exceptionDetails"]))
        elif event == "Log.entryAdded":
            self.errors.append(about["entry"]["text"])

    def open(self, file: Path, *, width: int = 1280, dark: bool = False) -> None:
        """Open a file, and wait until its plots are drawn."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self.errors.clear()
        self._requests.clear()
        self.call("Page.navigate", url=file.as_uri())
        while not self._loaded:
            self._note(self._next())
        self.evaluate(
            "new Promise(done => { const look = () => document.documentElement.classList.contains('drawn') "
            "? done(true) : setTimeout(look, 20); look(); })"
        )

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression on the page."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """Write a picture of the whole page."""
        height = self.evaluate("document.documentElement.scrollHeight")
        width = self.evaluate("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Page]:
    """Start the browser with a profile of its own, and yield a page."""
    commands, to = os.pipe()
    answers, replies = os.pipe()

    def connect() -> None:
        os.dup2(commands, 13)
        os.dup2(replies, 14)
        os.dup2(13, 3)
        os.dup2(14, 4)

    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
    command = [program, *options, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
    process = subprocess.Popen(
        command, preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(commands)
    os.close(replies)
    page = Page(to, answers)
    try:
        page.attach()
        yield page
    finally:
        os.close(to)
        process.terminate()
        process.wait(_SECONDS)
        os.close(answers)
