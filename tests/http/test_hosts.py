#!/usr/bin/env python3
"""Hosts and ranks of a real `perseus serve`: clocks as ranks report them, pages, filters, and who may read what.

usage: test_hosts.py PERSEUS [unittest's arguments]
"""

import sys
import unittest
import urllib.parse

import served
import test_lists


class Hosts(test_lists.ListCase):
    def register(self, job, rank, host, **more):
        body = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0, "host": host, "epoch": 5, "clocks_mhz": [1410, 1200], **more}
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{job}/ranks", body)[0], 200)

    def report(self, job, rank, last, **clocks):
        body = {"rank": rank, "epoch": 5, "plan_version": 0, "last_iteration": last, "iteration_time_s": [0.5], "clocks": clocks}
        return self.server.ask("POST", f"/v1/jobs/{job}/iterations", body)

    def hosts(self, query=""):
        """All pages; rows without the times of calls."""
        rows, after, pages = [], "", 0
        while after is not None:
            status, page = self.server.ask("GET", f"/v1/hosts?{query}{after}")
            self.assertEqual(status, 200, page)
            rows += page["hosts"]
            pages += 1
            after = "&after=" + urllib.parse.quote(page["next"]) if "next" in page else None
        return [{name: value for name, value in row.items() if not name.endswith("heard_s")} for row in rows], pages

    def test_hosts_of_all_live_jobs_with_what_their_ranks_report(self):
        old, new, over = (self.job(name) for name in ("old", "new", "over"))
        for rank in range(4):
            self.register(old, rank, f"node-{rank // 2}")
            self.register(new, rank, "other/host ü")
            self.register(over, rank, "node-9")
        self.register(old, 3, "node-1", control="none", control_reason="no permission", epoch=6)
        self.assertEqual(self.server.ask("POST", f"/v1/jobs/{over}/finish", {})[0], 200)
        self.assertEqual(self.report(old, 0, 3, set_mhz=1200, failed=2, late=1, throttled_iterations=4), (200, {"rejected": []}))
        self.assertEqual(self.report(old, 1, 3, set_mhz=1410, failed=1)[0], 200)
        self.assertEqual(self.report(old, 0, 4, set_mhz=-5)[0], 400)
        rows, pages = self.hosts()
        self.assertEqual(pages, 1)
        self.assertEqual(rows, [
            {"host": "other/host ü", "job": new, "job_name": "new", "ranks": 4},
            {"host": "node-0", "job": old, "job_name": "old", "ranks": 2, "set_least_mhz": 1200, "set_most_mhz": 1410,
             "clocks_failed": 3, "clocks_late": 1, "throttled_iterations": 4, "reporting": 2},
            {"host": "node-1", "job": old, "job_name": "old", "ranks": 2, "without_control": 1, "control_reason": "no permission"}])
        self.assertEqual(self.hosts("limit=1"), (rows, 3))
        self.assertEqual(self.hosts("host=node-")[0], rows[1:])
        self.assertEqual(self.hosts(f"job={new}")[0], rows[:1])
        for wrong in ("limit=0", "limit=5001", "after=x", "after=1%2Cj%2F%2F", "hosts=x"):
            self.assertEqual(self.server.ask("GET", f"/v1/hosts?{wrong}")[0], 400, wrong)
        [rank] = self.server.ask("GET", f"/v1/jobs/{old}/ranks?host=node-0&limit=1")[1]["ranks"]
        self.assertEqual([rank[name] for name in ("rank", "host", "set_mhz", "clocks_failed")], [0, "node-0", 1200, 2])
        table = self.server.cli("host", "list", "--host", "node-", "--sort", "failed", "--reverse").stdout.splitlines()
        self.assertRegex(table[1], r"^node-0 +\S+ +old +2 +- +- +1200-1410 MHz +3 +1 +4 ")
        self.assertEqual(len(table), 3)
        self.assertLessEqual(max(map(len, self.server.shown_on(80, "host", "list"))), 80)
        for words in (("host", "list", "--job", "nope"), ("job", "show", "nope")):
            done = self.server.cli(*words, ok=False)
            self.assertEqual((done.returncode, done.stdout), (66, ""), done.stderr)
            self.assertIn("nope", done.stderr)
        self.assertEqual(self.report(old, 1, 4, set_mhz=0)[0], 200)
        header, *rows = self.server.cli("job", "ranks", "old", "--host", "node-0").stdout.splitlines()
        self.assertEqual([row[:header.index("SET") + 3].split()[-1] for row in rows], ["MHz", "-"], "0: the client set no clock")
        ranks = self.server.cli("job", "ranks", "old", "--host", "node-1", "-o", "csv").stdout.splitlines()
        self.assertEqual([line.split(",")[:4] for line in ranks], [["rank", "host", "accelerator", "control"], ["2", "node-1", "", ""],
                                                                   ["3", "node-1", "", "none"]])

    def test_a_token_of_a_job_sees_its_own(self):
        boss, one, other = self.tokens()
        for token in (one, other):
            self.rank(self.job("mine", token), token)
        self.assertEqual([len(self.server.ask("GET", "/v1/hosts", token=token)[1]["hosts"]) for token in (boss, one)], [2, 1])
        self.assertEqual(self.server.ask("GET", "/v1/hosts")[0], 401)


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    unittest.main()
