"""Base classes and expressions for tests of the dashboard's pages."""

import json
import subprocess
import tempfile
import unittest

from chromium import Browser
from standin_server import Cluster, Server

PHONE = {"width": 360, "height": 740, "phone": True}
LIVE = "document.documentElement.dataset.connection === 'live'"
DRAWN = "document.querySelector('.frontier-chart canvas') && document.querySelector('.timeline-chart canvas')"
# What a chart shows, as a number that changes with it; read through a copy, since reading a canvas makes Chromium warn.
PIXELS = """(selector) => [...document.querySelectorAll(selector + ' canvas')].reduce((sum, canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer).reduce((s, p) => (s * 31 + p) >>> 0, sum);
}, 7)"""
# Contrast of every visible text to its background, where that is one color: [ratio, text] of the worst.
WORST_CONTRAST = """() => {
  const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgba = (css) => { context.clearRect(0, 0, 1, 1); context.fillStyle = css; context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data]; };
  const luminance = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, w, k) => {
    const v = c[k] / 255; return sum + w * (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); }, 0);
  const behind = (node) => { for (; node; node = node.parentElement) {
    const c = rgba(getComputedStyle(node).backgroundColor); if (c[3] === 255) return c; } return rgba(getComputedStyle(document.documentElement).getPropertyValue('--page')); };
  let worst = [99, ''];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.checkVisibility() || node.closest('script, style, .visually-hidden, .skip, [disabled]')) continue;
    const [a, b] = [luminance(rgba(getComputedStyle(node).color)), luminance(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, node.textContent.trim().slice(0, 40)];
  }
  return worst;
}"""


class PageTest(unittest.TestCase):
    """Helpers for tests of the page on any server: self.server with `url` and close()."""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def tearDown(self):
        errors = self.browser.errors()
        self.browser.events.clear()
        self.browser.open_url("about:blank")
        self.server.close()
        self.assertEqual(errors, [])

    def open(self, job=None, wait=LIVE, **look):
        self.browser.look(**look)
        self.browser.open_url("about:blank")
        self.browser.open_url(self.server.url + (f"#/jobs/{job.id}" if job else ""))
        self.browser.wait_until(wait)

    def opened(self, job, **look):
        self.open(job, f"{LIVE} && {DRAWN}", **look)

    def js(self, script, *arguments):
        return self.browser.run(f"({script})({', '.join(json.dumps(a) for a in arguments)})")

    def text(self, selector="body"):
        return self.js("(s) => document.querySelector(s).innerText", selector)

    def wait_for_text(self, wanted, selector="body"):
        self.browser.wait_until(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(wanted)})")

    def wait_for_point(self, point):
        self.browser.wait_until(f"document.documentElement.dataset.point === '{point}'")
        self.wait_for_text(f"Point {point}", ".timeline-chart")

    def picture(self, chart):
        """What the chart shows once it is drawn, as a number."""
        self.browser.settle()
        return self.js(PIXELS, chart)

    def wait_for_picture(self, chart, picture):
        self.browser.wait_until(f"({PIXELS})({json.dumps(chart)}) === {picture}")

    def wait_for_another_picture(self, chart, picture):
        self.browser.wait_until(f"({PIXELS})({json.dumps(chart)}) !== {picture}")

    def active(self):
        return self.js("() => document.activeElement.innerText || document.activeElement.ariaLabel || document.activeElement.id")

    def tab_to(self, wanted):
        """Presses Tab until the focus is on what matches the selector."""
        for _ in range(60):
            self.browser.key("Tab")
            if self.js("(s) => document.activeElement.matches(s)", wanted):
                self.assertTrue(self.js("() => document.activeElement.matches(':focus-visible')"))
                return
        self.fail(f"Tab does not reach {wanted}")

    def width(self):
        return self.js("() => document.documentElement.scrollWidth")

    def assert_readable(self):
        """Every visible text has at least the contrast that WCAG asks for."""
        ratio, text = self.js(WORST_CONTRAST)
        self.assertGreaterEqual(ratio, 4.5, text)

    def assert_focusable_are_named(self, more_than):
        nodes = self.browser.call("Accessibility.getFullAXTree")["nodes"]
        focusable = [n for n in nodes if not n.get("ignored") and n["role"]["value"] not in ("RootWebArea", "main", "dialog")
                     and any(p["name"] == "focusable" and p["value"]["value"] for p in n.get("properties", []))]
        self.assertGreater(len(focusable), more_than)
        for node in focusable:
            self.assertTrue(node["name"].get("value", "").strip(), node)

    def assert_fits_a_phone(self, controls):
        """The page is as wide as PHONE, and these controls are large enough for touch."""
        self.assertLessEqual(self.width(), PHONE["width"])
        small = self.js("(controls) => [...document.querySelectorAll(controls)].filter((b) => b.checkVisibility())"
                        ".filter((b) => b.getBoundingClientRect().height < 24).map((b) => b.textContent)", controls)
        self.assertEqual(small, [])


class StandInTest(PageTest):
    """The same on a server that the test controls: self.cluster. `program`: perseus_report_sample."""

    program = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory(prefix="perseus-dashboard-")
        subprocess.run([cls.program, cls.folder.name, "4", "8", "60"], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.folder.cleanup()

    def setUp(self):
        self.cluster = Cluster(self.folder.name)
        self.server = Server(self.cluster)
