"""A real PostgreSQL server for a test, like tests/support/postgres_server.h: in a folder, on a socket in it."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading

from served import until


def programs():
    """Folder of the newest installed version, or None."""
    found = [path.parent for path in pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda path: int(path.parent.name), default=None)


class Postgres:
    def __init__(self):
        self.scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.folder = self.scratch.name
        os.chmod(self.folder, 0o777)
        # PostgreSQL refuses to run as root.
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}
        self.run("initdb", "-D", self.folder + "/data", "-U", "perseus", "-A", "trust", "-E", "UTF8", "--locale=C",
                 "--no-sync", "--no-instructions")
        self.start()
        self.run("createdb", "-h", self.folder, "-U", "perseus", "test")
        self.url = f"postgresql://perseus@/test?host={self.folder}"

    def run(self, program, *arguments):
        subprocess.run([programs() / program, *arguments], check=True, cwd="/", capture_output=True, **self.user)

    def start(self):
        self.process = subprocess.Popen(
            [programs() / "postgres", "-D", self.folder + "/data", "-k", self.folder, "-c", "listen_addresses=",
             "-c", "fsync=off", "-c", "shared_buffers=16MB"],
            cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.user)
        ready = [programs() / "pg_isready", "-q", "-h", self.folder, "-U", "perseus", "-d", "postgres"]

        def answers():
            assert self.process.poll() is None, "PostgreSQL does not start"
            return subprocess.run(ready, check=False).returncode == 0

        until(answers)

    def stop(self):
        """Stops at once and disconnects the clients."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def close(self):
        self.stop()
        self.scratch.cleanup()


@contextlib.contextmanager
def stopped_backends(database):
    """Stops every process of the database (SIGSTOP), as on a host whose disk hangs."""
    children = pathlib.Path(f"/proc/{database.process.pid}/task/{database.process.pid}/children").read_text().split()
    stopped = [database.process.pid, *map(int, children)]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(stopped):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def locked_tables(database):
    """Another session locks every table, as during maintenance."""
    session = subprocess.Popen([programs() / "psql", "-h", database.folder, "-U", "perseus", "-d", "test", "-q", "-A", "-t",
                                "-v", "ON_ERROR_STOP=1"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", **database.user)
    session.stdin.write("BEGIN; LOCK TABLE perseus.jobs, perseus.events, perseus.blobs, perseus.tokens, perseus.writer; SELECT 'locked';\n")
    session.stdin.flush()
    assert session.stdout.readline() == "locked\n"
    try:
        yield
    finally:
        session.stdin.close()
        session.wait(60)
        session.stdout.close()


@contextlib.contextmanager
def stopped(process):
    """Stops a process (SIGSTOP), as on a host that swaps; the process may have been killed meanwhile."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


class Link:
    """A private network between one server and the database: TCP on loopback, forwarded to the database's socket."""

    def __init__(self, database):
        self.database = database
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://perseus@127.0.0.1:{self.listener.getsockname()[1]}/test"
        self.flows = threading.Event()
        self.flows.set()
        self.lock, self.pairs = threading.Lock(), []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self.flows.wait()
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(f"{self.database.folder}/.s.PGSQL.5432")
            except OSError:
                near.close(), far.close()
                continue
            with self.lock:
                self.pairs.append((near, far))
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self.forward, args=(source, sink), daemon=True).start()

    def forward(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self.flows.wait()
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Closes all connections; data in transit are lost."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def parted(self, lost):
        """Blocks all traffic without an error. Then forwards it again: with the data in transit or, if `lost`,
        without."""
        self.flows.clear()
        try:
            yield
        finally:
            if lost:
                self.cut()
            self.flows.set()

    def close(self):
        self.listener.close()
        self.flows.set()
        self.cut()
