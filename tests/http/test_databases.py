#!/usr/bin/env python3
"""Databases: of a server that is started again, dumped and restored, damaged in one place."""

import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import postgres
import served
from served import Server, until

PROFILE = served.ROOT / "tests/server/scenario/small.csv"
SHAPE = {"schedule": "1f1b", "microbatches": 3, "blocking_power_w": 80}


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.data = self.folder.name

    def server(self, data=None):
        server = Server(data or self.data, "--plan-deadlines", "6")
        self.addCleanup(lambda: server.process.poll() is None and server.stop())
        return server

    def database(self):
        return sqlite3.connect(pathlib.Path(self.data) / "perseus.db")

    def ask(self, server, method, path, body=None, expect=200):
        status, answer = server.ask(method, path, body)
        self.assertEqual(status, expect, (method, path, answer))
        return answer

    def fill(self, server):
        """Two jobs: one with a plan, a straggler and reported iterations, one that has ended; and a site with a reading."""
        def ask(*call):
            return self.ask(server, *call)

        ask("PUT", "/v1/profiles/small", {"profile_csv": PROFILE.read_text(), "pipeline": SHAPE})
        job = ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 2, "tp": 1}, "name": "saved", "profile": "small"})["job"]
        until(lambda: ask("GET", f"/v1/jobs/{job}")["state"] == "deployed")
        for rank in range(2):
            ask("POST", f"/v1/jobs/{job}/ranks", {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0, "host": "node",
                                                  "clocks_mhz": [1410, 1200, 1005], "accelerator": f"GPU-{rank}"})
        for rank in range(2):
            ask("POST", f"/v1/jobs/{job}/iterations", {"rank": rank, "last_iteration": 2, "plan_version": 1,
                                                       "iteration_time_s": [1.4, 1.4, 1.4],
                                                       "iteration_energy_j": [300, 301, 302]})
        ask("POST", f"/v1/jobs/{job}/stragglers", {"pipeline": 0, "degree": 1.2})
        until(lambda: ask("GET", f"/v1/jobs/{job}")["plan"]["version"] == 2)
        ended = ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 2, "tp": 1}, "name": "saved"})["job"]
        ask("POST", f"/v1/jobs/{ended}/finish")
        ask("PUT", "/v1/site", {"domains": [{"name": "hall", "limits": [{"limit_w": 1e6}]}]})
        until(lambda: ask("GET", "/v1/site/proof")["entries"])

    def check(self, server):
        """What fill() was told is there, and the server goes on with it."""
        jobs = self.ask(server, "GET", "/v1/jobs")["jobs"]
        states = {job["state"]: job["id"] for job in jobs}
        self.assertEqual(sorted(states), ["deployed", "finished"])
        job = states["deployed"]
        view = self.ask(server, "GET", f"/v1/jobs/{job}")
        self.assertEqual((view["name"], view["ranks"]["registered"], view["plan"]["version"]), ("saved", 2, 2))
        self.assertEqual([s["degree"] for s in view["stragglers"]], [1.2])
        self.assertEqual(self.ask(server, "GET", "/v1/profiles")["profiles"], ["small"])
        plan = self.ask(server, "GET", f"/v1/jobs/{job}/ranks/1/plan")
        self.assertEqual((plan["kind"], plan["version"]), ("plan", 2))
        created_s = view["created_at_s"]
        [day] = self.ask(server, "GET", f"/v1/jobs/{job}/history?step=day&from={created_s - 172800:.0f}")["buckets"]
        self.assertEqual((day["iterations"], day["energy_iterations"]), (3, 3))
        self.assertAlmostEqual(day["iteration_time_s"], 1.4)
        self.assertAlmostEqual(day["iteration_energy_j"], 602)
        path = f"/v1/site/proof?step=day&from={created_s - 172800:.0f}&until={created_s + 172800:.0f}"
        first = self.ask(server, "GET", path)["entries"][0]
        self.assertEqual((first["domain"], first["limit_w"]), ("hall", 1e6))
        self.assertGreater(first["readings"], 0)
        self.ask(server, "POST", f"/v1/jobs/{job}/finish")
        new = self.ask(server, "POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 2, "tp": 1}, "profile": "small"})
        self.assertEqual(new["state"], "characterizing")
        self.ask(server, "POST", f"/v1/jobs/{new['job']}/finish")
        self.ask(server, "DELETE", f"/v1/jobs/{states['finished']}")
        return job

    def check_a_second_start(self, data=None):
        server = self.server(data)
        self.fill(server)
        self.assertEqual(server.stop(), 0)
        server = self.server(data)
        job = self.check(server)
        self.assertEqual(server.stop(), 0)
        server = self.server(data)
        self.assertEqual(self.ask(server, "GET", f"/v1/jobs/{job}")["state"], "finished")
        server.stop()


class Restarted(Folder):
    def test_on_sqlite_with_all_that_it_acknowledged(self):
        self.check_a_second_start()
        saved = self.database()
        self.assertEqual(saved.execute("PRAGMA user_version").fetchone(), (1,))
        self.assertEqual(saved.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        held = {key for key, in saved.execute("SELECT key FROM holds")}
        stored = {key for key, in saved.execute("SELECT key FROM blobs WHERE key NOT LIKE 'profile/%'")}
        self.assertEqual(held & stored, {key for key in stored if key.split("/")[0] in ("input", "frontier")})
        saved.close()


@unittest.skipUnless(postgres.programs(), "no PostgreSQL")
class RestartedOrDumped(Folder):
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

    def test_on_postgresql_with_all_that_it_acknowledged(self):
        self.check_a_second_start(self.cluster.url)

    def test_while_a_server_runs_and_restored(self):
        server = self.server(self.cluster.url)
        self.fill(server)
        server.stop()  # writes its history
        server = self.server(self.cluster.url)
        jobs = self.ask(server, "GET", "/v1/jobs")["jobs"]
        dump = subprocess.run([postgres.programs() / "pg_dump", "-n", "perseus", "-h", self.cluster.folder, "-U",
                               "perseus", "test"], check=True, capture_output=True, text=True, cwd="/",
                              **self.cluster.user).stdout
        self.ask(server, "POST", f"/v1/jobs/{jobs[0]['id']}/finish")
        again = self.server(self.restored("second", dump))
        self.assertEqual([(job["id"], job["state"]) for job in self.ask(again, "GET", "/v1/jobs")["jobs"]],
                         [(job["id"], job["state"]) for job in jobs])
        self.check(again)


class Damaged(Folder):
    def test_a_job_is_named_and_the_others_go_on(self):
        server = self.server()
        jobs = [self.ask(server, "POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 2, "tp": 1}})["job"] for _ in range(3)]
        for job in jobs:
            self.ask(server, "POST", f"/v1/jobs/{job}/ranks", {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0})
        server.stop()
        with self.database() as file:
            file.execute("UPDATE events SET body = replace(body, 'rank', 'rang') WHERE job = ? AND sequence = 2", (jobs[0],))
            file.execute("UPDATE jobs SET state = 'finished' WHERE job = ?", (jobs[1],))
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
