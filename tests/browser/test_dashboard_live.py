#!/usr/bin/env python3
"""The dashboard in a real Chromium on `perseus serve`, which is killed and started again on the way.

usage: test_dashboard_live.py PERSEUS PROFILE.csv [TEST...]    PROFILE.csv: of four stages
Exits with 77, which ctest counts as skipped, where there is no Chromium, or where PERSEUS cannot serve.
"""

import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import types
import urllib.error
import urllib.request

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "../http")]
from chromium import run_tests  # noqa: E402
from page_cases import DRAWN, LIVE, PHONE, PageTest  # noqa: E402
from served import until  # noqa: E402


class PerseusServe:
    """`perseus serve` on a free port of the loopback interface; start() again takes the same port and data."""

    def __init__(self, program, profile):
        self.program = program
        self.data = tempfile.TemporaryDirectory(prefix="perseus-serve-")
        self.log = tempfile.TemporaryFile("a+", encoding="utf-8")
        self.token = None
        self.port = 0
        self.start()
        with open(profile, encoding="utf-8") as file:
            shape = {"schedule": "1f1b", "microbatches": 8, "blocking_power_w": 70}
            self.call("PUT", "v1/profiles/sample", {"profile_csv": file.read(), "pipeline": shape})

    def start(self):
        self.process = subprocess.Popen(
            [self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.data.name, "--plan-deadlines", "200",
             "--price-per-kwh", "0.25", "--currency", "EUR"],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        said = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+)$", said.strip()).group(1))
        self.url = f"http://127.0.0.1:{self.port}/"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def close(self):
        self.kill()
        self.data.cleanup()
        self.log.close()

    def first_secret(self):
        def found():
            self.log.seek(0)
            return re.findall(r"perseus_first_[0-9a-f]+", self.log.read())

        return until(found)[-1]

    def call(self, method, path, body=None):
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {self.token}"} if self.token else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None

    def straggler(self, job, pipeline, degree, delay_s=0):
        body = {"pipeline": pipeline, "degree": degree, "delay_s": delay_s}
        return self.call("POST", f"v1/jobs/{job.id}/stragglers", body)["notices"][0]["id"]

    def withdraw(self, job, notice):
        self.call("DELETE", f"v1/jobs/{job.id}/stragglers/{notice}")


class LiveDashboardTest(PageTest):
    program = profile = None

    def setUp(self):
        self.server = PerseusServe(self.program, self.profile)

    def job(self, name, dp=3):
        degrees = {"dp": dp, "pp": 4, "tp": 1}
        job = self.server.call("POST", "v1/jobs", {"name": name, "degrees": degrees, "profile": "sample"})["job"]
        for rank in range(4 * dp):
            self.server.call("POST", f"v1/jobs/{job}/ranks", {"rank": rank, "dp_rank": rank // 4, "pp_rank": rank % 4, "tp_rank": 0})
        return types.SimpleNamespace(id=job)

    def point(self):
        return int(self.js("() => document.documentElement.dataset.point"))

    def test_a_straggler_comes_and_goes(self):
        self.open()
        self.wait_for_text("No jobs yet", "main")
        job = self.job("gpt3")
        self.wait_for_text("gpt3", "#cluster-table")
        self.opened(job)
        self.wait_for_text("Plan saves", "#figures")
        self.wait_for_text("no straggler", "#figures")
        self.wait_for_text("rank 11 registered", "#activity")
        fastest = self.point()
        self.wait_for_point(fastest)
        charts = (".frontier-chart", ".timeline-chart")
        drawn = [self.picture(chart) for chart in charts]
        notice = self.server.straggler(job, 2, 1.1, delay_s=3600)
        self.wait_for_text("takes effect in", "#straggler-list")
        self.assertEqual(self.point(), fastest)
        self.server.withdraw(job, notice)
        self.wait_for_text("No straggler", "#stragglers")
        notice = self.server.straggler(job, 2, 1.1)
        self.wait_for_text("in force since", "#straggler-list")
        self.browser.wait_until(f"Number(document.documentElement.dataset.point) < {fastest}")
        self.wait_for_point(self.point())
        self.wait_for_text("pipeline 2 is 1.1 times slower", "#figures")
        self.wait_for_text("straggler", "#pipelines li:nth-child(3)")
        self.wait_for_text("€", "#figures")
        self.wait_for_another_picture(".timeline-chart", drawn[1])
        self.server.withdraw(job, notice)
        self.wait_for_text("No straggler", "#stragglers")
        self.wait_for_point(fastest)
        for chart, before in zip(charts, drawn):
            self.wait_for_picture(chart, before)

    def test_the_cluster_page_sums_reports_of_ranks(self):
        job = self.job("reporting", 1)
        self.job("silent", 1)
        self.open(wait=f"{LIVE} && document.querySelector('#cluster-table tbody tr')")
        self.wait_for_text("not counted: 2 jobs without reports", "#cluster-figures")
        self.assertNotIn("kW with everything", self.text("#cluster-figures"))
        version = self.server.call("GET", f"v1/jobs/{job.id}")["plan"]["version"]
        for rank in range(4):
            self.server.call("POST", f"v1/jobs/{job.id}/iterations", {
                "rank": rank, "last_iteration": 39, "plan_version": version, "iteration_time_s": [4.0] * 40})
        self.wait_for_text("not counted: 1 job without reports", "#cluster-figures")
        self.wait_for_text("in 1 job", "#cluster-figures")
        self.assertIn("kW with everything at maximum clock: −", self.text("#cluster-figures"))
        self.assertIn("€", self.text("#cluster-figures"))  # the price of the server's settings
        self.server.kill()
        self.browser.wait_until("document.documentElement.dataset.connection === 'lost'")
        self.server.start()
        self.open(wait=f"{LIVE} && document.querySelector('#cluster-table tbody tr')")
        self.assertIn("not counted: 1 job without reports", self.text("#cluster-figures"))  # at once after a restart
        self.browser.events.clear()  # the browser logs refused connections

    def test_ranks_with_their_rights(self):
        degrees = {"dp": 1, "pp": 4, "tp": 1}
        job = types.SimpleNamespace(id=self.server.call("POST", "v1/jobs", {"name": "four", "degrees": degrees, "profile": "sample"})["job"])
        for rank in range(4):
            self.server.call("POST", f"v1/jobs/{job.id}/ranks", {
                "rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0, "host": f"node-{rank}", "accelerator": f"GPU-{rank}",
                **({"control": "none", "control_reason": "no permission"} if rank == 2 else {})})
        self.open(job, f"{LIVE} && document.querySelector('.ranks summary')?.checkVisibility()", **PHONE)
        self.js("() => document.querySelector('.ranks summary').click()")
        self.wait_for_text("4 registered ranks", "#ranks")
        self.assertLessEqual(self.width(), 360)
        self.browser.look()
        rows = self.js("() => [...document.querySelectorAll('.ranks-table tbody tr')].map((r) => [...r.children].map((c) => c.textContent))")
        self.assertEqual(rows[2][:5], ["2", "0, 2, 0", "node-2", "GPU-2", "cannot set clocks: no permission"])
        self.assertEqual(rows[1][4], "sets clocks")
        self.assertEqual(rows[1][6:8], ["no reports", ""])
        self.assertRegex(rows[1][-1], r"\d\d:\d\d:\d\d")
        self.server.kill()
        self.browser.wait_until("document.documentElement.dataset.connection === 'lost'")
        self.server.start()
        self.browser.wait_until(LIVE)
        self.js("() => [...document.querySelectorAll('.ranks button')].find((b) => b.textContent === 'Load again').click()")
        self.wait_for_text("none since the server started", "#ranks")
        self.browser.events.clear()  # the browser logs refused connections

    def test_times_drawn_are_the_planners(self):
        self.opened(self.job("gpt3"))
        self.wait_for_point(self.point())
        time = self.text(".facts div:nth-child(2) dd").split("\n")[0]
        self.assertIn(time, self.text(".timeline-chart .panel-title:nth-of-type(2)"))

    def test_the_server_is_killed_and_comes_back(self):
        job = self.job("lasting")
        self.opened(job)
        self.server.straggler(job, 1, 1.05)
        self.wait_for_text("in force since", "#straggler-list")
        lines = "() => document.querySelectorAll('#activity li').length"
        self.wait_for_text("1.05", "#activity")
        before = self.js(lines)
        self.server.kill()
        self.browser.wait_until("document.documentElement.dataset.connection === 'lost'")
        self.wait_for_text("What you see is from", "#banner")
        self.server.start()
        self.browser.wait_until(f"{LIVE} && {DRAWN}")
        self.assertIn("in force since", self.text("#straggler-list"))
        self.job("newcomer")
        self.wait_for_text("newcomer", "#job-list")
        self.server.call("POST", f"v1/jobs/{job.id}/finish", {})
        self.wait_for_text("finished", ".job-head")
        self.wait_for_text("finished", "#activity")
        self.assertLess(self.js(lines), before + 6)  # the page continued the log at its last position
        self.browser.events.clear()  # the browser logs refused connections

    def test_a_read_only_token_is_enough(self):
        job = self.job("secret run")
        self.server.token = self.server.first_secret()
        self.server.token = self.server.call("POST", "v1/tokens", {"role": "infrastructure", "name": "admin"})["token"]
        reader = self.server.call("POST", "v1/tokens", {"role": "read-only", "name": "dashboard"})["token"]
        self.open(wait="document.querySelector('#token-dialog').open")
        self.assertNotIn("secret run", self.text())
        self.browser.type(reader)
        self.browser.key("Enter")
        self.wait_for_text("secret run", "#cluster-table")
        self.js("() => document.querySelector('#cluster-table tbody a').click()")
        self.browser.wait_until(f"{LIVE} && {DRAWN}")
        self.wait_for_text("secret run", "#job-title")
        self.server.straggler(job, 1, 1.2)
        self.wait_for_text("in force since", "#straggler-list")  # events come, too
        self.js("() => sessionStorage.clear()")
        self.browser.events.clear()  # the browser logs the 401s

    def test_a_page_from_another_port_does_nothing(self):
        job = self.job("bait")
        tokens, finish = self.server.url + "v1/tokens", f"{self.server.url}v1/jobs/{job.id}/finish"
        page = f"""<!doctype html><link rel="icon" href="data:,"><form method="post" enctype="text/plain" action="{finish}">
            <input name='{{"x":"' value='"}}'></form><script>
            const body = JSON.stringify({{role: 'infrastructure'}});
            const asks = [
              () => fetch('{tokens}', {{method: 'POST', mode: 'no-cors', body}}),
              () => fetch('{tokens}', {{method: 'POST', mode: 'no-cors', body: new Blob([body])}}),
              () => fetch('{tokens}', {{method: 'POST', headers: {{'Content-Type': 'application/json'}}, body}}),
              () => fetch('{finish}', {{method: 'POST', mode: 'no-cors'}}),
              () => fetch('{self.server.url}v1/jobs').then((answer) => answer.text()),
            ];
            (async () => {{
              window.read = [];
              for (const ask of asks) window.read.push(await ask().catch(() => 'refused'));
              document.forms[0].target = '_blank';
              document.forms[0].submit();
              window.tried = true;
            }})();
            </script>"""

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as elsewhere:
            serving = threading.Thread(target=elsewhere.serve_forever)
            serving.start()
            try:
                self.browser.open_url(f"http://127.0.0.1:{elsewhere.server_port}/")
                self.browser.wait_until("window.tried")
                self.assertNotIn("bait", str(self.js("() => window.read.map(String).join()")))
            finally:
                elsewhere.shutdown()
                serving.join()
        self.assertEqual(self.server.call("GET", "v1/tokens")["tokens"], [])
        self.assertNotEqual(self.server.call("GET", f"v1/jobs/{job.id}")["state"], "finished")
        self.browser.events.clear()  # the browser logs refused requests


if __name__ == "__main__":
    run_tests(LiveDashboardTest, "program", "profile")
