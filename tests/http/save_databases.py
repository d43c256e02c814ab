#!/usr/bin/env python3
"""Saves databases as the server of the present schema version leaves them, for test_years.py: run it before a change of the
schema.

usage: save_databases.py PERSEUS [FOLDER]    FOLDER: tests/fixtures/databases by default
Writes sqlite_N.sql, and postgres_N.sql where PostgreSQL is installed; N is the schema version.
"""

import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import postgres
import served
from served import Server, until
from test_years import SAVED

PROFILE = served.ROOT / "tests/server/scenario/small.csv"
SHAPE = {"schedule": "1f1b", "microbatches": 3, "blocking_power_w": 80}
# Of every session; their names differ from version to version of pg_dump.
SKIPPED = ("--", "\\restrict", "\\unrestrict", "SET transaction_timeout")


def fill(server):
    """Two jobs: one with a plan, a straggler and reported iterations, one that has ended; and a site with a reading.
    check_saved_jobs() of test_years.py expects them."""
    def ask(method, path, body=None):
        status, answer = server.ask(method, path, body)
        assert status == 200, (method, path, answer)
        return answer

    ask("PUT", "/v1/profiles/small", {"profile_csv": PROFILE.read_text(), "pipeline": SHAPE})
    job = ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 2, "tp": 1}, "name": "saved", "profile": "small"})["job"]
    until(lambda: ask("GET", f"/v1/jobs/{job}")["state"] == "deployed")
    for rank in range(2):
        ask("POST", f"/v1/jobs/{job}/ranks", {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0, "host": "node",
                                              "clocks_mhz": [1410, 1200, 1005], "accelerator": f"GPU-{rank}"})
    for rank in range(2):
        ask("POST", f"/v1/jobs/{job}/iterations", {"rank": rank, "last_iteration": 2, "plan_version": 1,
                                                   "iteration_time_s": [1.4, 1.4, 1.4], "iteration_energy_j": [300, 301, 302]})
    ask("POST", f"/v1/jobs/{job}/stragglers", {"pipeline": 0, "degree": 1.2})
    until(lambda: ask("GET", f"/v1/jobs/{job}")["plan"]["version"] == 2)
    ended = ask("POST", "/v1/jobs", {"degrees": {"dp": 1, "pp": 2, "tp": 1}, "name": "saved"})["job"]
    ask("POST", f"/v1/jobs/{ended}/finish")
    ask("PUT", "/v1/site", {"domains": [{"name": "hall", "limits": [{"limit_w": 1e6}]}]})
    until(lambda: ask("GET", "/v1/site/proof")["entries"])


def save_sqlite(folder, into):
    data = f"{folder}/sqlite"
    server = Server(data, "--plan-deadlines", "6")
    fill(server)
    token = server.ask("POST", "/v1/tokens", {"role": "infrastructure", "name": "saved"}, server.first_secret())[1]["token"]
    assert server.stop() == 0
    with sqlite3.connect(f"{data}/perseus.db") as database:
        version, = database.execute("PRAGMA user_version").fetchone()
        application, = database.execute("PRAGMA application_id").fetchone()
        lines = [f"-- A database of schema version {version}, as the server of that version left it. Its token: {token}",
                 *database.iterdump(), f"PRAGMA application_id = {application};", f"PRAGMA user_version = {version};"]
    (into / f"sqlite_{version}.sql").write_text("\n".join(lines) + "\n")


def save_postgres(into):
    database = postgres.Postgres()
    try:
        server = Server(database.url, "--plan-deadlines", "6")
        fill(server)
        assert server.stop() == 0
        run = {"check": True, "capture_output": True, "text": True, "cwd": "/", **database.user}
        place = ["-h", database.folder, "-U", "perseus", "test"]
        dump = subprocess.run([postgres.programs() / "pg_dump", "-n", "perseus", "--inserts", "--no-owner", *place], **run).stdout
        version = subprocess.run([postgres.programs() / "psql", "-At", "-c", "SELECT version FROM perseus.schema_version", *place],
                                 **run).stdout.strip()
    finally:
        database.close()
    lines = [line for line in dump.splitlines() if line and not line.startswith(SKIPPED)]
    head = f"-- A database of schema version {version}, as pg_dump -n perseus of that server's has it."
    (into / f"postgres_{version}.sql").write_text("\n".join([head, *lines]) + "\n")


def main():
    served.PROGRAM = sys.argv[1]
    into = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else SAVED
    with tempfile.TemporaryDirectory() as folder:
        save_sqlite(folder, into)
    if postgres.programs():
        save_postgres(into)


if __name__ == "__main__":
    main()
