"""Runs a real `perseus serve` for a test, and sends it requests."""

import http.client
import json
import pathlib
import signal
import subprocess
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROFILE = ROOT / "data/sample_profile.csv"
PROGRAM = ""  # path of perseus; tests set it


class Server:
    """A server for one test, in that folder or on that PostgreSQL database."""

    def __init__(self, data: str, *arguments: str, listen: str = "127.0.0.1:0", prefix=()):
        if "--plan-deadlines" not in arguments:
            arguments += ("--plan-deadlines", "40")  # enough for the tests
        store = "--database" if data.startswith("postgresql:") else "--data"
        self.process = subprocess.Popen(
            [*prefix, PROGRAM, "serve", "--listen", listen, store, data, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        if not line.startswith("perseus: serving on "):
            raise RuntimeError(line + self.process.stderr.read())
        self.url = line.split()[-1]
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
        while True:
            log = lines() if lines else list(self.log)
            found = [word for line in log for word in line.split() if word.startswith("perseus_first_")]
            if found:
                return found[0].rstrip('"}')
            time.sleep(0.01)

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

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(30)
        self.reader.join(10)
        self.process.stdout.close()
        self.process.stderr.close()
        return code
