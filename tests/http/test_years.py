#!/usr/bin/env python3
"""Databases of earlier years: from every released version, damaged in one place, dumped and restored."""

import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import postgres
import served
from served import Server

SAVED = pathlib.Path(__file__).resolve().parent.parent / "fixtures/databases"
VERSIONS = sorted(int(path.stem.split("_")[1]) for path in SAVED.glob("sqlite_*.sql"))  # save_databases.py makes them


def token_of(version):
    first = (SAVED / f"sqlite_{version}.sql").read_text().splitlines()[0]
    return re.search(r"perseus_[0-9a-f]+", first).group()


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.data = self.folder.name

    def server(self, data=None):
        server = Server(data or self.data)
        self.addCleanup(lambda: server.process.poll() is None and server.stop())
        return server

    def database(self):
        return sqlite3.connect(pathlib.Path(self.data) / "perseus.db")

    def ask(self, server, method, path, body=None, token=None, expect=200):
        status, answer = server.ask(method, path, body, token)
        self.assertEqual(status, expect, (method, path, answer))
        return answer

    def check_saved_jobs(self, server, token=None, version=1):
        """The state that the servers acknowledged before they left the saved databases."""
        jobs = self.ask(server, "GET", "/v1/jobs", token=token)["jobs"]
        states = {job["state"]: job["id"] for job in jobs}
        self.assertEqual(sorted(states), ["deployed", "finished"])
        view = self.ask(server, "GET", f"/v1/jobs/{states['deployed']}", token=token)
        self.assertEqual((view["name"], view["ranks"]["registered"], view["plan"]["version"]), ("saved", 2, 2))
        self.assertEqual([s["degree"] for s in view["stragglers"]], [1.2])
        self.assertEqual(self.ask(server, "GET", "/v1/profiles", token=token)["profiles"], ["small"])
        plan = self.ask(server, "GET", f"/v1/jobs/{states['deployed']}/ranks/1/plan", token=token)
        self.assertEqual((plan["kind"], plan["version"]), ("plan", 2))
        if version >= 5:
            self.check_saved_history(server, states["deployed"], token)
        if version >= 6:
            self.check_saved_proof(server, states["deployed"], token)
        self.ask(server, "POST", f"/v1/jobs/{states['deployed']}/finish", token=token)
        new = self.ask(server, "POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 2, "tp": 1}, "profile": "small"}, token)
        self.assertEqual(new["state"], "characterizing")
        self.ask(server, "POST", f"/v1/jobs/{new['job']}/finish", token=token)
        self.ask(server, "DELETE", f"/v1/jobs/{states['finished']}", token=token)
        return states["deployed"]


    def check_saved_history(self, server, job, token):
        created_s = self.ask(server, "GET", f"/v1/jobs/{job}", token=token)["created_at_s"]
        history = self.ask(server, "GET", f"/v1/jobs/{job}/history?step=day&from={created_s - 172800:.0f}", token=token)
        [bucket] = history["buckets"]
        self.assertEqual((bucket["iterations"], bucket["energy_iterations"]), (3, 3))
        self.assertAlmostEqual(bucket["iteration_time_s"], 1.4)
        self.assertAlmostEqual(bucket["iteration_energy_j"], 602)

    def check_saved_proof(self, server, job, token):
        created_s = self.ask(server, "GET", f"/v1/jobs/{job}", token=token)["created_at_s"]
        path = f"/v1/site/proof?step=day&from={created_s - 172800:.0f}&until={created_s + 172800:.0f}"
        first = self.ask(server, "GET", path, token=token)["entries"][0]
        self.assertEqual((first["domain"], first["limit_w"]), ("hall", 1e6))
        self.assertGreater(first["readings"], 0)


class SavedSqlite(Folder):
    def test_of_every_version_is_brought_up_to_date(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                self.data = str(pathlib.Path(self.folder.name) / str(version))
                pathlib.Path(self.data).mkdir()
                with self.database() as saved:
                    saved.executescript((SAVED / f"sqlite_{version}.sql").read_text())
                saved.close()
                server = self.server()
                job = self.check_saved_jobs(server, token_of(version), version)
                self.assertEqual(server.stop(), 0)
                server = self.server()
                view = self.ask(server, "GET", f"/v1/jobs/{job}", token=token_of(version))
                self.assertEqual(view["state"], "finished")
                server.stop()
                saved = self.database()
                self.assertEqual(saved.execute("PRAGMA user_version").fetchone(), (max(VERSIONS),),
                                 "there is no saved database of the present version: save_databases.py makes one")
                self.assertEqual(saved.execute("PRAGMA integrity_check").fetchone(), ("ok",))
                held = {key for key, in saved.execute("SELECT key FROM holds")}
                stored = {key for key, in saved.execute("SELECT key FROM blob WHERE key NOT LIKE 'profile/%'")}
                self.assertEqual(held & stored, {key for key in stored if key.split("/")[0] in ("input", "frontier")})
                saved.close()


@unittest.skipUnless(postgres.programs(), "no PostgreSQL")
class SavedPostgres(Folder):
    def setUp(self):
        super().setUp()
        self.cluster = postgres.Postgres()
        self.addCleanup(self.cluster.close)

    def restored(self, name, dump):
        """Returns the URL of a new database with the dump's content."""
        host = self.cluster.folder
        self.cluster.run("createdb", "-h", host, "-U", "perseus", name)
        subprocess.run([postgres.programs() / "psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", host, "-U", "perseus", name],
                       input=dump, text=True, check=True, cwd="/", stdout=subprocess.DEVNULL, **self.cluster.user)
        return f"postgresql://perseus@/{name}?host={host}"

    def test_of_every_version_is_brought_up_to_date(self):
        for version in VERSIONS:
            with self.subTest(version=version):
                url = self.restored(f"saved{version}", (SAVED / f"postgres_{version}.sql").read_text())
                server = self.server(url)
                job = self.check_saved_jobs(server, version=version)
                server.stop()
                server = self.server(url)
                self.assertEqual(self.ask(server, "GET", f"/v1/jobs/{job}")["state"], "finished")
                server.stop()

    def test_is_dumped_while_a_server_runs_and_restored(self):
        server = self.server(self.restored("first", (SAVED / "postgres_3.sql").read_text()))
        jobs = self.ask(server, "GET", "/v1/jobs")["jobs"]
        dump = subprocess.run([postgres.programs() / "pg_dump", "-n", "perseus", "-h", self.cluster.folder, "-U",
                               "perseus", "first"], check=True, capture_output=True, text=True, cwd="/",
                              **self.cluster.user).stdout
        self.ask(server, "POST", f"/v1/jobs/{jobs[0]['id']}/finish")
        again = self.server(self.restored("second", dump))
        self.assertEqual([(job["id"], job["state"]) for job in self.ask(again, "GET", "/v1/jobs")["jobs"]],
                         [(job["id"], job["state"]) for job in jobs])
        self.check_saved_jobs(again)

    def test_servers_of_version_3_that_still_run_touch_nothing(self):
        url = self.restored("rolling", (SAVED / "postgres_3.sql").read_text())
        self.server(url)
        for statement in ("SELECT last_sequence FROM job", "INSERT INTO event VALUES('j', 1, '{}')",
                          "INSERT INTO blob VALUES('k', '')", "SELECT body FROM event", "SELECT hash FROM token"):
            done = subprocess.run([postgres.programs() / "psql", "-h", self.cluster.folder, "-U", "perseus", "rolling", "-c",
                                   "SET search_path = perseus", "-c", statement], capture_output=True, text=True, cwd="/",
                                  **self.cluster.user)
            self.assertIn("does not exist", done.stderr, statement)


class Damaged(Folder):
    def test_a_job_is_named_and_the_others_go_on(self):
        server = self.server()
        jobs = [self.ask(server, "POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 2, "tp": 1}})["job"] for _ in range(3)]
        for job in jobs:
            self.ask(server, "POST", f"/v1/jobs/{job}/ranks", {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0})
        server.stop()
        with self.database() as file:
            file.execute("UPDATE event SET body = replace(body, 'rank', 'rang') WHERE job = ? AND sequence = 2", (jobs[0],))
            file.execute("UPDATE job SET state = 'finished' WHERE job = ?", (jobs[1],))
        file.close()
        server = self.server()
        words = {jobs[0]: "event 2 is not as it was written", jobs[1]: "its row in the index is not as it was written"}
        for job, why in words.items():
            for method, rest in (("GET", ""), ("POST", "/finish"), ("GET", "/ranks/0/plan")):
                answer = self.ask(server, method, f"/v1/jobs/{job}{rest}", expect=500)
                self.assertEqual(answer["error"], {"code": "internal", "message": f"job {job} is damaged: {why}"})
        self.ask(server, "POST", f"/v1/jobs/{jobs[2]}/finish")
        states = {job["id"]: job["state"] for job in self.ask(server, "GET", "/v1/jobs")["jobs"]}
        self.assertEqual(states, {jobs[0]: "damaged", jobs[1]: "damaged", jobs[2]: "finished"})
        for job in words:
            server.cli("job", "delete", job)
        self.assertEqual([job["id"] for job in self.ask(server, "GET", "/v1/jobs")["jobs"]], [jobs[2]])


class Unreadable(unittest.TestCase):
    def test_a_url_is_not_shown(self):
        for url in ("postgresql://u:secret%zz@h/d", "postgresql://u:se@cret@127.0.0.1:1/d", "postgresql://u:secret/x@h/d"):
            done = subprocess.run([served.PROGRAM, "serve", "--listen", "127.0.0.1:0", "--database", url],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertNotIn("cret", done.stderr + done.stdout)


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
