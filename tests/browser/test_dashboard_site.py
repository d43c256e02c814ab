#!/usr/bin/env python3
"""The dashboard's page of a site's power limits in a real Chromium, on a server that the test controls (standin_server.py).

usage: test_dashboard_site.py SAMPLE_PROGRAM [TEST...]    SAMPLE_PROGRAM: perseus_report_sample
Exits with 77, which ctest counts as skipped, where there is no Chromium.
"""

import os
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from chromium import run_tests  # noqa: E402
from page_cases import LIVE, PHONE, PIXELS, StandInTest  # noqa: E402
from standin_server import fill_site  # noqa: E402

SHOWN = "document.querySelector('[data-domain=\"hall\"] .power-bar')"
CHART = "document.querySelector('#site-history canvas')"
PROOF = "document.querySelector('.proof-table tbody tr')"
JOBS = "() => [...document.querySelectorAll('.gives-table tbody a')].map((a) => a.textContent)"
DOWNLOAD = """async () => {
  const kept = URL.createObjectURL;
  const saved = new Promise((done) => { URL.createObjectURL = (blob) => { blob.text().then(done); return kept(blob); }; });
  [...document.querySelectorAll('#site-proof button')].find((b) => b.textContent === 'Download CSV').click();
  const text = await saved;
  URL.createObjectURL = kept;
  return text;
}"""


class SitePage(StandInTest):
    def site(self, wait=f"{SHOWN} && {CHART} && {PROOF}", jobs=12, racks=0, **look):
        fill_site(self.cluster, jobs, racks=racks)
        self.open_page(f"{LIVE} && {wait}", **look)

    def open_page(self, wait, **look):
        self.browser.look(**look)
        self.browser.open_url("about:blank")
        self.browser.open_url(self.server.url + "#/site")
        self.browser.wait_until(wait)

    def change(self, **hall):
        with self.cluster.lock:
            self.cluster.site["domains"][0] = self.cluster.site["domains"][0] | hall

    def row(self, domain):
        return self.text(f".domain-table [data-domain='{domain}']")

    # Entry

    def test_the_entry_is_there_if_there_is_a_site(self):
        self.cluster.add("run")
        self.open()
        self.assertFalse(self.js("() => document.querySelector('[data-page=site]').checkVisibility()"))
        fill_site(self.cluster)
        self.open()
        self.browser.wait_until("document.querySelector('[data-page=site]').checkVisibility()")
        self.js("() => document.querySelector('[data-page=site]').click()")
        self.browser.wait_until(SHOWN)
        self.assertEqual(self.js("() => document.querySelector('[data-page=site]').ariaCurrent"), "page")
        self.assertEqual(self.js("() => document.title"), "Site - Perseus")

    def test_without_a_site(self):
        self.open_page(f"{LIVE} && document.querySelector('.site .empty-line')?.textContent.includes('perseus site set')")
        self.browser.events.clear()  # Chromium notes the status 404

    # What is shown

    def test_domains(self):
        self.site()
        self.assertEqual(self.js("() => [...document.querySelectorAll('.domain-table tbody tr')].map((row) => row.dataset.domain)"), ["hall", "row a", "row b"])
        hall = self.row("hall")
        for wanted in ("60 kW", "58.26 kW", "57.06 kW", "76.5 kW of 78 kW", "slower"):
            self.assertIn(wanted, hall)
        self.assertIn("none", self.row("row a"))
        widths = self.js("() => [...document.querySelectorAll('[data-domain=\"hall\"] .power-bar > *')].map((part) => [part.className, "
                         "parseFloat(part.style.width || part.style.left)])")
        parts = dict(map(tuple, widths))
        self.assertEqual(list(parts), ["counted", "reported", "granted", "limit"])
        self.assertAlmostEqual(parts["counted"] / parts["limit"], 58.26 / 60, 3)
        prices = self.text(".prices")
        self.assertRegex(prices, r"1 % more in hall \(0\.6 kW\) shortens iterations by 0\.\d+ % on average\.")
        self.assertIn("More watts in row b bring nothing: its limit does not bind.", prices)
        self.change(missing_w=2500)
        self.wait_for_text("hall lacks 2.5 kW for what no grant controls.", ".prices")
        self.change(gives=[{"least_rate": 0.75, "jobs": 2}])
        self.wait_for_text("hall lacks 2.5 kW for its jobs to keep their least rates.", ".prices")

    def test_reservations(self):
        self.site()
        self.assertFalse(self.js("() => document.querySelector('#site-reserved').checkVisibility()"))
        now_s = time.time()
        with self.cluster.lock:
            self.cluster.site |= {"now_s": now_s, "reservations": [
                {"job": name, "domain": "row a", "accelerators": 64, "power_w": 51_200, "counted_w": 51_200, "since_s": now_s - 60,
                 "expires_s": now_s + 300, "ready": ready, "by": "0123456789"} for name, ready in (("llama-17", True), ("<b>", False))]}
        self.change(reserved_w=102_400)
        self.wait_for_text("2 jobs admitted and not started: 102.4 kW beside 58.26 kW", "#site-reserved")
        row = self.text("[data-reserved='llama-17']")
        for wanted in ("row a", "64", "51.2 kW", "may start", "5 min"):
            self.assertIn(wanted, row)
        self.assertIn("waits for other jobs", self.text("[data-reserved='<b>']"))
        with self.cluster.lock:
            self.cluster.site["reservations"] = []
        self.browser.wait_until("!document.querySelector('#site-reserved').checkVisibility()")

    def test_who_gives(self):
        self.site()
        names = self.js(JOBS)
        self.assertEqual(names[:2], ["run-00", "run-01"], "the one that gives most comes first")
        self.assertEqual(names[-1], "run-11")
        last = self.text(".gives-table [data-job='j_site0011']")
        self.assertIn("not controlled", last)
        first = self.text(".gives-table [data-job='j_site0000']")
        for wanted in ("0.65 kW", "97.00 %", "3.00 % slower", "granted"):
            self.assertIn(wanted, first)
        tiers = self.text("#site-gives .cards")
        for wanted in ("no least rate", "at least 75.00 %", "at least 90.00 %", "4 jobs"):
            self.assertIn(wanted, tiers)
        self.js("() => [...document.querySelectorAll('.gives-table thead button')].find((b) => b.textContent === 'Rate').click()")
        self.assertEqual(self.js(JOBS)[1], "run-10", "the slowest one first")
        self.assertEqual(self.js("() => document.querySelector('.gives-table [aria-sort]').ariaSort"), "ascending")

    def test_thousands_of_jobs(self):
        self.site(jobs=3000)
        self.assertLess(self.js("() => document.querySelectorAll('.gives-table tbody tr').length"), 60)
        self.assertEqual(self.js("() => document.querySelector('.gives-table table').getAttribute('aria-rowcount')"), "3001")

    def test_no_figure_of_a_domain_is_cut(self):
        cut = """() => [...document.querySelectorAll('.domain-table th, .domain-table td')].filter((c) => c.checkVisibility() && c.scrollWidth > c.clientWidth)
            .map((c) => c.textContent)"""
        fill_site(self.cluster)
        self.change(guard_w=1250, metered_w=71_320, counted_w=58_260)
        for width in (1280, 1181, 1180, 900, 720, 360):
            self.open_page(f"{LIVE} && {SHOWN}", width=width, height=800)
            self.assertEqual(self.js(cut), [], width)

    def test_hundreds_of_domains(self):
        self.site(racks=400)
        self.assertLess(self.js("() => document.querySelectorAll('.domain-table tbody tr').length"), 40)
        self.assertEqual(self.js("() => document.querySelector('.domain-table table').getAttribute('aria-rowcount')"), "404")
        self.js("() => { document.querySelector('.domain-table').scrollTop = 1e6; }")
        self.browser.wait_until("document.querySelector('[data-domain=\"rack 399\"]')")
        prices = self.text(".prices").splitlines()
        self.assertEqual(len(prices), 9, prices)
        self.assertIn("1 % more in hall", prices[0])
        self.assertIn("1 % more in rack", prices[1])
        self.assertEqual(prices[-1], "313 more limits where watts are worth less, and 81 limits of 402 that do not bind.")
        self.assertEqual(self.js("() => document.getElementById('proof-domain').value"), "hall", "not all of them at first")
        with self.cluster.lock:
            for domain in self.cluster.site["domains"][3:]:
                domain["limit_w"] -= 100
                domain["counted_w"] = 4990
        self.change(limit_w=45_000)
        self.wait_for_text("limit 45 kW, before 60 kW", ".site-event")
        self.assertEqual(self.js("() => document.querySelectorAll('.site-event .card').length"), 8)
        self.assertIn("And 393 domains more, 91 of all above their limits.", self.text(".site-event"))
        self.assertEqual(self.js("() => document.querySelector('.site-event .card b').textContent"), "hall")

    def test_only_changes_are_sent(self):
        self.site(jobs=300)
        self.browser.wait_until("document.querySelector('.gives-table [data-job=\"j_site0000\"]')")
        before = self.cluster.site_rows_sent
        with self.cluster.lock:
            self.cluster.site["jobs"][0] = self.cluster.site["jobs"][0] | {"baseline_w": 6750}
            del self.cluster.site["jobs"][1]
        self.change(counted_w=59_500)
        self.browser.wait_until("document.querySelector('.gives-table [data-job=\"j_site0000\"]').innerText.includes('2 kW')")
        self.assertEqual(self.js("() => document.querySelector('.gives-table table').getAttribute('aria-rowcount')"), "300")
        self.browser.wait_until("document.querySelector('[data-domain=\"hall\"]').innerText.includes('59.5 kW')")
        self.assertIn("31 kW", self.row("row b"))
        self.assertEqual(self.cluster.site_rows_sent - before, 2)
        with self.cluster.lock:
            self.cluster.site_versions.clear()  # another server answers
        self.change(counted_w=59_600)
        self.browser.wait_until("document.querySelector('[data-domain=\"hall\"]').innerText.includes('59.6 kW')")
        self.assertEqual(self.js("() => document.querySelector('.gives-table table').getAttribute('aria-rowcount')"), "300")

    def test_guards(self):
        self.site()
        self.assertFalse(self.js("() => document.querySelector('.domain-table .guard-cell').checkVisibility()"))
        self.change(guard_w=1250)
        with self.cluster.lock:
            for entry in self.cluster.forecast[2:]:
                entry["guard_w"] = 640
        self.browser.wait_until("document.querySelector('.domain-table .guard-cell').checkVisibility()")
        self.assertIn("1.25 kW", self.row("hall"))
        self.js("() => document.querySelector('[name=site-span][value=day]').click()")
        self.browser.wait_until("document.querySelector('.site-chart').getAttribute('aria-valuemax') > 180")
        self.js("() => document.querySelector('.site-chart').focus()")
        self.browser.key("End")
        self.browser.wait_until("document.querySelector('.site-chart').getAttribute('aria-valuetext').includes('guard 0.64 kW')")

    # An event as it unfolds

    def test_an_event(self):
        self.site()
        self.assertFalse(self.js("() => document.querySelector('.site-event').checkVisibility()"))
        with self.cluster.lock:
            for job in self.cluster.site["jobs"][:7]:
                job["granted_w"] = 3000
        self.change(limit_w=45_000, metered_limit_w=58_500)
        self.wait_for_text("limit 45 kW, before 60 kW", ".site-event")
        event = self.text(".site-event")
        self.assertIn("counted 58.26 kW: 13.26 kW above it", event)
        self.assertIn("7 jobs of 12 not confirmed yet: run-00, run-01, run-02, run-03, run-04 …", event)
        self.assertIn("not confirmed yet", self.text(".gives-table [data-job='j_site0000']"))
        self.assertTrue(self.js("() => document.querySelector('[data-domain=\"hall\"] .power-bar').matches('.over')"))
        with self.cluster.lock:
            for job in self.cluster.site["jobs"]:
                job["counted_w"] = min(job["counted_w"], job.get("granted_w", job["counted_w"]))
        self.change(counted_w=44_000)
        self.wait_for_text("counted 44 kW: within it after", ".site-event")
        self.assertIn("all 12 jobs have confirmed", self.text(".site-event"))
        self.js("() => document.querySelector('[name=site-span][value=\"10 minutes\"]').click()")
        self.wait_for_text("As this page has seen it since it was opened", "#site-history")
        self.browser.wait_until("document.querySelector('.site-chart').getAttribute('aria-valuetext').includes('limit 45 kW')")

    def test_what_counts_above_a_limit_is_shown_at_once(self):
        fill_site(self.cluster)
        self.change(counted_w=61_000)
        self.open_page(f"{LIVE} && {SHOWN}")
        self.wait_for_text("counted 61 kW: 1 kW above it", ".site-event")

    # Past and ahead

    def test_history_and_forecast(self):
        self.site()
        chart = self.js("() => document.querySelector('.site-chart').getAttribute('aria-valuetext')")
        for wanted in ("limit 60 kW", "without limits 66 kW", "planned 58 kW", "counted 59 kW", "reported 57.", "metered 76 kW", "metered limit 78 kW", "3.40 % slower"):
            self.assertIn(wanted, chart)
        drawn = self.picture(".site-chart")
        self.js("() => document.querySelector('.site-chart').focus()")
        self.browser.key("End")
        ahead = self.js("() => document.querySelector('.site-chart').getAttribute('aria-valuetext')")
        for wanted in ("from ", "limit 45 kW", "expected 45 kW", "31.82 % slower"):
            self.assertIn(wanted, ahead)
        self.browser.key("Home")
        self.assertNotIn("from", self.js("() => document.querySelector('.site-chart').getAttribute('aria-valuetext')"))
        self.js("() => document.querySelector('[name=site-span][value=day]').click()")
        self.browser.wait_until("document.querySelector('.site-chart').getAttribute('aria-valuemax') > 180")
        self.wait_for_another_picture(".site-chart", drawn)
        self.js("() => { const select = document.getElementById('site-domain'); select.value = 'row a'; select.dispatchEvent(new Event('change')); }")
        self.wait_for_text("Nothing is recorded here", "#site-history")
        self.js("() => { const select = document.getElementById('site-domain'); select.value = 'row b'; select.dispatchEvent(new Event('change')); }")
        self.browser.wait_until("document.querySelector('.site-chart')?.getAttribute('aria-valuetext').includes('limit 30 kW')")

    # Proof

    def test_proof(self):
        self.site()
        rows = self.js("() => [...document.querySelectorAll('.proof-table tbody tr:not(.gap)')].slice(0, 2).map((row) => row.innerText)")
        for wanted in ("hall", "60 kW", "66 kW"):
            self.assertIn(wanted, rows[1])
        self.assertIn("row b", rows[0], "the last step comes first")
        before = self.js("() => document.querySelector('.proof-table table').getAttribute('aria-rowcount')")
        text = self.js(DOWNLOAD)
        self.assertTrue(text.startswith("start_s,domain,limit_w\n"), text[:80])
        self.assertEqual(len(text.splitlines()), int(before))
        self.js("""(time) => { const input = document.getElementById('proof-from'); input.value = time; input.dispatchEvent(new Event('change')); }""",
                time.strftime("%Y-%m-%dT%H:%M", time.localtime(time.time() - 600)))
        self.browser.wait_until(f"document.querySelector('.proof-table table').getAttribute('aria-rowcount') < {before}")
        self.js("() => { const select = document.getElementById('proof-step'); select.value = 'hour'; select.dispatchEvent(new Event('change')); }")
        self.wait_for_text("Nothing is recorded in this time.", "#site-proof")

    # Elsewhere

    def test_an_alert_about_a_domain(self):
        job = self.cluster.add("run")
        now_s = time.time()
        self.cluster.alerts = [{"alert": "site_over_limit", "state": "raised", "domain": "hall", "text": "its jobs may draw 61 kW; the limit leaves 60 kW",
                                "since_s": now_s - 600, "raised_at_s": now_s - 300}]
        self.open(wait=f"{LIVE} && !document.getElementById('alert-banner').hidden")
        self.assertIn("1 alert: site over its limit 1", self.text("#alert-banner"))
        self.js("() => { location.hash = '#/alerts'; }")
        self.browser.wait_until("document.querySelector('.alert-list li')")
        self.assertEqual(self.js("() => document.querySelector('.alert-list li a').getAttribute('href')"), "#/site")
        item = self.text(".alert-list li")
        for wanted in ("site over its limit", "hall", "the limit leaves 60 kW"):
            self.assertIn(wanted, item)
        self.js("() => { const words = document.getElementById('alert-words'); words.value = 'hall'; words.dispatchEvent(new Event('input')); }")
        self.assertEqual(self.js("() => document.querySelectorAll('.alert-list li').length"), 1)
        self.open(job)
        self.browser.wait_until("document.querySelector('.job-title')")
        self.assertTrue(self.js("() => document.getElementById('alert-banner').hidden"), "it is not about this job")

    def test_the_page_of_a_job(self):
        job = self.cluster.add("run", 1)
        self.cluster.deploy(job)
        job.site = {"domain": "row a", "least_rate": 0.75, "priority": 2, "state": "granted", "granted_w": 4000, "counted_w": 5200, "rate": 0.9,
                    "rate_lost": 0.1, "correction": 1.02}
        self.open(job, f"{LIVE} && document.querySelector('.job-head .inputs')?.innerText.includes('domain')")
        head = self.text(".job-head .inputs")
        for wanted in ("domain row a", "least rate 75.00 %", "priority 2", "grant 4 kW, not confirmed: counts as 5.2 kW", "by limits 10.00 % slower", "correction × 1.020"):
            self.assertIn(wanted, head)
        job.site = {"domain": "hall", "least_rate": 0, "priority": 1, "state": "fixed", "reason": "rank 3 sets no clocks", "counted_w": 5200}
        self.cluster.deploy(job)
        self.wait_for_text("grant not controlled (rank 3 sets no clocks): counts as 5.2 kW", ".job-head .inputs")
        self.assertNotIn("priority", self.text(".job-head .inputs"))

    # Everybody

    def test_dark_phone_and_keyboard(self):
        self.site(dark=True)
        self.assert_readable()
        self.assert_focusable_are_named(20)
        self.tab_to(".domain-table")
        self.tab_to(".site-chart")
        self.tab_to(".gives-table")
        self.tab_to("#proof-from")
        self.site(**PHONE)
        self.assert_fits_a_phone("#site-history .switch label, #site-proof button, .gives-table thead button")
        self.assert_readable()

    def test_print(self):
        self.site()
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        try:
            self.assertFalse(self.js("() => document.querySelector('#site-proof button').checkVisibility()"))
            self.assertTrue(self.js("() => document.querySelector('.domain-table').checkVisibility()"))
        finally:
            self.browser.call("Emulation.setEmulatedMedia", media="")


if __name__ == "__main__":
    run_tests(SitePage, "program")
