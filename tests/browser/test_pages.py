#!/usr/bin/env python3
"""The dashboard's pages beside jobs in a real Chromium, on a server that the test controls (standin_server.py).

usage: test_pages.py SAMPLE_PROGRAM [TEST...]    SAMPLE_PROGRAM: perseus_report_sample
Exits with 77, which ctest counts as skipped, where there is no Chromium.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from chromium import run_tests  # noqa: E402
from page_cases import LIVE, PHONE  # noqa: E402
from test_cluster import ClusterCase  # noqa: E402

LISTED = "document.querySelector('.alert-list li')"
ITEMS = "() => [...document.querySelectorAll('.alert-list[aria-label^=Raised] li')].map((li) => li.innerText.replace(/\\s+/g, ' '))"
NO_PERMISSION = "3 of its ranks cannot set their clocks: no permission"


class AlertsTest(ClusterCase):
    def open_alerts(self, wait=LISTED, **look):
        self.open(wait=LIVE, **look)
        self.js("() => { location.hash = '#/alerts'; }")
        self.browser.wait_until(wait)

    def raised(self):
        gpt, bert = self.job("gpt"), self.job("bert")
        self.cluster.alert(gpt, "no_permission", NO_PERMISSION)
        self.cluster.alert(bert, "over_power", "the job draws 10 kW; its power cap: 9 kW", age_s=7200)
        return gpt, bert

    def ask_again(self):
        self.js("() => window.dispatchEvent(new Event('online'))")  # a new connection loads everything

    def test_alerts_are_listed_with_job_and_reason(self):
        self.raised()
        self.open_alerts()
        self.assertEqual(self.js(ITEMS), ["over the power cap bert the job draws 10 kW; its power cap: 9 kW for 2 h",
                                          f"no permission to set clocks gpt {NO_PERMISSION} for 10 min"])
        self.assertEqual(self.text(".pages [data-page=alerts]"), "Alerts2")
        self.assertEqual(self.js("() => document.querySelector('.pages [aria-current]').textContent"), "Alerts2")
        self.assertEqual(self.js("() => document.title"), "Alerts - Perseus")

    def test_words_and_kind_choose(self):
        self.raised()
        self.open_alerts()
        self.js("() => document.querySelector('#alert-words').focus()")
        self.browser.type("gpt")
        self.browser.wait_until("document.querySelectorAll('.alert-list li').length === 1")
        self.assertEqual(self.text("main .list-summary"), "1 of 2 alerts")
        self.js("() => { const kind = document.querySelector('#alert-kind'); kind.value = 'over_power'; kind.dispatchEvent(new Event('change')); }")
        self.wait_for_text("No alert matches.", "main")

    def test_without_alerts_the_page_says_so_and_there_is_no_banner(self):
        self.job("gpt")
        self.open_alerts(wait="document.querySelector('main').innerText.includes('No alerts')")
        self.assertEqual(self.text(".pages [data-page=alerts]"), "Alerts")
        self.js("() => { location.hash = '#/'; }")
        self.assertTrue(self.js("() => document.querySelector('#alert-banner').hidden"))

    def test_the_banner_counts_and_names_the_job_s_own(self):
        gpt, bert = self.raised()
        self.open(wait=f"{LIVE} && !document.querySelector('#alert-banner').hidden")
        self.assertIn("2 alerts: over the power cap 1, no permission to set clocks 1", self.text("#alert-banner"))
        self.js("(id) => { location.hash = `#/jobs/${id}`; }", gpt.id)
        self.wait_for_text(f"no permission to set clocks: {NO_PERMISSION}", "#alert-banner")
        self.assertNotIn("10 kW", self.text("#alert-banner"))

    def test_a_resolved_alert_goes_to_the_resolved_ones_and_the_focus_stays(self):
        gpt, _ = self.raised()
        self.open_alerts()
        self.js("() => document.querySelector('.alert-list li a').focus()")
        self.cluster.resolve(gpt)
        self.ask_again()
        self.browser.wait_until("document.querySelectorAll('.alert-list[aria-label^=Raised] li').length === 1")
        self.assertEqual(self.active(), "bert")
        self.js("() => { document.querySelector('article details').open = true; }")
        self.wait_for_text("resolved", ".alert-list[aria-label^=Resolved]")
        self.assertIn(NO_PERMISSION, self.text(".alert-list[aria-label^=Resolved]"))

    def test_many_alerts_come_in_pages(self):
        for k in range(130):
            self.cluster.alert(self.job(f"run-{k}"), "plan_not_kept", "iterations take 2 s; planned: 1 s")
        self.open_alerts()
        self.browser.wait_until("document.querySelectorAll('.alert-list li').length === 130")
        self.assertIn("130", self.text(".pages [data-page=alerts]"))

    def test_texts_are_only_text(self):
        self.cluster.alert(self.job("<b>gpt</b>"), "no_permission", "<img src=x onerror=alert(1)>")
        self.open_alerts()
        self.assertIn("<b>gpt</b>", self.js(ITEMS)[0])
        self.assertIn("<img src=x", self.js(ITEMS)[0])

    def test_by_keyboard(self):
        gpt, _ = self.raised()
        self.open(wait=LIVE)
        self.tab_to(".pages [data-page=alerts]")
        self.browser.key("Enter")
        self.browser.wait_until(LISTED)
        self.tab_to(f".alert-list li[data-job='{gpt.id}'] a")
        self.browser.key("Enter")
        self.browser.wait_until("document.documentElement.dataset.view === 'job'")

    def test_on_a_phone_light_and_dark(self):
        self.raised()
        for dark in (False, True):
            for hash_ in ("#/alerts", "#/"):
                self.open(wait=LIVE, **PHONE, dark=dark)
                self.js("(hash) => { location.hash = hash; }", hash_)
                self.browser.wait_until(LISTED if hash_ == "#/alerts" else "!document.querySelector('#alert-banner').hidden")
                self.assertLessEqual(self.width(), 360)
                self.assert_readable()


HOSTS = "() => [...document.querySelectorAll('.host-table tbody tr:not(.gap)')].map((r) => [...r.children].filter((c) => c.checkVisibility()).map((c) => c.textContent).join(' | '))"


class HostsTest(ClusterCase):
    def made(self, count=0):
        gpt, bert = self.job("gpt"), self.job("bert")
        with self.cluster.lock:
            self.cluster.hosts = [
                {"host": "node-2", "job": gpt.id, "job_name": "gpt", "ranks": 8, "wanted_least_mhz": 1200, "wanted_most_mhz": 1410,
                 "set_least_mhz": 1200, "set_most_mhz": 1410, "clocks_failed": 3, "clocks_late": 1, "throttled_iterations": 12, "reporting": 8},
                {"host": "node-10", "job": bert.id, "job_name": "bert", "ranks": 4, "without_control": 4, "control_reason": "no permission",
                 "silent": 4},
                *({"host": f"x-{k:04}", "job": bert.id, "ranks": 8, "clocks_failed": 0, "reporting": 8} for k in range(count))]
        return gpt, bert

    def open_hosts(self, **look):
        self.open(wait=LIVE, **look)
        self.js("() => { location.hash = '#/hosts'; }")
        self.browser.wait_until("document.querySelector('.host-table tbody tr')")

    def test_hosts_are_listed_sorted_and_chosen(self):
        self.made()
        self.open_hosts()
        node_2 = "node-2 | gpt | 8 |  | 1,200-1,410 MHz | 1,200-1,410 MHz | 3 | 1 | 12 | none"
        node_10 = "node-10 | bert | 4 | 4 |  | no reports |  |  |  | none"
        self.assertEqual(self.js(HOSTS), [node_10, node_2])
        self.assertEqual(self.js("() => document.title"), "Hosts - Perseus")
        self.js("() => [...document.querySelectorAll('.host-table th button')].find((b) => b.textContent === 'Failed').click()")
        self.assertEqual(self.js(HOSTS), [node_2, node_10], "most failures first; not known comes last")
        self.assertEqual(self.js("() => document.querySelector('.host-table th[aria-sort]').textContent"), "Failed")
        self.js("() => document.querySelector('#host-words').focus()")
        self.browser.type("bert")
        self.browser.wait_until("document.querySelectorAll('.host-table tbody tr').length === 1")
        self.assertEqual(self.text("main .list-summary"), "1 of 2 rows")

    def test_thousands_of_hosts_come_in_pages_and_only_visible_ones_are_elements(self):
        self.made(3000)
        self.open_hosts()
        self.browser.wait_until("document.querySelector('main .list-summary').textContent === '3,002 rows'")
        self.assertLess(len(self.js(HOSTS)), 80)
        self.js("() => { const s = document.querySelector('#host-trouble'); s.value = 'trouble'; s.dispatchEvent(new Event('change')); }")
        self.assertEqual(len(self.js(HOSTS)), 2)

    def test_on_a_phone_light_and_dark(self):
        self.made(20)
        for dark in (False, True):
            self.open_hosts(**PHONE, dark=dark)
            self.assertLessEqual(self.width(), 360)
            self.assert_readable()


EVENTS = "() => [...document.querySelectorAll('.event-list li')].map((li) => [...li.children].slice(1).map((part) => part.innerText).join(' | '))"


class EventsTest(ClusterCase):
    def made(self):
        gpt, bert = self.job("gpt"), self.job("bert")
        with self.cluster.lock:
            self.cluster.say(gpt, "policy_set", "power cap 250 kW set", "alice")
            self.cluster.say(bert, "plan_dropped", "rank 3 dropped plan 5", "rank 3")
            self.cluster.say(bert, "plan_deployed", "plan 6 deployed")
        return gpt, bert

    def open_events(self, **look):
        self.open(wait=LIVE, **look)
        self.js("() => { location.hash = '#/events'; }")
        self.browser.wait_until("document.querySelector('.event-list li')")

    def test_events_of_all_jobs_are_listed_with_their_author(self):
        self.made()
        self.open_events()
        self.assertEqual(self.js(EVENTS)[:3], ["bert | plan 6 deployed | server", "bert | rank 3 dropped plan 5 | rank 3",
                                               "gpt | power cap 250 kW set | alice"])
        self.assertEqual(self.js("() => document.querySelector('.pages [aria-current]').textContent"), "Events")
        self.assertEqual(self.js("() => document.title"), "Events - Perseus")

    def test_words_kind_and_author_choose(self):
        self.made()
        self.open_events()
        self.js("() => { const by = document.querySelector('#event-by'); by.value = 'alice'; by.dispatchEvent(new Event('change')); }")
        self.assertEqual(self.js(EVENTS), ["gpt | power cap 250 kW set | alice"])
        self.js("() => { const kind = document.querySelector('#event-kind'); kind.value = 'plan_dropped'; kind.dispatchEvent(new Event('change')); }")
        self.wait_for_text("No event matches.", "main")

    def test_many_events_come_in_pages_and_new_ones_keep_the_focus(self):
        gpt, _ = self.made()
        with self.cluster.lock:
            for k in range(120):
                self.cluster.say(gpt, "policy_set", f"power cap {k} W set", "<b>alice</b>")
        self.open_events()
        self.browser.wait_until("document.querySelectorAll('.event-list li').length > 120")
        self.assertIn("<b>alice</b>", self.js(EVENTS)[0])
        self.js("() => document.querySelector('.event-list li a').focus()")
        with self.cluster.lock:
            self.cluster.say(gpt, "job_finished", "finished", "alice")
        self.js("() => window.dispatchEvent(new Event('online'))")
        self.browser.wait_until("document.querySelector('.event-list li').innerText.includes('finished')")
        self.assertEqual(self.js("() => document.activeElement.closest('li').dataset.key"), f"{gpt.id} {len(gpt.events) - 1}")

    def test_the_activity_of_a_job_names_who_acted(self):
        gpt, _ = self.made()
        self.open(wait=LIVE)
        self.js("(id) => { location.hash = `#/jobs/${id}`; }", gpt.id)
        self.wait_for_text("power cap 250 kW set by alice", ".activity")

    def test_on_a_phone_light_and_dark(self):
        self.made()
        for dark in (False, True):
            self.open_events(**PHONE, dark=dark)
            self.assertLessEqual(self.width(), 360)
            self.assert_readable()


if __name__ == "__main__":
    run_tests(ClusterCase, "program")
