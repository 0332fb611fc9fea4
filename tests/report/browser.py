"""A real browser for tests: headless Chromium, controlled by the DevTools protocol over a pair of pipes.

Messages are JSON, each terminated by a zero byte. The browser reads commands from file descriptor 3 and writes replies
and events to file descriptor 4.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LONGEST_S = 60.0
KEYS = {"Enter": (13, "\r"), " ": (32, " "), "Tab": (9, ""), "ArrowRight": (39, "")}
"""The keys that tests press: their codes and their texts."""


def found() -> str | None:
    """Returns the path of Chromium; None if it is not installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Failed(AssertionError):
    """The browser refused a command, or a script in the page threw."""


class Browser:
    """A context manager with one browser and one page. `events` are the browser's events, in order."""

    def __init__(self, program: str, profile: Path) -> None:
        self._program, self._profile = program, profile
        self._number = 0
        self._unread = b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Browser:
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        # The shell moves both ends to the file descriptors that the browser expects.
        line = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        # The sandbox of Chromium does not work for root or in containers. Only the tests' own pages are opened.
        options = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self._profile}", "--no-first-run",
                   "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars",
                   "--no-sandbox", "about:blank"]
        self._process = subprocess.Popen(["bash", "-c", line, "bash", self._program, *options],
                                         pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        try:
            self._attach()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _attach(self) -> None:
        targets = self.command("Target.getTargets", session=None)["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.command("Target.attachToTarget", session=None, targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")
        self.command("Page.setLifecycleEventsEnabled", enabled=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._commands)  # this ends the browser
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)

    def command(self, method: str, *, session: str | None = "", **parameters: Any) -> dict[str, Any]:
        """Sends a command, to the page unless `session` is None, and returns its result. Raises Failed."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + LONGEST_S
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            read = os.read(self._answers, 1 << 20) if ready else b""
            if not read:
                raise Failed("the browser ended" if ready else f"no answer in {LONGEST_S:g} s")
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, url: str, until: str = "load") -> None:
        """Opens a URL and waits for the event `load` or `networkIdle`. Clears earlier events."""
        self.events.clear()
        loader = self.command("Page.navigate", url=url)["loaderId"]
        while (loader, until) not in [(each["loaderId"], each["name"]) for each in self.named("Page.lifecycleEvent")]:
            self.events.append(self._next())

    def evaluate(self, script: str) -> Any:
        """Evaluates an expression in the page, and awaits its value. Raises Failed if it throws."""
        answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Failed(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Presses a key at the focus."""
        code, text = KEYS[key]
        facts = {"key": key, "windowsVirtualKeyCode": code}
        self.command("Input.dispatchKeyEvent", type="keyDown", text=text, **facts)
        self.command("Input.dispatchKeyEvent", type="keyUp", **facts)

    def write(self, text: str) -> None:
        """Types text at the focus."""
        self.command("Input.insertText", text=text)

    def resize(self, width: int, height: int, *, mobile: bool = False) -> None:
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                     mobile=mobile)

    def prefer(self, scheme: str) -> None:
        """Sets the preferred colour scheme, `light` or `dark`, and waits for the next frame, when scripts see it."""
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def scripts(self, *, allowed: bool) -> None:
        """Sets whether the next page may run scripts."""
        self.command("Emulation.setScriptExecutionDisabled", value=not allowed)

    def screenshot(self, *, whole: bool = False) -> bytes:
        """Returns a PNG of the viewport, or of the whole page."""
        return base64.b64decode(self.command("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def named(self, method: str) -> list[dict[str, Any]]:
        """Returns the parameters of all events with this name."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def complaints(self) -> list[str]:
        """Returns exceptions, and the errors and warnings of the console."""
        thrown = [str(each["exceptionDetails"]) for each in self.named("Runtime.exceptionThrown")]
        logged = [each["entry"]["text"] for each in self.named("Log.entryAdded")
                  if each["entry"]["level"] in ("error", "warning")]
        printed = [str(each["args"]) for each in self.named("Runtime.consoleAPICalled")
                   if each["type"] in ("error", "warning", "assert")]
        return thrown + logged + printed

    def requests(self) -> list[str]:
        """Returns the requested URLs, including the page itself, without `data:` URLs."""
        asked = [each["request"]["url"] for each in self.named("Network.requestWillBeSent")]
        return [url for url in asked if not url.startswith("data:")]
