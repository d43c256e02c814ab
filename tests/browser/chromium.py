"""A headless Chromium driven over a pipe (Chrome DevTools protocol), with the standard library only.

The browser can reach only files and this machine; this module records every request it makes, and every error of
the page.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe",
    # Every navigation would start a spare process for the next one and keep the last page's; one process draws, at full priority.
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache", "--no-zygote", "--disable-renderer-backgrounding",
]
PATIENCE_S = 120  # for one answer of the browser; only a broken browser takes that long


def find_chromium():
    return os.environ.get("PERSEUS_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def run_tests(case, *names):
    """The tests of a class that finds the program's arguments, files all, in its members of these names."""
    if len(sys.argv) <= len(names):
        sys.exit(sys.modules["__main__"].__doc__)
    if not find_chromium():
        print("skipped: no Chromium (package chromium, or PERSEUS_CHROMIUM=PATH)")
        sys.exit(77)
    for name in names:
        setattr(case, name, os.path.abspath(sys.argv.pop(1)))
    unittest.main(verbosity=2)


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="perseus-chromium-")
        commands_out, self.commands = os.pipe()
        self.answers, answers_in = os.pipe()
        for fd in (commands_out, answers_in):
            os.set_inheritable(fd, True)

        def at_3_and_4():  # where --remote-debugging-pipe expects them; through high numbers, since they may overlap
            os.dup2(commands_out, 103), os.dup2(answers_in, 104)
            os.dup2(103, 3), os.dup2(104, 4)

        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [find_chromium(), *FLAGS, f"--user-data-dir={self.profile}", "about:blank"],
            stdout=self.log, stderr=self.log, close_fds=False, preexec_fn=at_3_and_4)
        os.close(commands_out), os.close(answers_in)
        self.buffer = b""
        self.next_id = 0
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        os.close(self.commands)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.answers)
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _read(self):
        end = time.monotonic() + PATIENCE_S
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                self.log.seek(0)
                raise ConnectionError("Chromium ended: " + self.log.read().decode(errors="replace")[-2000:])
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        while True:
            answer = self._read()
            if answer.get("id") == self.next_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event):
        for seen in self.events:
            if seen.get("method") == event:
                return seen
        while True:
            answer = self._read()
            self.events.append(answer)
            if answer.get("method") == event:
                return answer

    def look(self, width=1280, height=900, dark=False, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1,
                  mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path):
        """Opens a file and waits until it is loaded and drawn."""
        self.open_url("file://" + os.path.abspath(path))

    def open_url(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")
        self.settle()

    def reload(self):
        self.events.clear()
        self.call("Page.reload")
        self.wait_for("Page.loadEventFired")
        self.settle()

    def wait_until(self, script):
        """Waits until the script's value is true; evaluates it after every frame."""
        end = time.monotonic() + PATIENCE_S
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {script}")
            self.settle()

    def settle(self):
        """Until two frames have been drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def key(self, key, modifiers=0):
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Home": 36, "End": 35,
                 "Escape": 27, "Enter": 13}
        code = codes.get(key, ord(key) if len(key) == 1 else 0)
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, modifiers=modifiers,
                      **(text if kind == "keyDown" else {}))
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def screenshot(self, path, whole_page=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole_page)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def errors(self):
        """Errors of the page since it was opened."""
        texts = []
        for event in self.events:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                texts.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                texts.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                texts.append(params["entry"]["text"])
        return texts

    def requests(self):
        """Every address that the page requested since it was opened."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
