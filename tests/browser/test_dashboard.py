#!/usr/bin/env python3
"""The dashboard in a real Chromium, on a server that the test controls (standin_server.py).

usage: test_dashboard.py SAMPLE_PROGRAM [TEST...]    SAMPLE_PROGRAM: perseus_report_sample
Exits with 77, which ctest counts as skipped, where there is no Chromium.
"""

import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from chromium import run_tests  # noqa: E402
from page_cases import DRAWN, LIVE, PHONE, PIXELS, StandInTest  # noqa: E402
from standin_server import Server, populate  # noqa: E402


class DashboardTest(StandInTest):
    def deployed(self, name="gpt3-6.7b", dp=4):
        job = self.cluster.add(name, dp)
        self.cluster.deploy(job, job.plan()[2])
        return job

    # What is shown

    def test_nothing_comes_from_elsewhere(self):
        job = self.deployed()
        self.opened(job)
        for request in self.browser.requests():
            self.assertTrue(request.startswith((self.server.url, "data:")), request)
        self.assertFalse(self.browser.run("fetch('http://127.0.0.1:1/').then(() => true, () => false)"))
        self.assertTrue(self.browser.errors())  # the content policy reports it on the console
        self.browser.events.clear()

    def test_it_works_under_a_path(self):
        job = self.deployed()
        self.cluster.prefix = "/perseus"
        self.browser.open_url("about:blank")
        self.browser.open_url(f"{self.server.url}perseus/#/jobs/{job.id}")
        self.browser.wait_until(f"{LIVE} && {DRAWN}")
        self.assertNotIn("/outside", [path for path, _ in self.cluster.asked])
        self.assertIn("/v1/job_changes", [path for path, _ in self.cluster.asked])
        self.cluster.jobs.clear()
        self.browser.open_url("about:blank")
        self.browser.open_url(f"{self.server.url}perseus/")
        self.wait_for_text("No jobs yet", "main")
        self.assertIn(f"Point its client at this server, {self.server.url}perseus, or", self.text("main"))

    def test_a_doubtful_profile_is_a_warning(self):
        job = self.deployed()
        self.opened(job)
        self.assertEqual(self.text("#profile-doubts"), "")
        job.doubts = ["stage 0, forward, 1410 MHz: 2.5e+05 W: no GPU takes more than 2000 W"]
        self.opened(job)
        self.assertIn("The profile is doubtful: stage 0, forward, 1410 MHz", self.text("#profile-doubts"))

    def test_the_power_of_a_module_is_named(self):
        job = self.deployed()
        self.opened(job)
        self.assertNotIn("module", self.text("main"))
        job.module = True
        self.opened(job)
        self.assertIn("power of the module, CPU included", self.text(".job-head"))
        self.assertIn("against everything at maximum clock, power of the module, CPU included", self.text("#figures"))

    def test_jobs_appear(self):
        self.open()
        self.wait_for_text("No jobs yet", "main")
        job = self.deployed("first")
        self.wait_for_text("first", "#cluster-table")
        self.opened(job)
        self.assertEqual(self.text("#job-title"), "first")
        self.cluster.add("second")
        self.wait_for_text("second", "#job-list")
        self.wait_for_text("0 of 16 ranks", "#job-list")
        self.assertEqual(self.js("() => document.querySelectorAll('#job-list li').length"), 2)
        self.assertEqual(self.text("#job-title"), "first")
        for fact in (job.id, "NVIDIA A100", "microbatch size 4", "DP 4 · PP 4 · TP 1", "version 1 from iteration 100"):
            self.assertIn(fact, self.text("main"))

    def test_states_show_their_reason(self):
        populate(self.cluster)
        expected = {"registered": "12 of 32 have registered", "profiling": "3 ranks (4, 5, 7) have yet to report",
                    "characterizing": "being computed", "failed": "stage 3 has no measurement", "finished": "FINISHED"}
        for job in self.cluster.jobs.values():
            if job.state in expected:
                with self.subTest(state=job.state):
                    self.open(job)
                    self.browser.wait_until(f"document.querySelector('main').innerText.toUpperCase().includes({json.dumps(expected[job.state].upper())})")

    def test_a_job_goes_through_its_states(self):
        job = self.cluster.add("gpt3-xl")
        self.open(job)
        self.wait_for_text("0 of 16 have registered", "#frontier")
        self.cluster.change(job, "window_scheduled", "profiling", state="profiling", registered=16, waiting=9,
                            profiling={"windows": 2, "iterations": 7, "uncertainty_pct": 2.5, "waiting_for": [3], "rejected": 1200,
                                       "rejections": ["rank 2: forward took 0 s"]})
        self.wait_for_text("2 windows, 7 iterations, uncertainty 2.50 %", "#profiling")
        self.wait_for_text("1 rank (3) has yet to report", "#profiling")
        self.wait_for_text("1,200 values left out", "#profiling")
        self.js("() => document.querySelector('#profiling details').open = true")
        self.wait_for_text("rank 2: forward took 0 s", "#profiling")
        self.wait_for_text("16, 9 waiting", ".job-head")
        self.cluster.change(job, "characterization_started", "characterizing", state="characterizing")
        self.wait_for_text("being computed", "#frontier")
        self.cluster.deploy(job)
        self.browser.wait_until(DRAWN)
        self.wait_for_text("Plan saves", "#figures")
        self.wait_for_text("version 1", "#activity")

    def test_savings_against_maximum_clock(self):
        job = self.deployed(dp=1)
        summary, points = self.cluster.data["summary"], self.cluster.data["points"]
        self.cluster.change(job, "iterations", "reported", factors={"price_per_kwh": 0.25, "currency": "EUR", "carbon_g_per_kwh": 400},
                            total={"iterations": 1200, "saved_j": 7.2e6, "all_max_energy_j": 72e6})
        self.opened(job)
        self.wait_for_text("Saved so far", "#figures")
        figures = self.text("#figures")
        saved = 100 * (1 - points["energy_j"][-1] / summary["all_max"]["energy_j"])
        self.assertIn(f"{saved:.2f} %", figures)
        for wanted in ("2 kWh", "7.2 MJ in 1,200 iterations, 10.00 %", "€0.50", "800 g CO₂"):
            self.assertIn(wanted, figures)
        self.js("() => document.querySelector('.factors').open = true")
        self.js("() => document.querySelector('#factor-price_per_kwh').focus()")
        self.browser.type("0.5")
        self.wait_for_text("€1.00", "#figures")
        self.opened(job)  # what the reader typed is kept
        self.wait_for_text("€1.00", "#figures")
        self.js("() => localStorage.clear()")

    def test_the_estimated_part_of_savings_is_named(self):
        job = self.deployed(dp=1)
        sum_of = {"iterations": 1200, "saved_j": 7.2e6, "all_max_energy_j": 72e6, "measured": False}
        total = lambda iterations, saved_j, **more: {**sum_of, "estimated_iterations": iterations,
                                                     "estimated_saved_j": saved_j, **more}
        for shown, words in (
                (total(300, 1.5e6), "1.5 MJ in 300 iterations of it estimated from the profile"),
                (total(1, 5e3), "5,000 J in 1 iteration of it estimated from the profile"),
                (total(1200, 7.2e6), "all of it estimated from the profile"),
                (total(0, 0, measured=True), "all of it measured by the GPUs’ energy counters")):
            self.cluster.change(job, "iterations", "reported", total=shown)
            self.opened(job)
            self.wait_for_text(words, "#figures")
            self.assertEqual("2 kWh est." in self.text("#figures"), shown["estimated_iterations"] > 0)
        # A plan that wastes energy.
        self.cluster.change(job, "iterations", "reported", total={**total(0, 0, measured=True), "saved_j": -2.5e5})
        self.opened(job)
        self.wait_for_text("-250 kJ in 1,200 iterations, -0.347 %", "#figures")

    def test_a_job_without_reports_has_no_total(self):
        job = self.deployed(dp=1)
        self.opened(job)
        self.wait_for_text("no reports", "#figures")
        figures = self.text("#figures")
        self.assertRegex(figures, r"Plan saves\s+[\d.]+ % est\.")
        self.assertRegex(figures, r"Plan saves in a day\s+[\d.,]+ kWh est\.")
        self.assertNotRegex(figures, r"Saved (?!so far\s+no reports)")
        self.assertNotIn("Saved so far\n0", self.text("#figures"))

    @staticmethod
    def minutes(first, count, version=1, straggles=0, time_s=1.0, energy_j=900.0):
        """`count` minutes from `first` minutes before now on."""
        start_s = 60 * (int(time.time()) // 60 - first)
        return [{"start_s": start_s + 60 * k, "iterations": 50, "iteration_time_s": time_s, "energy_iterations": 50 if energy_j else 0,
                 "planned_iterations": 50, "planned_time_s": 0.9, "planned_energy_j": 850.0, "straggler_iterations": straggles,
                 "first_plan_version": version, "last_plan_version": version, **({"iteration_energy_j": energy_j} if energy_j else {})}
                for k in range(count)]

    def test_history_of_what_was_measured(self):
        job = self.deployed(dp=1)
        self.opened(job)
        self.wait_for_text("No reports", "#history")
        self.assertFalse(self.js("() => document.querySelector('.history-chart')"))
        job.history = self.minutes(50, 10) + self.minutes(30, 20, version=2, straggles=5, time_s=1.5, energy_j=None)
        self.cluster.change(job, "iterations", "reported")
        self.open(job, f"{LIVE} && document.querySelector('.history-chart canvas')")
        for words in ("1,500 iterations", "500 ones with measured energy", "1 change of the plan", "100 iterations with a straggler in force"):
            self.wait_for_text(words, "#history")
        before = self.picture(".history-chart")
        # The keyboard walks over the steps and says what each one is.
        self.tab_to("#history [name='history']")
        self.tab_to(".history-chart")
        said = lambda: self.js("() => document.querySelector('.history-chart').ariaValueText")
        self.browser.key("End")
        self.assertIn("energy not measured", said())
        self.assertIn("straggler in force 5 iterations", said())
        self.assertIn("plan version 2", said())
        self.browser.key("Home")
        self.assertIn("+11.11 % against the plan", said())
        self.assertIn("900 J", said())
        self.wait_for_text("plan", ".history-chart .tooltip")
        self.browser.key("Escape")
        # Another span, and back.
        self.js("() => document.querySelector('#history [value=year]').click()")
        self.wait_for_text("in this year", "#history")
        self.js("() => document.querySelector('#history [value=hour]').click()")
        self.browser.wait_until("document.querySelector('.history-chart canvas')")
        # It follows the job.
        job.history = job.history + self.minutes(5, 4)
        self.js("() => document.querySelector('#history [value=day]').click()")
        self.wait_for_text("1,700 iterations", "#history")
        self.wait_for_another_picture(".history-chart", before)

    def test_history_on_a_phone_and_in_the_dark(self):
        job = self.deployed(dp=1)
        job.history = self.minutes(50, 30)
        pictures = []
        for look in ({}, {"dark": True}, PHONE):
            with self.subTest(look=look):
                self.open(job, f"{LIVE} && document.querySelector('.history-chart canvas')", **look)
                self.wait_for_text("1,500 iterations", "#history")
                pictures.append(self.picture(".history-chart"))
                self.assert_readable()
        self.assertEqual(len(set(pictures)), 3)
        self.assertLessEqual(self.width(), 360)

    def test_a_saving_that_would_be_is_not_one_in_force(self):
        job = self.deployed("advice")
        job.possible = {"possible": {"saving_pct": 14.03, "saving_stddev_pct": 0.31}, "none_because": "rank 0 runs in advice mode"}
        job.listed = {"possible_saving_pct": 14.03, "saved_pct": 0}
        self.opened(job)
        self.wait_for_text("Would save", "#figures")
        self.assertRegex(self.text("#figures"), r"Would save\s+14\.0\d? % \(±0\.31\) est\.\s+if all ranks set their clocks")
        self.assertRegex(self.text("#figures"), "rank 0 runs in advice mode")
        self.wait_for_text("would save 14.0", "#job-list")
        self.assertNotIn("plan saves", self.text("#job-list"))

    def test_a_modeled_saving_says_so(self):
        job = self.deployed("modeled")
        job.possible = {"possible": {"saving_pct": 11.8, "saving_stddev_pct": 5, "modeled": True}, "none_because": "rank 0 runs in advice mode"}
        job.listed = {"possible_saving_pct": 11.8, "possible_saving_modeled": True, "saved_pct": None}
        self.opened(job)
        self.wait_for_text("Would save", "#figures")
        self.assertRegex(self.text("#figures"), r"Would save\s+11\.8\d? % \(±5\.0\) modeled\s+if all ranks set their clocks, by a model")
        self.wait_for_text("modeled", "#job-list")

    def test_a_plan_without_a_frontier_is_maximum_clock(self):
        job = self.cluster.add("advice", 1)
        self.cluster.change(job, "plan_deployed", "version 1", state="deployed", registered=job.world_size)
        job.listed = {"maximum_clock": True}
        other = self.deployed("other")
        self.open(other)
        self.wait_for_text("maximum clock", "#job-list")
        self.wait_for_text("plan in force", "#job-list")

    def test_waits_of_a_paced_job_are_not_counted(self):
        job = self.deployed("paced")
        self.opened(job)
        self.assertNotIn("not counted", self.text("#figures"))
        before = self.text("#figures")
        now = job.per_iteration()
        job.possible = {"waits_not_counted": {"period_s": 2 * now["time_s"], "wait_s": now["time_s"], "energy_j": 1234}}
        job.site = {"domain": "row a", "least_rate": 0.3, "priority": 1, "state": "granted", "granted_w": 4000, "counted_w": 4000, "rate": 0.45, "rate_lost": 0.5}
        self.cluster.deploy(job)
        self.wait_for_text("paced an iteration every", ".job-head .inputs")
        self.assertRegex(self.text(".job-head .inputs"), r"of which its ranks wait \S+ m?s: 45\.00 % of full speed")
        figures = self.text("#figures")
        self.assertRegex(figures, r"not counted: waits of pacing, 1,234 J est\. in \S+ m?s an iteration")

        def day_j(text):
            value, unit = re.search(r"in a day\s+\S+ k?Wh est\.\s+(\S+) ([kMG]?J)", text).groups()
            return float(value.replace(",", "")) * {"J": 1, "kJ": 1e3, "MJ": 1e6, "GJ": 1e9}[unit]

        self.assertAlmostEqual(day_j(before) / day_j(figures), 2, 2, "half as many iterations in a day")

    def test_names_are_only_text(self):
        job = self.deployed("<img src=x onerror=alert(1)><b>bold</b>")
        self.opened(job)
        self.assertEqual(self.text("#job-title"), job.name)
        self.assertEqual(self.js("() => document.querySelectorAll('img').length"), 0)

    def test_a_job_that_is_gone(self):
        self.deployed()
        self.open()
        self.js("() => { location.hash = '#/jobs/j_absent'; }")
        self.wait_for_text("The server does not know this job", "main")
        self.browser.events.clear()  # the browser logs the 404

    def test_many_jobs_are_found_by_the_filter(self):
        for k in range(250):
            self.cluster.add(f"run-{k:03d}")
        self.open(self.deployed())
        self.wait_for_text("51 jobs more", "#jobs")
        self.js("() => document.querySelector('#filter').focus()")
        self.browser.type("run-007")
        self.browser.wait_until("document.querySelectorAll('#job-list li').length === 1")
        self.browser.key("ArrowDown")
        self.browser.key("Enter")
        self.wait_for_text("run-007", "#job-title")

    # Live

    def test_a_straggler_comes_and_goes(self):
        job = self.deployed()
        self.opened(job)
        fastest = len(self.cluster.data["points"]["time_s"]) - 1
        self.wait_for_point(fastest)
        charts = (".frontier-chart", ".timeline-chart")
        before = [self.picture(chart) for chart in charts]
        self.assertIn("No straggler", self.text("#stragglers"))
        notice = self.cluster.straggler(job, 2, 1.15, delay_s=100)
        self.wait_for_text("takes effect in", "#straggler-list")
        self.assertEqual(self.js("() => document.documentElement.dataset.point"), str(fastest))
        self.cluster.withdraw(job, notice)
        self.wait_for_text("No straggler", "#stragglers")
        notice = self.cluster.straggler(job, 2, 1.15)
        t_straggler, t_opt, why = job.plan()
        point = job.point_for(t_opt)
        self.assertLess(point, fastest)
        self.wait_for_point(point)
        self.wait_for_text("in force since", "#straggler-list")
        self.wait_for_text(why, "#figures")
        self.wait_for_text("1 straggler", "#job-list")
        self.assertIn("straggler", self.text("#pipelines li:nth-child(3)"))
        self.assertIn("is 1.15× slower", self.text("#activity"))
        self.wait_for_text("T′", "#news")  # screen readers announce it
        for chart, picture in zip(charts, before):
            self.wait_for_another_picture(chart, picture)
        self.cluster.withdraw(job, notice)
        self.wait_for_point(fastest)
        self.wait_for_text("No straggler", "#stragglers")
        for chart, picture in zip(charts, before):
            self.wait_for_picture(chart, picture)

    def test_many_events_of_a_kind_are_one_line(self):
        job = self.cluster.add("wide")
        for rank in range(300):
            self.cluster.change(job, "rank_registered", f"rank {rank} registered", registered=rank + 1)
        self.open(job)
        self.wait_for_text("rank 299 registered and 299 times the like", "#activity")
        self.assertEqual(self.js("() => document.querySelectorAll('#activity li').length"), 2)
        self.cluster.change(job, "rank_registered", "rank 300 registered")
        self.wait_for_text("rank 300 registered and 300 times the like", "#activity")

    def test_a_policy_is_the_reason(self):
        job = self.deployed()
        self.opened(job)
        slower = 1.1 * self.cluster.data["summary"]["fastest"]["time_s"]
        self.cluster.change(job, "policy_set", "power cap 2 kW", policies=[{"kind": "power_cap", "text": "power cap 2 kW"}],
                            slowest=(slower, "power cap 2 kW"))
        self.cluster.deploy(job)
        self.wait_for_point(job.point_for(slower))
        self.wait_for_text("power cap 2 kW", "#policy-list")
        self.wait_for_text("power cap 2 kW", "#figures")

    def test_live_changes_leave_the_focus_alone(self):
        job = self.deployed()
        self.opened(job)
        for selector in ("#pipelines li:nth-child(2) button", ".frontier-chart", f"[data-job='{job.id}'] a"):
            with self.subTest(selector=selector):
                self.js("(s) => document.querySelector(s).focus()", selector)
                notice = self.cluster.straggler(job, 2, 1.15)
                self.wait_for_text("in force since", "#straggler-list")
                self.cluster.add("another")
                self.wait_for_text(f"{len(self.cluster.jobs)} jobs", "#jobs")
                self.assertTrue(self.js("(s) => document.activeElement.matches(s)", selector))
                self.cluster.withdraw(job, notice)
                self.wait_for_text("No straggler", "#stragglers")

    def test_browsing_points_and_back(self):
        job = self.deployed()
        self.opened(job)
        fastest = len(self.cluster.data["points"]["time_s"]) - 1
        self.js("() => document.querySelector('.frontier-chart').focus()")
        self.browser.key("End")
        self.wait_for_point(0)
        self.assertNotIn("in force", self.text(".timeline-chart"))
        self.cluster.change(job, "iterations", "nothing that matters")  # a refresh keeps the reader's selected point
        self.wait_for_text("nothing that matters", "#activity")
        self.assertEqual(self.js("() => document.documentElement.dataset.point"), "0")
        self.js("() => [...document.querySelectorAll('button')].find((b) => b.textContent === 'Back to the plan in force').click()")
        self.wait_for_point(fastest)
        self.wait_for_text("in force", ".timeline-chart")

    # ---- Failures

    def test_the_server_restarts(self):
        job = self.deployed()
        self.opened(job)
        self.wait_for_text("version 1", "#activity")
        port = self.server.port
        self.server.close()
        self.browser.wait_until("document.documentElement.dataset.connection === 'lost'")
        self.wait_for_text("What you see is from", "#banner")
        self.wait_for_text("Trying again", "#banner")
        self.assertIn("gpt3-6.7b", self.text("#job-title"))  # the page keeps the known data
        self.assertTrue(self.browser.run(f"!!({DRAWN})"))
        self.cluster.straggler(job, 1, 1.15)
        self.cluster.add("came meanwhile")
        self.cluster.asked.clear()
        self.server = Server(self.cluster, port)
        self.browser.wait_until(LIVE)
        self.wait_for_text("in force since", "#straggler-list")
        self.wait_for_text("came meanwhile", "#job-list")
        self.wait_for_text("version 2", "#activity")
        self.assertIn((f"/v1/jobs/{job.id}/events", "2"), self.cluster.asked)  # resumes at its last event, not from the start
        self.assertEqual(self.js("() => document.querySelectorAll('#activity li').length"), len(job.events))
        self.assertTrue(self.js("() => document.querySelector('#banner').hidden"))
        self.browser.events.clear()  # the browser logs refused connections

    def test_a_page_opened_without_a_server_waits_for_it(self):
        job = self.deployed()
        self.open(job)
        port = self.server.port
        self.server.close()
        self.browser.wait_until("document.documentElement.dataset.connection === 'lost'")
        self.server = Server(self.cluster, port)
        self.js("() => [...document.querySelectorAll('#banner button')].find((b) => b.textContent === 'Try now').click()")
        self.browser.wait_until(f"{LIVE} && {DRAWN}")
        self.browser.events.clear()

    def test_the_list_is_loaded_once_and_follows_its_changes(self):
        self.cluster.page_rows = 2
        jobs = [self.cluster.add(f"run-{k}") for k in range(5)]
        self.open()
        self.wait_for_text("5 jobs", "#jobs")
        loaded = [path for path, _ in self.cluster.asked].count("/v1/jobs")
        for job in jobs:
            self.cluster.deploy(job)
        self.cluster.add("came later")
        self.cluster.remove(jobs[0])
        self.wait_for_text("came later", "#job-list")
        self.browser.wait_until("!document.querySelector('#job-list').innerText.includes('run-0')")
        self.browser.wait_until("document.querySelectorAll('#job-list .job-facts').length === 5 &&"
                                " document.querySelector('#job-list').innerText.match(/plan saves [\\d.]+ % est\\./g)?.length === 4")
        self.assertEqual([path for path, _ in self.cluster.asked].count("/v1/jobs"), loaded)

    def test_a_token_is_requested(self):
        self.deployed("secret run")
        self.cluster.token = "prs_sesame"
        self.open(wait="document.querySelector('#token-dialog').open")
        self.assertNotIn("secret run", self.text())
        self.assertEqual(self.js("() => document.activeElement.id"), "token-input")
        self.assertEqual(self.text("#banner").split(" Enter")[0].split("\n")[0], "The server requires a token.")
        self.browser.type("wrong")
        self.browser.key("Enter")
        self.wait_for_text("The server refuses the token: this needs a valid token.", "#banner")
        self.browser.wait_until("document.querySelector('#token-dialog').open")
        self.js("() => document.querySelector('#token-input').select()")
        self.browser.type("prs_sesame")
        self.browser.key("Enter")
        self.browser.wait_until(LIVE)
        self.wait_for_text("secret run", "#cluster-table")
        self.assertEqual(self.js("() => [sessionStorage.length, localStorage.length]"), [1, 0])
        self.browser.reload()
        self.browser.wait_until(LIVE)  # the tab still has it
        self.js("() => sessionStorage.clear()")
        self.browser.events.clear()  # the browser logs the 401s

    def test_no_connection_stays_behind(self):
        self.deployed()
        for _ in range(8):  # more than a browser holds to one server
            self.open()
        self.browser.open_url("about:blank")
        self.cluster.add("to find out who listens")
        self.browser.wait_until("true")

    # ---- Accessibility

    def test_by_keyboard_alone(self):
        jobs = [self.deployed(f"job {k}") for k in range(4)]
        self.opened(jobs[3])
        self.browser.key("Tab")
        self.assertEqual(self.active(), "Skip to the page")
        self.tab_to("#job-list a")
        self.assertIn("job 3", self.active())
        for key, wanted in (("ArrowDown", "job 2"), ("End", "job 0"), ("ArrowUp", "job 1"), ("Home", "job 3"), ("ArrowDown", "job 2")):
            self.browser.key(key)
            self.assertIn(wanted, self.active())
        self.browser.key("Enter")
        self.wait_for_text("job 2", "#job-title")
        self.browser.wait_until(DRAWN)
        self.assertEqual(self.js("() => document.activeElement.id"), "main")
        self.assertIn(jobs[2].id, self.js("() => location.hash"))
        self.tab_to(".factors summary")
        self.tab_to("#pipelines button")
        self.browser.key("ArrowRight")
        self.browser.key("Enter")
        self.browser.wait_until("document.querySelector('#pipelines li:nth-child(2) button').ariaPressed === 'true'")
        self.tab_to("input[name=energy]")
        self.browser.key("ArrowRight")
        self.assertEqual(self.js("() => document.querySelector('input[name=energy]:checked').value"), "effective")
        self.tab_to(".frontier-chart")
        self.browser.key("End")
        self.wait_for_point(0)
        self.tab_to("[aria-label='Chosen point'] button")
        self.browser.key("Enter")
        self.wait_for_point(len(self.cluster.data["points"]["time_s"]) - 1)
        self.tab_to(".timeline-chart")
        self.browser.key("ArrowRight")
        self.assertIn("forward 0", self.text(".timeline-chart .tooltip"))

    def test_everything_that_takes_the_focus_has_a_name(self):
        live = populate(self.cluster)
        self.opened(live)
        self.js("() => { document.querySelector('.factors').open = true; }")
        for dialog in (False, True):
            if dialog:
                self.js("() => document.querySelector('#token-button').click()")
            self.assert_focusable_are_named(more_than=2 if dialog else 15)

    def test_fits_a_narrow_phone(self):
        populate(self.cluster)
        wide = self.deployed("a_name_without_any_space_that_is_longer_than_a_phone_is_wide_by_far", 16)
        self.open(**PHONE)
        self.wait_for_text("7 jobs", ".cluster")
        self.assertLessEqual(self.width(), 360)
        for job in self.cluster.jobs.values():
            with self.subTest(state=job.state):
                self.open(job, f"{LIVE} && document.querySelector('.job-body:not([hidden])')", **PHONE)
                self.assertLessEqual(self.width(), 360)
                self.assertFalse(self.js("() => document.querySelector('#jobs').checkVisibility()"))
        self.browser.wait_until(DRAWN)
        self.assertEqual(self.text("#job-title"), wide.name)
        self.assert_fits_a_phone("button, .switch label, summary, .back")
        self.js("() => document.querySelector('.back').click()")
        self.browser.wait_until("document.querySelector('.cluster')?.checkVisibility()")

    def test_dark_and_light(self):
        job = self.deployed()
        background = "() => getComputedStyle(document.body).backgroundColor"
        seen = []
        for dark in (False, True):
            self.opened(job, dark=dark)
            self.browser.settle()
            seen.append((self.js(background), self.js(PIXELS, ".timeline-chart")))
        self.assertNotEqual(seen[0][0], seen[1][0])
        self.assertNotEqual(seen[0][1], seen[1][1])
        self.js("() => document.querySelector('#theme-button').click()")  # light, though the system is dark
        self.browser.settle()
        self.assertEqual((self.js(background), self.js(PIXELS, ".timeline-chart")), seen[0])
        self.opened(job, dark=True)
        self.assertEqual(self.js(background), seen[0][0])  # kept
        self.js("() => document.querySelector('#theme-button').click()")
        self.assertEqual(self.js(background), seen[1][0])
        self.browser.look(dark=False)  # and the system is followed again
        self.browser.settle()
        self.assertEqual((self.js(background), self.js(PIXELS, ".timeline-chart")), seen[0])
        self.assertEqual(self.js("() => localStorage.length"), 0)

    def test_text_stands_out_from_its_background(self):
        live = populate(self.cluster)
        failed = next(job for job in self.cluster.jobs.values() if job.state == "failed")
        for dark in (False, True):
            for job in (live, failed):
                with self.subTest(dark=dark, state=job.state):
                    self.open(job, f"{LIVE} && document.querySelector('.job-body:not([hidden])')", dark=dark)
                    self.assert_readable()


if __name__ == "__main__":
    run_tests(DashboardTest, "program")
