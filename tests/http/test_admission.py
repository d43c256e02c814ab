#!/usr/bin/env python3
"""A scheduler asks a running server for the watts of a job before it starts: the others give them up before the answer
is "ready", whatever is killed meanwhile, and of two servers on one PostgreSQL each knows what the other has admitted.

usage: test_admission.py PERSEUS
"""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import served
import test_site
from served import Server, until
from workload import profile_body

SAME = 1.0001


class AdmissionCase(test_site.SiteCase):
    def train(self, number):
        """Jobs under a limit that leaves a fifth of their power at maximum clock, and that power."""
        self.assertEqual(self.server.ask("PUT", "/v1/profiles/sample", profile_body(1))[0], 200)
        jobs = [self.register(k) for k in range(number)]
        until(lambda: all(plan.get("version") == 1 for job in jobs for plan in job.plans))
        self.limit(1e6)
        most = self.hall()["counted_w"]
        self.limit(1.2 * most)
        return jobs, most

    def ask(self, job, watts, **more):
        """A server that still reads its jobs wants to be asked again."""
        request = {"job": job, "domain": "hall", "accelerators": 1, "accelerator_w": watts, **more}

        def answered():
            status, answer = self.server.ask("POST", "/v1/site/admission", request)
            self.assertIn(status, (200, 503), answer)
            return status == 200 and answer

        return until(answered)

    def admit(self, *words, url=None):
        return subprocess.run([served.PROGRAM, "site", "admit", *words, "--server", url or self.server.url], capture_output=True,
                              text=True)


class Admission(AdmissionCase):
    def test_the_watts_are_there_before_the_job_starts(self):
        self.servers = [self.server]
        jobs, most = self.train(2)
        wanted = 0.35 * most
        answer = self.ask("new", wanted)
        self.assertEqual((answer["state"], answer["ready"], answer["missing"]), ("admitted", False, []))
        self.server.stop(signal.SIGKILL)
        self.servers.append(Server(self.data))
        self.server = self.servers[-1]
        kept = self.power()["reservations"]
        self.assertEqual([(one["job"], one["power_w"]) for one in kept], [("new", wanted)])
        began = time.monotonic()
        done = self.admit("--job", "new", "--domain", "hall", "--accelerators", "1", "--accelerator-power", f"{wanted}", "--wait",
                          "100", "--json")
        print(f"ready {time.monotonic() - began:.2f} s after a kill")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["ready"])
        for _ in range(10):
            hall = self.hall()
            self.assertEqual(hall["reserved_w"], wanted)
            self.assertLessEqual(hall["counted_w"] + hall["reserved_w"], hall["limit_w"] * SAME)
        listed = self.server.cli("site", "reservations").stdout
        self.assertRegex(listed, r"new +hall +1 +\S+ W")
        job = self.server.ask("POST", "/v1/jobs", {"name": "new", "degrees": {"dp": 1, "pp": 1, "tp": 1}})[1]["job"]
        self.assertEqual(self.hall()["reserved_w"], wanted, "no rank has registered yet")
        status, answer = self.server.ask("POST", f"/v1/jobs/{job}/ranks", {
            "rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0, "epoch": 1, "host": "node-1"})
        self.assertEqual(status, 200, answer)
        self.assertNotIn("reserved_w", self.hall())
        until(lambda: any("has ended: its job has started" in line for line in self.server.log))
        for training in jobs:
            training.over = True

    def test_the_command_line(self):
        self.servers = [self.server]
        self.assertEqual(self.admit("--job", "a", "--accelerators", "8").returncode, 66)
        self.limit(1000)
        dry = self.admit("--job", "a", "--accelerators", "1", "--dry-run")
        self.assertEqual((dry.returncode, dry.stdout), (0, "would be admitted: 1000 W of 'hall', at once\n"))
        self.assertEqual(self.power()["reservations"], [])
        admitted = self.admit("--job", "a b/c", "--accelerators", "1", "--accelerator-power", "600")
        self.assertEqual((admitted.returncode, admitted.stdout),
                         (0, "admitted: 600 W of 'hall' are reserved, ready\n"))
        replaced = self.admit("--job", "a b/c", "--accelerators", "1", "--accelerator-power", "601", "--dry-run")
        self.assertEqual(replaced.stdout, "would be admitted: 601 W of 'hall', at once; "
                                          "this replaces the 600 W reserved for that name\n")
        words = ("--job", "d", "--domain", "hall", "--accelerators", "1", "--accelerator-power", "500")
        waits = self.admit(*words)
        self.assertEqual((waits.returncode, waits.stdout),
                         (75, "waits: 'hall' lacks 100 W; it fits when other jobs have ended\n"))
        refused = self.admit("--job", "d", "--accelerators", "2")
        self.assertEqual((refused.returncode, refused.stdout),
                         (76, "refused: 2000 W do not fit even without any other job: 'hall' lacks 1000 W\n"))
        waiting = subprocess.Popen([served.PROGRAM, "site", "admit", *words, "--wait", "100", "--server", self.server.url],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        note = waiting.stderr.readline()
        self.server.cli("site", "release", "--job", "a b/c")
        said, notes = waiting.communicate()
        self.assertEqual((waiting.returncode, said), (0, "admitted: 500 W of 'hall' are reserved, ready\n"), note + notes)
        self.assertEqual((note + notes).count("note: waits: 'hall' lacks 100 W"), 1, note + notes)
        self.assertEqual(self.server.cli("site", "release", "--job", "a b/c", ok=False).returncode, 66)
        for words, message in ((("--accelerators", "0"), "--accelerators: '0' is not"),
                               (("--accelerators", "1", "--domain", "x", "--host", "y"), "excludes"),
                               (("--accelerators", "1", "--domain", "cellar"),
                                "domain: 'cellar'; allowed: hall")):
            wrong = self.admit("--job", "e", *words)
            self.assertEqual(wrong.returncode, 64, wrong.stderr)
            self.assertIn(message, wrong.stderr)

    def test_a_server_that_comes_back(self):
        self.servers = [self.server]
        self.limit(1000)
        address = self.server.address
        self.server.stop(signal.SIGKILL)
        gone = self.admit("--job", "a", "--accelerators", "1")
        self.assertEqual(gone.returncode, 69)
        back = threading.Timer(2, lambda: self.servers.append(Server(self.data, listen=address)))
        back.start()
        waited = self.admit("--job", "a", "--accelerators", "1", "--wait", "100")
        back.join()
        self.server = self.servers[-1]
        self.assertEqual(waited.returncode, 0, waited.stderr)

    def test_the_prolog_of_the_documentation(self):
        self.servers = [self.server]
        text = (served.ROOT / "docs/power.md").read_text()
        lines = itertools.takewhile(str.strip, text[text.index("    #!/bin/sh\n"):].splitlines())
        folder = pathlib.Path(self.folder.name)
        programs = {"prolog": "\n".join(line[4:] for line in lines).replace("--wait 60", "--wait 0"),
                    "scontrol": "#!/bin/sh\nprintf 'n1\\nn2\\n'", "perseus": f'#!/bin/sh\nexec {served.PROGRAM} "$@"'}
        for name, program in programs.items():
            (folder / name).write_text(program + "\n")
            (folder / name).chmod(0o755)

        def prolog(job):
            return subprocess.run([str(folder / "prolog")], capture_output=True, text=True, env={
                "PATH": f"{folder}:{os.environ['PATH']}", "SLURM_JOB_NAME": "gpt", "SLURM_JOB_ID": str(job),
                "SLURM_JOB_ACCOUNT": "vision" if job == 1 else "", "SLURM_JOB_NODELIST": "n[1-2]", "PERSEUS_SERVER": self.server.url})

        self.assertEqual(prolog(1).returncode, 0, "without a site")
        self.assertEqual(self.server.ask("PUT", "/v1/site", {
            "domains": [{"name": "hall"}, {"name": "row", "limits": [{"limit_w": 20000}]}],
            "hosts": [{"prefix": "n", "domain": "row"}]})[0], 200)
        first = prolog(1)
        self.assertEqual((first.returncode, first.stdout),
                         (0, "admitted: 16000 W of 'row' are reserved, ready\n"), first.stderr)
        self.assertEqual([(one["job"], one["team"]) for one in self.power()["reservations"]], [("gpt-1", "vision")])
        self.assertEqual(prolog(2).returncode, 1, "16,000 W are missing")
        self.server.stop(signal.SIGKILL)
        self.assertEqual(prolog(2).returncode, 0, "without a server the job starts")

    def test_rights(self):
        secret = self.server.ask("POST", "/v1/tokens", {"role": "infrastructure"}, self.server.first_secret())[1]["token"]
        status, made = self.server.ask("POST", "/v1/tokens", {"role": "job", "name": "team"}, secret)
        self.assertEqual(status, 200, made)
        request = {"job": "a", "accelerators": 1}
        self.assertEqual(self.server.ask("PUT", "/v1/site", {"domains": [{"name": "hall"}]}, secret)[0], 200)
        self.assertEqual(self.server.ask("POST", "/v1/site/admission", request, made["token"])[0], 403)
        self.assertEqual(self.server.ask("DELETE", "/v1/site/admission/a", None, made["token"])[0], 403)
        for method, path in (("POST", "/v1/site/admission?dry_run=true"), ("DELETE", "/v1/site/admission/a?force=1")):
            status, answer = self.server.ask(method, path, request if method == "POST" else None, secret)
            self.assertEqual(status, 400)
            self.assertIn("unknown parameter", str(answer))
        self.assertEqual(self.server.ask("GET", "/v1/site/power", None, secret)[1].get("reservations", []), [])
        self.assertEqual(self.server.ask("POST", "/v1/site/admission", request, secret)[0], 200)
        reservation = self.server.ask("GET", "/v1/site/power", None, secret)[1]["reservations"][0]
        self.assertTrue(reservation["by"], reservation)
        self.assertEqual(self.server.ask("GET", "/v1/site/power", None, made["token"])[0], 403)

    def test_many_requests_at_once(self):
        self.servers = [self.server]
        self.limit(1000)
        answers = {}

        def ask(job):
            answers[job] = self.ask(f"job-{job}", 300)["state"]

        threads = [threading.Thread(target=ask, args=(job,)) for job in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(answers.values()), ["admitted"] * 3 + ["waits"] * 5)


if __name__ == "__main__":
    served.PROGRAM = sys.argv.pop(1)
    served.unittest.main()
