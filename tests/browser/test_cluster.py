#!/usr/bin/env python3
"""The dashboard's page of all jobs in a real Chromium, on a server that the test controls (standin_server.py).

usage: test_cluster.py SAMPLE_PROGRAM [TEST...]    SAMPLE_PROGRAM: perseus_report_sample
Exits with 77, which ctest counts as skipped, where there is no Chromium.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from chromium import run_tests  # noqa: E402
from page_cases import DRAWN, LIVE, PHONE, PIXELS, StandInTest  # noqa: E402
from standin_server import fill  # noqa: E402

TABLE = "document.querySelector('#cluster-table tbody tr')"
NAMES = "() => [...document.querySelectorAll('#cluster-table tbody a')].map((a) => a.textContent)"
SCROLL = """async () => {
  const scroller = document.querySelector('.cluster-table');
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const times = [];
  let last = await frame();
  for (let k = 1; k <= 120; ++k) {
    scroller.scrollTop = (scroller.scrollHeight * k) / 120;
    const now = await frame();
    times.push(now - last);
    last = now;
  }
  times.sort((a, b) => a - b);
  return [times[60], times.at(-1)];
}"""


class ClusterCase(StandInTest):
    """Helpers for tests of pages about all jobs."""

    def job(self, name, state="deployed", **listed):
        job = self.cluster.add(name, 1)
        job.state, job.registered, job.listed = state, job.world_size, listed
        return job

    def filled(self, jobs, **look):
        fill(self.cluster, jobs)
        self.open(wait=f"{LIVE} && {TABLE}", **look)

    def choose(self, facet, value):
        self.js("""(id, value) => { const select = document.getElementById(id); select.value = value;
            select.dispatchEvent(new Event('change')); }""", f"facet-{facet}", value)

    def names(self):
        return self.js(NAMES)

    def sort(self, heading):
        self.js("(text) => [...document.querySelectorAll('#cluster-table thead button')].find((b) => b.textContent === text).click()", heading)


class ClusterTest(ClusterCase):
    # What is shown

    def test_measured_and_estimated_are_apart(self):
        self.job("measured", power_w=90e3, all_max_power_w=100e3, power_measured=True, saved_j=7.2e6, estimated_saved_j=0.0)
        self.job("estimated", power_w=45e3, all_max_power_w=50e3, saved_j=3.6e6, estimated_saved_j=3.6e6)
        self.job("silent", saved_pct=12.0, iteration_time_s=2.0)
        self.job("over", "finished", saved_j=3.6e6, estimated_saved_j=0.0)
        self.open(wait=f"{LIVE} && {TABLE}")
        figures = self.text("#cluster-figures")
        for wanted in ("135 kW", "150 kW with everything at maximum clock: −10.00 %", "45 kW of it estimated from the profile, in 1 job",
                       "not counted: 1 job without reports", "4 kWh", "3 kWh measured", "1 kWh estimated from the profile"):
            self.assertIn(wanted, figures)
        self.assertNotIn("Cost", figures)  # neither the server nor the reader has a price
        self.assertNotIn("Emissions", figures)
        rows = self.js("() => Object.fromEntries([...document.querySelectorAll('#cluster-table tbody tr')].map((r) => [r.querySelector('a').textContent,"
                       " [...r.children].map((c) => c.textContent)]))")
        self.assertEqual(rows["measured"][5], "90 kW")
        self.assertEqual(rows["estimated"][5], "45 kW est.")
        self.assertEqual((rows["silent"][5], rows["silent"][8]), ("no reports", "no reports"))
        self.assertEqual((rows["measured"][8], rows["estimated"][8]), ("2 kWh", "1 kWh est."))

    def test_cost_and_emissions_need_a_price_and_emissions_of_a_kwh(self):
        self.job("a", saved_j=7.2e6, estimated_saved_j=3.6e6)
        self.cluster.factors = {"price_per_kwh": 0.25, "currency": "EUR"}
        self.open(wait=f"{LIVE} && {TABLE}")
        self.assertIn("€0.50", self.text("#cluster-figures"))
        self.assertIn("€0.25 of it from estimated energy", self.text("#cluster-figures"))
        self.js("() => { document.querySelector('.factors').open = true; document.querySelector('#factor-carbon_g_per_kwh').focus(); }")
        self.browser.type("400")
        self.wait_for_text("800 g CO₂", "#cluster-figures")
        self.js("() => localStorage.clear()")

    def test_measured_power_against_that_of_the_plans(self):
        self.job("a", power_w=90e3, planned_power_w=88e3, all_max_power_w=100e3, power_measured=True, labels={"team": "vision"})
        self.job("b", power_w=30e3, planned_power_w=32e3, all_max_power_w=40e3, power_measured=True, labels={"team": "vision"})
        self.job("c", power_w=10e3, planned_power_w=8e3, all_max_power_w=12e3, power_measured=True, labels={"team": "language"})
        self.job("estimated", power_w=45e3, planned_power_w=45e3, all_max_power_w=50e3, labels={"team": "language"})
        self.job("over", "finished", power_w=1e3, planned_power_w=2e3, power_measured=True)
        for name in ("silent", "quiet", "mute"):
            self.job(name, saved_pct=12.0)
        self.open(wait=f"{LIVE} && {TABLE}", width=1500)
        figures = self.text("#cluster-figures")
        for wanted in ("Power against plan\n+1.56 %", "130 kW measured, 128 kW est. planned, in 3 jobs",
                       "not counted: 3 jobs without reports, 1 job without measured power"):
            self.assertIn(wanted, figures)
        cells = "(k) => Object.fromEntries([...document.querySelectorAll('#cluster-table tbody tr:not(.gap)')].map((r) => [r.children[0].textContent, r.children[k].textContent]))"
        rows = self.js(cells, 6)
        self.assertEqual([rows[name] for name in ("a", "b", "estimated", "over", "silent")], ["+2.27 %", "−6.25 %", "", "", "no reports"])
        self.sort("Against plan")
        self.assertEqual(self.names()[:3], ["c", "a", "b"])
        self.choose("group", "label-team")
        rows = self.js(cells, 6)
        self.assertEqual((rows["vision, 2 jobs"], rows["language, 2 jobs"]), ("±0.00 %", "+25.00 %"))
        self.choose("label-team", "=language")
        self.assertIn("10 kW measured, 8 kW est. planned, in 1 job", self.text("#cluster-figures"))

    # History

    def minutes(self, before, count, **members):
        now_s = int(time.time()) // 60 * 60
        return [{"start_s": now_s - 60 * (before - k), "iterations": 40, "compared_iterations": 30, "energy_j": 6.3e6, "planned_energy_j": 6e6} | members
                for k in range(count)]

    def test_history_of_all_jobs_against_their_plans(self):
        self.job("a")
        self.open(wait=f"{LIVE} && {TABLE}")
        self.wait_for_text("No reports", "#cluster-history")
        self.assertFalse(self.js("() => document.querySelector('.history-chart')"))
        self.cluster.history = self.minutes(300, 100) + self.minutes(100, 50, compared_iterations=0, energy_j=0, planned_energy_j=0)
        self.open(wait=f"{LIVE} && document.querySelector('#cluster-history canvas')")
        for words in ("3,000 iterations compared: 175 kWh measured, 166.7 kWh est. planned (+5.00 % against the plan)",
                      "Not counted: 3,000 iterations without measured energy or without a plan", "Jobs without reports are not counted"):
            self.wait_for_text(words, "#cluster-history")
        self.tab_to("#cluster-history [name='history']")
        self.tab_to("#cluster-history .history-chart")
        said = lambda: self.js("() => document.querySelector('.history-chart').ariaValueText")
        self.browser.key("End")
        self.assertRegex(said(), r"^\d\d:\d\d: iterations [\d,]+ iterations, 0 compared, measured nothing to compare$")
        self.browser.key("Home")
        self.browser.key("ArrowRight")
        self.assertRegex(said(), r"^\d\d:\d\d: iterations 600 iterations, 450 compared, measured 105 kW \(\+5.00 % against the plan\), planned 100 kW est.$")
        self.wait_for_text("105 kW", ".history-chart .tooltip")
        before = self.js(PIXELS, ".history-chart")
        self.js("() => document.querySelector('#cluster-history [value=year]').click()")
        self.wait_for_text("in this year", "#cluster-history")
        self.js("() => document.querySelector('#cluster-history [value=hour]').click()")
        self.wait_for_text("0 iterations compared", "#cluster-history")  # the last hour has none with energy
        self.cluster.history += self.minutes(40, 40)
        self.js("() => document.querySelector('#cluster-history [value=day]').click()")
        self.browser.wait_until(f"({PIXELS})('.history-chart') !== {before}")

    def test_steps_of_the_cluster_s_history(self):
        """The step in progress is divided by its time so far, once that is half of a step."""
        self.job("a")
        now_s = 1_800_000_000 + 8 * 60  # half past a step of 15 minutes
        self.cluster.history = [{"start_s": 1_800_000_000 + 60 * k, "iterations": 1, "compared_iterations": 1, "energy_j": 6e6, "planned_energy_j": 6e6}
                                for k in range(-10, 8)]
        self.browser.look()
        script = self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=f"Date.now = () => {1000 * now_s}")["identifier"]
        try:
            for later_s, last in ((0, "8 iterations, measured 100 kW"), (-61, "10 iterations, measured 66.67 kW")):
                self.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
                script = self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=f"Date.now = () => {1000 * (now_s + later_s)}")["identifier"]
                self.open(wait=f"{LIVE} && document.querySelector('#cluster-history canvas')")
                self.js("() => document.querySelector('.history-chart').focus()")
                self.browser.key("End")
                self.assertIn(last, self.js("() => document.querySelector('.history-chart').ariaValueText"))
        finally:
            self.browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)

    def test_a_reader_without_the_history_of_all_jobs_does_not_see_it(self):
        self.job("a")
        for status in (403, 404):
            self.cluster.history = status
            self.open(wait=f"{LIVE} && {TABLE}")
            self.browser.wait_until("document.querySelector('#cluster-history').hidden")
            self.assertNotIn("Measured against planned", self.text())
        self.browser.errors()  # of the refused requests
        self.browser.events.clear()

    def test_no_job_has_reported(self):
        self.job("new", "profiling")
        self.open(wait=f"{LIVE} && {TABLE}")
        self.assertIn("not known", self.text("#cluster-figures"))

    def test_names_are_only_text(self):
        self.job("<img src=x onerror=alert(1)>", labels={"<b>team": "<i>x"})
        self.open(wait=f"{LIVE} && {TABLE}")
        self.assertEqual(self.js("() => document.querySelectorAll('img, main b, main i:not(.mark)').length"), 0)
        self.assertEqual(self.names(), ["<img src=x onerror=alert(1)>"])

    # Choosing

    def test_sorting(self):
        self.filled(30)
        self.assertEqual(self.names()[:2], ["run-0029", "run-0028"])  # newest first
        self.sort("Job")
        self.assertEqual(self.names()[:2], ["run-0000", "run-0001"])
        self.sort("Job")
        self.assertEqual(self.names()[:2], ["run-0029", "run-0028"])
        self.sort("Saved")
        self.assertEqual(self.names()[0], "run-0029")  # 30 kWh, the most
        self.assertEqual(self.js("() => [...document.querySelectorAll('[aria-sort]')].map((h) => [h.textContent, h.ariaSort])"), [["Saved", "descending"]])
        self.sort("Saved")
        self.assertEqual(self.names()[0], "run-0000")  # what is not known stays last
        self.sort("Age")
        self.assertEqual(self.names()[0], "run-0029")

    def test_all_labels_can_be_chosen_and_an_empty_value_is_named(self):
        self.job("blank", labels={"team": "", "a": "1", "b": "1", "c": "1", "d": "1", "rare": "yes"})
        self.job("other", labels={"team": "vision", "a": "1", "b": "1", "c": "2"})
        self.open()
        self.wait_for_text("blank", "#cluster-table")
        self.assertEqual(self.js("() => [...document.querySelector('#facet-label-team').options].map((o) => o.textContent)"),
                         ["all (2)", "(empty) (1)", "vision (1)"])
        self.assertEqual(self.js("() => [...document.querySelector('#facet-more').options].map((o) => o.textContent)"),
                         ["2 more", "d", "rare"])
        self.choose("more", "rare")
        self.choose("label-rare", "=yes")
        self.assertEqual(self.js(NAMES), ["blank"])
        self.choose("more", "d")
        self.assertFalse(self.js("() => document.querySelector('#facet-more')?.checkVisibility() ?? false"))
        self.assertEqual(self.js(NAMES), ["blank"])

    def test_facets_and_filter(self):
        self.filled(210)
        self.assertIn("210 jobs", self.text(".cluster .heading"))
        self.choose("gpu", "=NVIDIA A40")
        self.wait_for_text("70 of 210 jobs", ".cluster .heading")
        self.assertEqual(set(self.js("() => [...document.querySelectorAll('#cluster-table tbody td:nth-child(3)')].map((c) => c.textContent)")), {"NVIDIA A40"})
        self.choose("label-team", "=vision")
        self.wait_for_text("35 of 210 jobs", ".cluster .heading")
        self.choose("state", "=finished")
        self.wait_for_text("5 of 210 jobs", ".cluster .heading")
        self.assertIn("Live jobs\n0", self.text("#cluster-figures"))  # the figures are of the chosen jobs
        for facet in ("gpu", "label-team", "state"):
            self.choose(facet, "")
        job = next(iter(self.cluster.jobs.values()))
        job.version = 1
        self.cluster.straggler(job, 0, 1.2)
        self.browser.wait_until("document.querySelector('#facet-straggler').textContent.includes('with stragglers (1)')")
        self.choose("straggler", "=with stragglers")
        self.browser.wait_until(f"({NAMES})().join() === '{job.name}'")
        self.choose("straggler", "")
        self.js("() => document.querySelector('#cluster-filter').focus()")
        self.browser.type("run-0042")
        self.browser.wait_until(f"({NAMES})().join() === 'run-0042'")

    def test_groups(self):
        self.filled(20)
        self.choose("group", "label-team")
        groups = "() => [...document.querySelectorAll('#cluster-table .group button')].map((b) => [b.textContent, b.ariaExpanded])"
        self.assertEqual(self.js(groups)[0], ["language, 10 jobs", "true"])
        self.js("() => document.querySelector('#cluster-table .group button').click()")
        self.assertEqual(self.js(groups), [["language, 10 jobs", "false"], ["vision, 10 jobs", "true"]])
        self.assertEqual(len(self.names()), 10)
        self.assertIn("kWh est.", self.js("() => document.querySelector('#cluster-table .group').textContent"))

    # Many

    def test_5000_jobs(self):
        fill(self.cluster, 5000)
        self.cluster.page_rows = 1000  # as the page asks for
        self.open(wait=f"{LIVE} && {TABLE}")
        self.wait_for_text("5,000 jobs", ".cluster .heading")
        asked = [path for path, _ in self.cluster.asked].count("/v1/jobs")
        rows = self.js("() => document.querySelectorAll('#cluster-table tbody tr').length")
        self.assertLess(rows, 80)
        render_ms = self.js("""async () => {
            const began = performance.now();
            document.querySelector('#facet-group').value = 'gpu';
            document.querySelector('#facet-group').dispatchEvent(new Event('change'));
            document.querySelector('.cluster-table').getBoundingClientRect();
            return performance.now() - began; }""")
        self.choose("group", "")
        median_ms, longest_ms = self.js(SCROLL)
        print(f"\n5,000 jobs: {asked} pages of the list; {rows} rows as elements; to sum, group and draw them {render_ms:.0f} ms; "
              f"scrolling from end to end, 120 frames: median {median_ms:.1f} ms, longest {longest_ms:.1f} ms")
        self.browser.wait_until(f"({NAMES})().includes('run-0000')")  # the last row
        self.assertEqual(self.js("() => document.querySelector('#cluster-table').ariaRowCount ?? document.querySelector('#cluster-table').getAttribute('aria-rowcount')"), "5001")
        self.assertEqual(self.js("() => [...document.querySelectorAll('#cluster-table tbody tr:not(.gap)')].at(-1).getAttribute('aria-rowindex')"), "5001")

    def test_the_page_follows_changes_and_keeps_the_focus(self):
        self.filled(300)
        job = list(self.cluster.jobs.values())[-3]
        self.js("(id) => document.querySelector(`#cluster-table [data-job='${id}'] a`).focus()", job.id)
        self.cluster.change(job, "renamed", "now it has another name", name="another name")
        self.browser.wait_until("document.activeElement.textContent === 'another name'")
        self.cluster.add("a newcomer")
        self.browser.wait_until(f"({NAMES})()[0] === 'a newcomer'")
        self.assertEqual(self.active(), "another name")
        self.wait_for_text("301 jobs", ".cluster .heading")

    # Access

    def test_by_keyboard_alone(self):
        self.filled(100)
        self.tab_to("#cluster-filter")
        self.tab_to("#facet-state")
        self.tab_to("#cluster-table thead button")
        self.tab_to("#cluster-table tbody a")
        self.assertEqual(self.active(), "run-0099")
        for key, wanted in (("ArrowDown", "run-0098"), ("End", "run-0000"), ("ArrowUp", "run-0001"), ("Home", "run-0099"), ("ArrowDown", "run-0098")):
            self.browser.key(key)
            self.assertEqual(self.active(), wanted)
        self.browser.key("Enter")
        self.wait_for_text("run-0098", "#job-title")
        self.assertEqual(self.js("() => document.activeElement.id"), "main")
        self.tab_to(".back")
        self.browser.key("Enter")
        self.browser.wait_until(TABLE)
        self.assertEqual(self.js("() => document.title"), "Cluster - Perseus")

    def test_everything_that_takes_the_focus_has_a_name(self):
        self.filled(20)
        self.choose("group", "gpu")
        self.assert_focusable_are_named(more_than=20)

    def test_fits_a_narrow_phone(self):
        self.job("a_name_without_any_space_that_is_longer_than_a_phone_is_wide_by_far", labels={"a_label_as_long_as_this_one_is_as_well": "x"})
        self.cluster.history = self.minutes(100, 90)
        self.filled(50, **PHONE)
        self.wait_for_text("2,700 iterations compared", "#cluster-history")
        self.assertFalse(self.js("() => document.querySelector('#jobs').checkVisibility()"))
        self.assertEqual(self.js("() => [...document.querySelectorAll('#cluster-table thead th')].filter((h) => h.checkVisibility()).map((h) => h.textContent)"),
                         ["Job", "State", "Saved", "Age"])
        self.assert_fits_a_phone("main button, main select, main input:not([type=radio]), main .switch label, main summary")

    def test_text_stands_out_from_its_background(self):
        for dark in (False, True):
            with self.subTest(dark=dark):
                self.cluster.history = self.minutes(100, 90)
                self.filled(30, dark=dark)
                self.wait_for_text("2,700 iterations compared", "#cluster-history")
                self.choose("group", "state")
                self.assert_readable()

    def test_print_has_every_row(self):
        self.filled(400)
        rows = "() => document.querySelectorAll('#cluster-table tbody tr[data-job]').length"
        self.assertLess(self.js(rows), 80)
        self.js("() => dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.js(rows), 400)
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(self.js("() => [...document.querySelectorAll('.bar, .facets, .factors')].filter((e) => e.checkVisibility()).length"), 0)
        self.assertTrue(self.js("() => { const box = document.querySelector('.cluster-table'); return box.scrollHeight === box.clientHeight; }"))
        self.browser.call("Emulation.setEmulatedMedia", media="")
        self.js("() => dispatchEvent(new Event('afterprint'))")
        self.assertLess(self.js(rows), 80)

    def test_a_job_and_back(self):
        job = self.cluster.add("planned", 2)
        self.cluster.deploy(job)
        self.open(wait=f"{LIVE} && {TABLE}")
        self.js("() => document.querySelector('#cluster-table tbody a').click()")
        self.browser.wait_until(DRAWN)
        self.assertFalse(self.js("() => Boolean(document.querySelector('.cluster'))"))
        self.js("() => history.back()")
        self.browser.wait_until(TABLE)


if __name__ == "__main__":
    run_tests(ClusterTest, "program")
