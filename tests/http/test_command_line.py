#!/usr/bin/env python3
"""The client commands of `perseus` with a real `perseus serve`: lists in each form, jobs by their names.

usage: test_command_line.py PERSEUS [unittest's arguments]
"""

import csv
import fcntl
import io
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import unittest
import urllib.parse

import served
from served import PROFILE, ServedCase, until

DEGREES = {"dp": 1, "pp": 4, "tp": 1}


class CommandLine(ServedCase):
    def job(self, name):
        status, answer = self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "name": name})
        self.assertEqual(status, 200, answer)
        return answer["job"]

    def out(self, *arguments):
        return self.server.cli(*arguments).stdout

    def table(self, *arguments):
        """The cells of a table whose cells have no two spaces in a row."""
        return [[cell for cell in line.split("  ") if cell.strip()] for line in self.out(*arguments).splitlines()]

    def refused(self, *arguments):
        done = self.server.cli(*arguments, ok=False)
        self.assertEqual(done.returncode, 64, done.stderr)
        return done.stderr

    def watch(self, until, **streams):
        """`job list --watch`, interrupted once `until` returns."""
        program = subprocess.Popen([served.PROGRAM, "job", "list", "--watch", "--server", self.server.url], **streams)
        until(program)
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=served.STOP_S)
        return program.returncode

    def test_jobs_are_a_row_each(self):
        self.assertEqual(len(self.table("job", "list")), 1, "the header")
        names = ["beta", "alpha", "gamma"]
        ids = {name: self.job(name) for name in names}
        head, *rows = [[cell.strip() for cell in row] for row in self.table("job", "list")]
        self.assertEqual(head, ["ID", "NAME", "STATE", "RANKS", "ITERATION", "POWER", "PLAN SAVES", "SAVED", "STRAGGLERS", "AGE"])
        self.assertEqual([row[1] for row in rows], names[::-1])
        for row in rows:
            self.assertTrue(ids[row[1]].startswith(row[0]) and len(row[0]) == 12, row)
            self.assertEqual(row[2:9], ["registered", "0/4", "-", "-", "-", "-", "-"])
            self.assertRegex(row[9], r"^\d+ s$")
        wide = [line.split() for line in self.out("job", "list", "-o", "wide").splitlines()]
        self.assertEqual([row[0] for row in wide[1:]], [ids[name] for name in names[::-1]])
        self.assertIn("PIPELINES", wide[0])

    def test_lists_are_sorted(self):
        for name in ("beta", "alpha", "gamma"):
            self.job(name)

        def names(*options):
            rows = csv.DictReader(io.StringIO(self.out("job", "list", "-o", "csv", *options)))
            return [row["name"] for row in rows]

        self.assertEqual(names("--sort", "name"), ["alpha", "beta", "gamma"])
        self.assertEqual(names("--sort", "NAME", "--reverse"), ["gamma", "beta", "alpha"])
        self.assertEqual(names("--sort", "age"), ["gamma", "alpha", "beta"], "youngest first")
        self.assertEqual(names("--sort", "created_at_s", "--reverse"), ["beta", "alpha", "gamma"])
        self.assertIn("'size' is not a column; allowed: id, name, ", self.refused("job", "list", "--sort", "size"))
        self.assertEqual(names("--search", "gam"), ["gamma"])

    def test_programs_get_json_and_csv(self):
        job = self.job('quoted "name", here')
        answer = json.loads(self.out("job", "list", "-o", "json"))
        [sent] = self.server.ask("GET", "/v1/jobs")[1]["jobs"]
        self.assertEqual(answer["jobs"][0].keys(), sent.keys())
        for key, value in sent.items():
            if isinstance(value, float):  # Boost.JSON may read a number one bit off
                self.assertAlmostEqual(answer["jobs"][0][key], value, delta=1e-9 * abs(value))
            else:
                self.assertEqual(answer["jobs"][0][key], value)
        self.assertEqual(json.loads(self.out("job", "list", "--json"))["jobs"], answer["jobs"])
        [row] = csv.DictReader(io.StringIO(self.out("job", "list", "-o", "csv")))
        self.assertEqual((row["id"], row["name"], row["ranks"], row["saved_pct"]), (job, 'quoted "name", here', "4", ""))
        self.assertEqual(float(row["created_at_s"]), answer["jobs"][0]["created_at_s"])
        self.assertIn("--json", self.refused("job", "list", "--json", "-o", "csv"))
        wrong = self.server.cli("job", "list", "--state", "bogus", "-o", "json", ok=False)
        self.assertEqual(json.loads(wrong.stdout)["error"]["exit_code"], 64)
        wrong = self.server.cli("job", "list", "--sort", "bogus", "-o", "json", ok=False)
        self.assertEqual(json.loads(wrong.stdout)["error"]["exit_code"], 64)

    def test_csv_has_zeros_and_no_formulas(self):
        names = ["=1+2", "+a", "-a", "@a", "a=b"]
        for name in names:
            self.job(name)
        rows = list(csv.DictReader(io.StringIO(self.out("job", "list", "-o", "csv", "--sort", "age", "--reverse"))))
        self.assertEqual([row["name"] for row in rows], ["'=1+2", "'+a", "'-a", "'@a", "a=b"])
        for row in rows:
            self.assertEqual((row["stragglers"], row["saved_j"], row["saved_pct"]), ("0", "", ""))

    def test_jobs_are_selected_by_labels(self):
        for name, labels in (("one", {"team": "vision", "model": "gpt3"}), ("two", {"team": "speech"})):
            self.assertEqual(self.server.ask("POST", "/v1/jobs", {"degrees": DEGREES, "name": name, "labels": labels})[0], 200)
        self.assertEqual([row[1].strip() for row in self.table("job", "list", "--selector", "team!=vision")[1:]], ["two"])
        head, row = self.table("job", "list", "--selector", "model=gpt3", "-o", "wide")
        column = [cell.strip() for cell in head].index("LABELS")
        self.assertEqual(row[column].strip(), "model=gpt3,team=vision")
        rows = list(csv.DictReader(io.StringIO(self.out("job", "list", "-o", "csv"))))
        self.assertEqual([row["labels"] for row in rows], ["team=speech", "model=gpt3,team=vision"])
        self.assertIn("selector: '=x'", self.refused("job", "list", "--selector", "=x"))

    def test_a_job_has_several_names(self):
        first, second = self.job("vision-large"), self.job("vision-small")
        for name in (first, first[:20], "vision-large", "vision-l"):
            self.assertEqual(json.loads(self.out("job", "show", name, "--json"))["id"], first)
        ambiguous = self.refused("job", "show", "vision")
        self.assertIn("job 'vision' means 2 jobs; allowed: one of ", ambiguous)
        for job, name in ((first, "vision-large"), (second, "vision-small")):
            self.assertIn(f"{job} ({name})", ambiguous)
        self.assertEqual(len(ambiguous.splitlines()), 1)
        exact = self.job("vision")
        self.assertEqual(json.loads(self.out("job", "show", "vision", "--json"))["id"], exact, "the whole name wins")
        self.assertEqual(self.server.cli("job", "show", "speech", ok=False).returncode, 66)
        self.out("job", "finish", "vision-s")
        self.out("job", "delete", "vision-s")
        self.assertEqual(self.server.ask("GET", f"/v1/jobs/{second}")[0], 404)

    def test_a_tier_without_a_value_and_a_policy_of_the_wrong_type_are_refused(self):
        job = self.job("vision")
        done = self.server.cli("job", "set", "vision", ok=False)
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertIn("nothing to set; allowed: --domain, --least-rate, --priority, --reset", done.stderr)
        status, answer = self.server.ask("PUT", f"/v1/jobs/{job}/policies/power_cap", {"average_w": "much"})
        self.assertEqual(status, 422, answer)
        self.assertIn("$.average_w", answer["message"] if "message" in answer else str(answer))

    def test_stragglers_and_policies_are_listed(self):
        job, other = self.job("vision"), self.job("speech")
        self.out("straggler", "set", "--job", "vision", "--pipeline", "0", "--degree", "1.25", "--delay", "600")
        self.out("policy", "max-slowdown", "speech", "--slowdown", "10%")
        [straggler] = json.loads(self.out("straggler", "list", "-o", "json"))["stragglers"]
        self.assertEqual((straggler["job"], straggler["job_name"], straggler["degree"]), (job, "vision", 1.25))
        self.assertEqual(json.loads(self.out("straggler", "list", "speech", "--json"))["stragglers"], [])
        self.assertRegex(self.out("straggler", "list"), rf"\n{job[:12]} +vision .* 1\.25 +in \d+ \w+\n$")
        self.out("straggler", "withdraw", "vision", straggler["id"])
        self.assertEqual(json.loads(self.out("straggler", "list", "-o", "json"))["stragglers"], [])
        self.assertEqual(self.server.cli("straggler", "withdraw", "vision", straggler["id"], ok=False).returncode, 66)
        # By the options of `set`.
        for degree in ("1.25", "1.5"):
            self.out("straggler", "set", "--job", "vision", "--pipeline", "0", "--degree", degree, "--delay", "600")
        self.out("straggler", "set", "--job", "speech", "--pipeline", "0", "--degree", "1.25", "--delay", "600")
        self.out("straggler", "withdraw", "--job", "vision", "--pipeline", "0")
        [left] = json.loads(self.out("straggler", "list", "-o", "json"))["stragglers"]
        self.assertEqual(left["job"], other)
        for wrong in (("--pipeline", "0"), ("--job", "speech"), ("--job", "speech", "--pipeline", "0", "--rank", "1"), ()):
            self.assertIn("allowed: JOB and NOTICE, or --accelerator", self.refused("straggler", "withdraw", *wrong))
        missing = self.server.cli("straggler", "withdraw", "--accelerator", "GPU-9", ok=False)
        self.assertEqual((missing.returncode, "no notice of accelerator GPU-9" in missing.stderr), (66, True))
        [policy] = json.loads(self.out("policy", "list", "-o", "json"))["policies"]
        self.assertEqual((policy["job"], policy["kind"]), (other, "max_slowdown"))
        self.assertRegex(self.out("policy", "list", "speech"), rf"\n{other[:12]} +speech +max_slowdown +\S.*10")
        self.out("policy", "clear", "speech", "max-slowdown")
        self.assertEqual(len(self.table("policy", "list")), 1)

    def test_profiles_and_tokens_are_listed(self):
        for name in ("gpt3-6.7b", "a+b", "small_1"):
            self.out("profile", "push", name, str(PROFILE), "--schedule", "1f1b", "--microbatches", "12", "--blocking-power", "90")
            self.assertEqual(self.server.ask("GET", "/v1/profiles/" + urllib.parse.quote(name, safe=""))[0], 200)
            self.out("profile", "show", name)
        self.assertEqual(self.out("profile", "list", "--sort", "name").split("\n"),
                         ["NAME", "a+b", "gpt3-6.7b", "small_1", ""])
        self.out("profile", "remove", "gpt3-6.7b")
        self.assertEqual(self.out("profile", "list", "-o", "csv").split("\n"), ["name", "a+b", "small_1", ""])
        secret = json.loads(self.server.cli("token", "create", "--role", "infrastructure", "--name", "boss", "--token",
                                            self.server.first_secret(), "--json").stdout)["token"]
        self.assertRegex(self.out("token", "create", "--role", "job", "--token", secret), r"^perseus_[0-9a-f]+\n$")
        self.assertRegex(self.out("token", "list", "--token", secret, "--sort", "role"), r"^ID .* EXPIRES\n\w+ +infrastructure +boss +- +- ")

    def test_names_that_no_profile_can_have(self):
        for name in ("gpt3/6.7b", "with space", "..", "100%"):
            for action in (["push", name, str(PROFILE)], ["show", name], ["remove", name]):
                self.assertIn(f"profile name '{name}'; allowed: 1 to 128 of letters", self.refused("profile", *action))

    def test_a_profile_needs_its_number_of_microbatches(self):
        done = self.server.cli("profile", "push", "small", str(PROFILE), ok=False)
        self.assertEqual(done.stderr, "perseus: --microbatches is required without --action-table\n")
        self.assertEqual(done.returncode, 64)

    def test_a_token_is_given_by_an_option(self):
        self.out("token", "create", "--role", "infrastructure", "--token", self.server.first_secret())
        done = self.server.cli("job", "list", ok=False)
        self.assertEqual(done.stderr, f"perseus: {self.server.url} requires a token; give --token or set PERSEUS_TOKEN\n")
        self.assertEqual(done.returncode, 67)
        self.assertIn("this token is unknown", self.server.cli("job", "list", "--token", "wrong", ok=False).stderr)

    def test_a_job_s_name_is_no_path(self):
        job = self.job("team/vision")
        self.out("policy", "max-slowdown", job, "--slowdown", "3%")
        for action in (["delete"], ["show"], ["finish"]):
            done = self.server.cli("job", *action, f"{job}/policies/max_slowdown", ok=False)
            self.assertEqual((done.returncode, done.stderr), (66, f"perseus: no job {job}/policies/max_slowdown\n"))
        self.assertIn("max_slowdown", self.out("policy", "list", job, "-o", "json"))
        self.assertIn(job, self.out("job", "show", "team/vision"))

    def test_a_watched_list_ends_by_ctrl_c(self):
        self.job("vision")

        def second_header(program):
            watchdog = threading.Timer(120, program.kill)  # ends readline() below
            watchdog.start()
            for _ in range(2):
                until(lambda: (line := program.stdout.readline()).startswith(b"ID") or self.assertTrue(line, "the list has ended"))
            watchdog.cancel()

        self.assertEqual(self.watch(second_header, stdout=subprocess.PIPE), 0)

    def test_a_list_is_no_wider_than_the_terminal(self):
        self.job("short")
        long = self.job("a name " + 60 * "x")
        lines = self.server.shown_on(80, "job", "list")
        self.assertEqual(len(lines), 3)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertEqual(lines[0].split(), ["ID", "NAME", "STATE", "RANKS", "POWER", "SAVED", "AGE"])
        self.assertRegex(lines[1], r"a name x+\.\.\.  registered")
        self.assertIn("short", lines[2])
        lines = self.server.shown_on(40, "job", "list")
        self.assertIn("a name xx...", lines[1], "texts are cut to 12 columns, and no more")
        titles = "ID NAME STATE RANKS ITERATION POWER PLAN SAVES SAVED STRAGGLERS AGE".split()
        for lines in (self.server.shown_on(200, "job", "list"), self.out("job", "list").splitlines()):
            self.assertEqual(lines[0].split(), titles)
            self.assertIn(60 * "x", lines[1])
        lines = self.server.shown_on(80, "job", "list", "-o", "wide")
        self.assertIn(60 * "x", lines[1])
        self.assertIn(long, lines[1])
        self.assertIn("LABELS", lines[0])

    def test_a_watched_list_is_redrawn_in_place(self):
        for number in range(30):
            self.job(f"job {number} of a name that is longer than the terminal is wide " + 40 * "x")
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 60, 0, 0))
        seen = b""

        def two_drawings(_):
            nonlocal seen
            while seen.count(b"\x1b[H") < 2:
                self.assertTrue(select.select([ours], [], [], 120)[0], seen)
                seen += os.read(ours, 65536)

        self.assertEqual(self.watch(two_drawings, stdout=theirs), 0)
        drawing = seen.split(b"\x1b[H")[1]
        self.assertTrue(drawing.endswith(b"\x1b[J"), drawing)
        lines = drawing.decode().replace("\x1b[K", "").replace("\x1b[J", "").split("\r\n")
        self.assertEqual(len(lines), 10, "the last one is empty")
        self.assertLessEqual(max(map(len, lines)), 60)
        self.assertEqual(lines[-2], "... 23 more rows")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    served.PROGRAM = sys.argv.pop(1)
    unittest.main()
