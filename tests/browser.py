"""Headless Chromium, controlled over its DevTools protocol through two pipes; messages end with a zero byte."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WITHOUT = "no Chromium on this machine: apt-get install chromium"
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-quic", "--disable-dev-shm-usage",
    "--no-default-browser-check", "--hide-scrollbars", "--force-device-scale-factor=1",
)  # fmt: skip
PATIENCE = 60.0
"""Timeout for any command, in seconds: machines may be busy."""


class Browser:
    """Page of a running Chromium."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process, self._to, self._back = process, to, back
        self._left = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        """URLs requested since the last `go`."""
        self.said: list[str] = []
        """Errors of scripts and of the console since the last `go`."""

    def start(self) -> None:
        """Open an empty page."""
        made = self.do("Target.createTarget", url="about:blank")
        self._session = self.do("Target.attachToTarget", targetId=made["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        said: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            said["sessionId"] = self._session
        os.write(self._to, json.dumps(said).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            heard = self._hear(until)
            if heard.get("id") == self._number:
                assert "error" not in heard, f"{method}: {heard['error']}"
                return dict(heard["result"])

    def _hear(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._back], [], [], max(0.0, until - time.monotonic()))
            assert ready, "Chromium does not answer"
            more = os.read(self._back, 1 << 20)
            assert more, "Chromium has ended"
            self._left += more
        one, self._left = self._left.split(b"\0", 1)
        heard: dict[str, Any] = json.loads(one)
        given = heard.get("params", {})
        if heard.get("method") == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif heard.get("method") == "Runtime.exceptionThrown":
            self.said.append(str(given["exceptionDetails"].get("exception", {}).get("description")))
        elif heard.get("method") == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.said.append(given["entry"]["text"])
        return heard

    def go(self, page: Path, place: str = "") -> None:
        """Open a file, and wait until it is loaded."""
        self.do("Page.navigate", url="about:blank")
        self.do("Emulation.setFocusEmulationEnabled", enabled=True)  # focus events without a window in front
        self.requests.clear()
        self.said.clear()
        url = page.as_uri() + (f"#{place}" if place else "")
        self.do("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """Return the value of an expression; await promises."""
        found = self.do("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + PATIENCE
        while not self._holds(condition):
            assert time.monotonic() < until, f"never: {condition}"
            time.sleep(0.02)

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.run(condition))
        except AssertionError as error:  # a page during navigation has no answer
            if "navigated" in str(error) or "context" in str(error):
                return False
            raise

    def size(self, width: int, height: int) -> None:
        """Set the size of the window; below 500 pixels, emulate a phone."""
        self.do(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def colors(self, scheme: str) -> None:
        """Set the color scheme: `dark` or `light`."""
        self.do("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def type(self, text: str) -> None:
        """Press the keys of a text, one after the other."""
        for sign in text:
            self.do("Input.dispatchKeyEvent", type="keyDown", text=sign, key=sign)
            self.do("Input.dispatchKeyEvent", type="keyUp", key=sign)

    def press(self, key: str) -> None:
        """Press a key without text: `Enter`, `ArrowDown`."""
        codes = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "Tab": 9}
        text = {"text": "\r"} if key == "Enter" else {}
        self.do("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=codes[key], **text)
        self.do("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=codes[key])

    def picture(self, path: Path, height: int | None = None, top: str | None = None) -> None:
        """Save the visible page as PNG; with a height, that much of the page from the element `top` on."""
        more: dict[str, Any] = {}
        if height:
            start = f"document.querySelector({json.dumps(top)}).getBoundingClientRect().top + scrollY" if top else "0"
            clip = {"x": 0, "y": self.run(start), "width": self.run("innerWidth"), "height": height, "scale": 1}
            more = {"clip": clip, "captureBeyondViewport": True}
        path.write_bytes(base64.b64decode(self.do("Page.captureScreenshot", format="png", **more)["data"]))

    def print(self, path: Path) -> None:
        """Save the page on A4, as PDF."""
        made = self.do("Page.printToPDF", preferCSSPageSize=True, paperWidth=8.27, paperHeight=11.69)
        path.write_bytes(base64.b64decode(made["data"]))


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Start Chromium without a network and stop it afterwards."""
    assert CHROMIUM is not None
    profile.mkdir(parents=True, exist_ok=True)
    theirs_in, to = os.pipe()
    back, theirs_out = os.pipe()
    # Chromium reads commands at descriptor 3 and answers at 4
    script = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
    flags = (*FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}", "--proxy-server=127.0.0.1:9")
    process = subprocess.Popen(
        ["bash", "-c", script, CHROMIUM, *flags],
        pass_fds=(theirs_in, theirs_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"TMPDIR": str(profile)},
    )
    os.close(theirs_in)
    os.close(theirs_out)
    browser = Browser(process, to, back)
    try:
        browser.start()
        yield browser
    finally:
        process.kill()  # its profile is not needed
        process.wait()
        os.close(to)
        os.close(back)
