"""Runs a real `perseus serve` for a test, and sends it requests."""

import atexit
import fcntl
import http.client
import inspect
import json
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROFILE = ROOT / "data/sample_profile.csv"
PROGRAM = ""  # path of perseus; tests set it
STOP_S = 120  # for the end of a process: more than --grace-s, 10 s, on a machine that stands still for seconds


def until(condition, limit_s=240):
    """Waits until condition() is true and returns its value; fails after limit_s, so that no fault hangs a test."""
    end = time.monotonic() + limit_s
    while not (value := condition()):
        assert time.monotonic() < end, f"not true after {limit_s} s: {inspect.getsource(condition).strip()}"
        time.sleep(0.005)
    return value


class Server:
    """A server for one test, in that folder or on that PostgreSQL database."""

    def __init__(self, data: str, *arguments: str, listen: str = "127.0.0.1:0", prefix=(), stands_by=False):
        if "--plan-deadlines" not in arguments:
            arguments += ("--plan-deadlines", "40")  # enough for the tests
        store = "--database" if data.startswith("postgresql:") else "--data"
        self.process = subprocess.Popen(
            [*prefix, PROGRAM, "serve", "--listen", listen, store, data, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.process.kill)  # one that its test has not stopped
        line = self.process.stdout.readline()
        if line.startswith("perseus: standing by on ") and not stands_by:
            line = self.process.stdout.readline()  # it takes over from a server that was killed
        if not line.startswith("perseus: standing by on " if stands_by else "perseus: serving on "):
            raise RuntimeError(line + self.process.stderr.read())
        self.url = line.split()[4].rstrip(":") if stands_by else line.split()[-1]
        self.address = self.url.split("//")[1]
        self.log = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def ask(self, method, path, body=None, token=None, raw=False, headers=()):
        connection = http.client.HTTPConnection(self.address, timeout=600)
        headers = {"Content-Type": "application/json", **dict(headers)}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        text = body if isinstance(body, (str, bytes)) else None if body is None else json.dumps(body)
        connection.request(method, path, text, headers)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        return reply.status, content if raw else json.loads(content) if content else None

    def first_secret(self, lines=None):
        """Reads the token from the log of a server that requires no tokens yet; `lines`: the lines, if the log is a
        file."""
        def found():
            log = lines() if lines else list(self.log)
            return [word for line in log for word in line.split() if word.startswith("perseus_first_")]

        return until(found)[0].rstrip('"}')

    def events(self, job, after=0):
        """The job's log, and new events as long as the caller iterates."""
        connection = http.client.HTTPConnection(self.address, timeout=600)
        connection.request("GET", f"/v1/jobs/{urllib.parse.quote(job)}/events?after={after}")
        reply = connection.getresponse()
        try:
            while line := reply.readline().decode():
                if line.startswith("data: "):
                    yield json.loads(line[6:])
        finally:
            connection.close()

    def cli(self, *arguments, ok=True):
        done = subprocess.run([PROGRAM, *arguments, "--server", self.url], capture_output=True, text=True)
        assert (done.returncode == 0) == ok, done.stderr + done.stdout
        return done

    def shown_on(self, columns, *arguments):
        """Lines of a list on a terminal of that many columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        program = subprocess.Popen([PROGRAM, *arguments, "--server", self.url], stdout=theirs)
        os.close(theirs)
        seen = shown_by(ours)
        assert program.wait() == 0, seen
        return seen.decode().splitlines()

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(STOP_S)
        self.reader.join(STOP_S)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def shown_by(terminal, limit_s=None, until=None):
    """What a program writes to the terminal until its end, until it writes `until` or nothing for so long."""
    seen = b""
    while (until is None or until not in seen) and select.select([terminal], [], [], limit_s)[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the program has ended
            break
        seen += piece
        if not piece:
            break
    os.close(terminal)
    return seen


class ServedCase(unittest.TestCase):
    """A test with a server of its own, in a folder of its own."""

    arguments = ()
    listen = "127.0.0.1:0"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.data = self.folder.name + "/data"
        self.server = Server(self.data, *self.arguments, listen=self.listen)

    def tearDown(self):
        if self.server.process.poll() is None:
            self.server.stop(signal.SIGKILL)
        self.folder.cleanup()
