#!/usr/bin/env python3
"""The pages of perseus' commands in a real Chromium: on a phone, printed, pointed at.  usage: test_command_pages.py PERSEUS [TEST...]

Exits with 77, which ctest counts as skipped, where there is no Chromium.
"""

import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
import made_pages  # noqa: E402
from chromium import Browser, run_tests  # noqa: E402

PAPER_PX = 718  # A4 without its margins, at 96 dpi; letter is wider
PHONE = {"width": 390, "height": 844, "phone": True}
DRAWN = ("configurations", "comparison", "emulation", "reproduction", "partition", "calibration", "site plan", "trace")
TIMELINES = ("demo",)  # drawings without values to point at


class PagesTest(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="perseus-pages-")
        cls.pages = made_pages.make(cls.program, cls.folder.name)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def js(self, script, *arguments):
        return self.browser.run(f"({script})({', '.join(json.dumps(a) for a in arguments)})")

    def tearDown(self):
        self.browser.call("Emulation.setEmulatedMedia", media="")
        self.assertEqual(self.browser.errors(), [])

    def test_headlines(self):
        headlines = {"reproduction": r"^the fastest plans save -?[\d.]+ %, those of the published method -?[\d.]+ %$",
                     "partition": r"^4 stages, ",
                     "trace": r"^ranks wait [\d.]+ % of a step; worker dp 1, stage 1: 1.50 times as slow as its peers$",
                     "calibration": r"^predicts new plans within [\d.]+ % of time and [\d.]+ % of energy$", "site plan": "^a hall$",
                     "demo": r"^-?[\d.]+ % less energy, -?[\d.]+ % slower; with a straggler -?[\d.]+ % less$"}
        for name, pattern in headlines.items():
            self.browser.look()
            self.browser.open(self.pages[name])
            self.assertRegex(self.js("() => document.querySelector('h1').textContent"), pattern)
            made_from = "main section:last-of-type" if name == "reproduction" else ".inputs"
            self.assertIn("Perseus", self.js("(part) => document.querySelector(part).textContent", made_from))

    def test_drawings_read_on_a_phone(self):
        for name in DRAWN + TIMELINES:
            with self.subTest(page=name):
                self.browser.look(**PHONE)
                self.browser.open(self.pages[name])
                self.assertLessEqual(self.js("() => document.documentElement.scrollWidth"), 390)
                widths = self.js("() => [...document.querySelectorAll('.drawing svg')].map((svg) => svg.getBoundingClientRect().width)")
                self.assertTrue(widths and min(widths) >= 760, widths)  # text of 13 units stays above 10 px
                self.assertTrue(self.js("() => [...document.querySelectorAll('.drawing')].every((d) => d.tabIndex === 0 &&"
                                        " getComputedStyle(d).overflowX === 'auto')"))

    def test_charts_show_values(self):
        for name in DRAWN:
            with self.subTest(page=name):
                self.browser.look()
                self.browser.open(self.pages[name])
                hits = self.js("() => [...document.querySelectorAll('.hit')].map((hit) => { const b = hit.getBoundingClientRect();"
                               " return [hit.querySelector('title')?.textContent, Math.min(b.width, b.height)]; })")
                self.assertGreater(len(hits), 3)
                for text, size in hits:
                    self.assertRegex(text, r": .*\d")
                    self.assertGreaterEqual(size, 10)
                self.js("() => [...document.querySelector('.drawing svg').querySelectorAll('.hit')].at(-1).scrollIntoView({ block: 'center' })")
                on_top = self.js("() => { const hits = [...document.querySelectorAll('.drawing svg')][0].querySelectorAll('.hit');"
                                 " const b = hits[hits.length - 1].getBoundingClientRect();"
                                 " return document.elementFromPoint(b.left + b.width / 2, b.top + b.height / 2)?.classList.contains('hit'); }")
                self.assertTrue(on_top)

    def test_one_picture_has_a_line_for_each_change(self):
        self.browser.look()
        self.browser.open(self.pages["configurations"])
        self.js("() => { window.chart = document.querySelector('.drawing svg'); }")
        lines = ["clocks alone", "+ recomputation", "+ schedule", "+ partition", "+ microbatch size"]
        points = ["+ 0.3 % of time", "everything at maximum clock"]
        names = self.js("() => [...chart.querySelectorAll('text')].map((text) => text.textContent)")
        for name in lines + points + ["0.3 % slower"]:
            self.assertIn(name, names)
        # In the plot and in the legend: stroked paths of one look; the dotted line is the deadline.
        strokes = self.js("() => [...chart.querySelectorAll('path.qn')].map((path) => [path.getAttribute('class'),"
                          " path.getAttribute('stroke-dasharray'), path.getBoundingClientRect().width])")
        looks = {(style, dashes) for style, dashes, width in strokes if width > 60}
        self.assertEqual(len(looks), len(lines), strokes)
        self.assertIn(["q7 qn", "1 4", 0], [[style, dashes, round(width)] for style, dashes, width in strokes])
        tips = self.js("() => [...chart.querySelectorAll('.hit title')].map((title) => title.textContent.split(';')[0])")
        for name in lines + points:
            self.assertIn(name, tips)
        # A later change never needs more: the lowest point of each line is no higher.
        lowest = self.js("""(names) => names.map((name) => Math.min(...[...chart.querySelectorAll('.hit title')]
            .map((title) => title.textContent).filter((text) => text.startsWith(name + ';'))
            .map((text) => Number(text.split(': ').at(-1)))))""", lines)
        self.assertEqual(lowest, sorted(lowest, reverse=True))
        assumed = self.js("() => [...document.querySelector('main section').querySelectorAll('li')].map((item) => item.textContent)")
        self.assertEqual([text.split(": ")[0] for text in assumed], [lines[0], points[0], *lines[1:]])
        for text, assumption in zip(assumed, ["stay as they are", "0.3 % longer", "recompute or not", "runs the schedule",
                                              "layers can move", "of 2 times the size"]):
            self.assertIn(assumption, text.split("Assumes: ")[1])

    def test_print_fits_the_paper(self):
        for name, page in self.pages.items():
            with self.subTest(page=name):
                self.browser.look()
                self.browser.open(page)
                self.browser.look(width=PAPER_PX)
                self.browser.call("Emulation.setEmulatedMedia", media="print")
                self.js("() => dispatchEvent(new Event('beforeprint'))")
                self.browser.settle()
                self.assertLessEqual(self.js("() => document.documentElement.scrollWidth"), PAPER_PX)
                wide = self.js("""(most) => [...document.querySelectorAll('main svg, main canvas, main table, main p, main h2')]
                    .filter((e) => e.getBoundingClientRect().right > most + 1).map((e) => e.outerHTML.slice(0, 120))""", PAPER_PX)
                self.assertEqual(wide, [])
                hidden = self.js("""() => [...document.querySelectorAll('main .table, main .drawing')]
                    .filter((e) => getComputedStyle(e).overflowX !== 'visible').length""")
                self.assertEqual(hidden, 0)
                pdf = self.browser.call("Page.printToPDF", preferCSSPageSize=True)["data"]
                self.assertGreater(len(pdf), 1000)
                self.js("() => dispatchEvent(new Event('afterprint'))")


if __name__ == "__main__":
    run_tests(PagesTest, "program")
