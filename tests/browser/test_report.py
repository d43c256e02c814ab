#!/usr/bin/env python3
"""report.html and the SVG files in a real Chromium.  usage: test_report.py SAMPLE_PROGRAM [TEST...]

SAMPLE_PROGRAM writes the reports (tests/browser/report_sample_main.cpp). Exits with 77, which ctest counts as skipped,
where there is no Chromium.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from chromium import Browser, run_tests  # noqa: E402

SHAPES = {"small": (2, 3, 12, 0.5), "middle": (8, 24, 400, 3.9), "huge": (64, 512, 24, 80)}
LATE = (4, 12, 40, 3.9, 0.012)
PHONE = {"width": 390, "height": 844, "phone": True}

# Reads what an element's canvases show through a copy: reading a canvas itself makes Chromium warn.
COPIES = """(selector) => [...document.querySelectorAll(selector + ' canvas')].map((canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  return new Uint32Array(copy.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
})"""
# Number of different colors: 1 is an empty drawing.
COLORS = f"(selector) => new Set(({COPIES})(selector).flatMap((pixels) => [...pixels.filter((_, k) => k % 7 === 0)])).size"
# A number that changes with the drawing.
PIXELS = f"(selector) => ({COPIES})(selector).reduce((sum, pixels) => pixels.reduce((s, p) => (s * 31 + p) >>> 0, sum), 7)"


class ReportTest(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="perseus-report-")
        for name, shape in (*SHAPES.items(), ("late", LATE)):
            subprocess.run([cls.program, os.path.join(cls.folder.name, name), *map(str, shape)], check=True,
                           stdout=subprocess.DEVNULL)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def open(self, shape, file="report.html", **look):
        self.browser.look(**look)
        self.browser.open(os.path.join(self.folder.name, shape, file))

    def js(self, script, *arguments):
        return self.browser.run(f"({script})({', '.join(json.dumps(a) for a in arguments)})")

    def text(self, selector):
        return self.js("(s) => document.querySelector(s).textContent", selector)

    def titles(self):
        return self.js("() => [...document.querySelectorAll('.panel-title')].map((t) => t.textContent)")

    def point(self):
        return int(self.js("() => document.documentElement.dataset.point"))

    def points(self):
        return self.js("() => JSON.parse(document.getElementById('perseus-data').textContent).points.time_s.length")

    def tearDown(self):
        self.assertEqual(self.browser.errors(), [])

    def printed_points(self):
        return self.js("() => [...document.querySelectorAll('#points tbody tr')].filter((r) => r.checkVisibility()).map((r) => Number(r.dataset.point))")

    def test_print_has_every_row_of_a_short_table(self):
        self.open("huge")
        self.js("() => dispatchEvent(new Event('beforeprint'))")
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.browser.settle()
        self.assertEqual(self.printed_points(), list(range(self.points())))
        self.assertFalse(self.js("() => document.querySelector('#points .note').checkVisibility()"))
        self.browser.call("Emulation.setEmulatedMedia", media="")

    def test_print_has_some_rows_of_a_long_table_and_the_chosen_one(self):
        self.open("middle")
        points = self.points()
        self.assertGreater(points, 200)
        self.js("() => document.querySelector('#points .table').focus()")
        self.browser.key("Home")
        for _ in range(3):
            self.browser.key("ArrowDown")
        on_screen = self.printed_points()
        self.js("() => dispatchEvent(new Event('beforeprint'))")
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.browser.settle()
        shown, step = self.printed_points(), -(-points // 60)
        self.assertEqual(shown, sorted({3, *range(points - 1, -1, -step)}))
        self.assertLessEqual(len(shown), 61)
        self.assertEqual(self.text("#points .note"), f"{len(shown)} of {points} points: one in {step} from the fastest, {points - 1}, on, and the chosen one, 3. "
                                                     "The CSV file has all of them.")
        self.assertTrue(self.js("() => document.querySelector('#points .note').checkVisibility()"))
        self.assertTrue(self.js("() => { const box = document.querySelector('#points .table'); return box.scrollHeight === box.clientHeight; }"))
        self.browser.call("Emulation.setEmulatedMedia", media="")
        self.js("() => dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.printed_points(), on_screen)

    def test_draws_without_errors_or_requests(self):
        for shape in SHAPES:
            for look in ({}, {"dark": True}, PHONE):
                with self.subTest(shape=shape, **look):
                    self.open(shape, **look)
                    self.assertEqual(self.js("() => document.documentElement.dataset.ready"), "true")
                    self.assertEqual(self.browser.errors(), [])
                    requests = self.browser.requests()
                    self.assertEqual(len(requests), 1, requests)
                    self.assertTrue(requests[0].startswith("file://"))
                    self.assertGreater(self.js(COLORS, ".frontier-chart"), 5)
                    self.assertGreater(self.js(COLORS, ".timeline-chart"), 5)

    def test_nothing_leaves_the_page_even_if_it_tried(self):
        self.open("small")
        blocked = self.js("() => fetch('file:///etc/hostname').then(() => false, () => true)")
        self.assertTrue(blocked)
        self.assertTrue(self.browser.errors())  # the content policy reports it on the console
        self.browser.events.clear()

    def test_dark_and_light_differ(self):
        seen = []
        for dark in (False, True):
            self.open("small", dark=dark)
            seen.append((self.js("() => getComputedStyle(document.body).backgroundColor"), self.js(PIXELS, ".timeline-chart")))
        self.assertNotEqual(seen[0][0], seen[1][0])
        self.assertNotEqual(seen[0][1], seen[1][1])
        self.browser.look(dark=False)  # and a change while the page is open is followed
        self.browser.settle()
        self.assertEqual(self.js(PIXELS, ".timeline-chart"), seen[0][1])

    def test_fits_a_phone(self):
        for shape in SHAPES:
            with self.subTest(shape=shape):
                self.open(shape, **PHONE)
                self.assertLessEqual(self.js("() => document.documentElement.scrollWidth"), 390)
                self.assertGreater(self.js("() => document.querySelector('.timeline-chart').clientWidth"), 300)

    def test_starts_at_the_fastest_point(self):
        self.open("middle")
        last = self.points() - 1
        self.assertEqual(self.point(), last)
        before, after = self.titles()
        self.assertTrue(before.startswith("Everything at maximum clock"))
        self.assertTrue(after.startswith(f"Point {last} "), after)

    def test_times_computed_by_the_page_are_the_planners(self):
        for shape in (*SHAPES, "late"):
            with self.subTest(shape=shape):
                self.open(shape)
                title = self.titles()[1]
                shown = self.text("#timeline output").split(": ")[1]
                self.assertIn(shown, title)

    def test_chart_is_a_slider_for_the_keyboard(self):
        self.open("middle")
        last = self.points() - 1
        self.js("() => document.querySelector('.frontier-chart').focus()")
        drawn = self.js(PIXELS, ".timeline-chart")
        self.browser.key("ArrowRight")
        self.assertEqual(self.point(), last - 1)
        self.browser.key("End")
        self.assertEqual(self.point(), 0)
        self.assertTrue(self.titles()[1].startswith("Point 0 "), self.titles())
        self.assertNotEqual(self.js(PIXELS, ".timeline-chart"), drawn)
        self.assertIn("Point 0:", self.js("() => document.querySelector('.frontier-chart').getAttribute('aria-valuetext')"))
        self.browser.key("Home")
        self.assertEqual(self.point(), last)
        self.assertEqual(self.js(PIXELS, ".timeline-chart"), drawn)

    def test_a_click_on_the_frontier_chooses(self):
        self.open("middle")
        box = self.js("() => { const b = document.querySelector('.frontier-chart').getBoundingClientRect();"
                      " return [b.left, b.top, b.width, b.height]; }")
        x, y = box[0] + 0.5 * box[2], box[1] + 0.8 * box[3]
        self.browser.move(x, y)
        self.assertIn("Point", self.text(".frontier-chart .tooltip"))
        hovered = self.text(".frontier-chart .tooltip strong")
        self.browser.click(x, y)
        self.assertEqual(hovered, f"Point {self.point()}")
        self.assertNotEqual(self.point(), self.points() - 1)
        self.assertTrue(self.titles()[1].startswith(hovered), self.titles())

    def test_costs_of_a_day_and_a_year(self):
        self.open("small")
        data = self.js("() => { const d = JSON.parse(document.getElementById('perseus-data').textContent);"
                       " return { points: d.points, summary: d.summary, gpus: d.accelerators.reduce((a, b) => a + b, 0) }; }")

        def set_field(name, value):
            self.js("(id, value) => { const input = document.getElementById(id); input.value = value;"
                    " input.dispatchEvent(new Event('input')); }", f"run-{name}", value)

        def kilowatt_hours():  # rows of day and year; columns: plan, maximum clock, saved
            cells = self.js("() => [...document.querySelectorAll('.costs td')].map((cell) => cell.firstChild.textContent)")
            size = {"Wh": 1e-3, "kWh": 1, "MWh": 1e3}
            return [float(text.split()[0].replace(",", "")) * size[text.split()[1]] for text in cells]

        self.assertEqual(self.js("() => document.getElementById('run-gpus').value"), str(data["gpus"]))
        for pipelines in (1, 250):
            set_field("gpus", str(pipelines * data["gpus"]))
            for step in (0, 1):
                if step:
                    self.js("() => document.querySelector('.shortcuts button:last-child').click()")
                point, points = self.point(), data["points"]
                a_day = pipelines * 86400 / points["time_s"][point] / 3.6e6
                plan, highest = points["energy_j"][point] * a_day, data["summary"]["all_max"]["energy_j"] * a_day
                expected = [plan, highest, highest - plan] + [365 * x for x in (plan, highest, highest - plan)]
                for shown, wanted in zip(kilowatt_hours(), expected, strict=True):
                    self.assertAlmostEqual(shown / wanted, 1, delta=1e-3)
        self.assertNotIn("CO₂", self.text(".costs"))  # nothing is assumed about price and carbon
        set_field("price", "0.5")
        set_field("currency", "eur")
        set_field("carbon", "400")
        cells = self.js("() => [...document.querySelectorAll('.costs small')].map((small) => small.textContent)")
        for cell in cells:
            self.assertRegex(cell, r"€.*, .* CO₂$")

    def test_effective_energy_is_an_experts_switch(self):
        self.open("middle")
        shown = "() => document.body.innerText"
        drawn = self.js(PIXELS, ".frontier-chart")
        for words in ("Effective energy leaves out", "minimum effective energy", "T*"):
            self.assertNotIn(words, self.js(shown))
        self.js("() => document.querySelector('input[value=effective]').click()")
        self.browser.settle()
        self.assertNotEqual(self.js(PIXELS, ".frontier-chart"), drawn)
        for words in ("Effective energy leaves out", "minimum effective energy (T*)"):
            self.assertIn(words, self.js(shown))
        self.assertIn("effective energy", self.tooltip_of_chosen())
        self.js("() => document.querySelector('input[value=total]').click()")
        self.browser.settle()
        self.assertEqual(self.js(PIXELS, ".frontier-chart"), drawn)
        self.assertNotIn("effective energy", self.tooltip_of_chosen())
        self.assertNotIn("minimum effective energy", self.js(shown))

    def tooltip_of_chosen(self):
        self.js("() => document.querySelector('.frontier-chart').focus()")
        self.browser.key("ArrowRight")
        text = self.text(".frontier-chart .tooltip")
        self.browser.key("ArrowLeft")
        self.js("() => document.activeElement.blur()")
        self.browser.settle()
        return text

    def choices_of_cpp(self, shape):
        with open(os.path.join(self.folder.name, shape, "stragglers.json")) as file:
            return json.load(file)["choices"]

    def test_the_scripts_rule_for_stragglers_is_that_of_cpp(self):
        self.open("small")
        source = os.path.join(os.path.dirname(__file__), "../../web/src/straggler.js")
        with open(source) as file:
            rule = file.read().replace("export ", "")
        for shape in SHAPES:
            self.open(shape)
            choices = self.choices_of_cpp(shape)
            self.assertGreater(len({choice["point"] for choice in choices}), 3)
            mine = self.js("(deadlines) => {" + rule + """
                const data = JSON.parse(document.getElementById('perseus-data').textContent);
                const waiting_w = data.accelerators.reduce((a, b) => a + b, 0) * data.blocking_power_w;
                return deadlines.map((t) => stragglerChoice({ ...data, waiting_w }, t)); }""",
                           [choice["deadline_s"] for choice in choices])
            for wanted, made in zip(choices, mine, strict=True):
                with self.subTest(shape=shape, deadline_s=wanted["deadline_s"]):
                    self.assertEqual(made["point"], wanted["point"])
                    for name in ("energy_j", "all_max_energy_j"):
                        self.assertAlmostEqual(made[name] / wanted[name], 1, delta=1e-6)
                    self.assertAlmostEqual(made["saving_pct"], wanted["saving_pct"], delta=1e-4)
                    t_star = self.js("() => JSON.parse(document.getElementById('perseus-data').textContent).summary.t_star_s")
                    self.assertEqual(made["t_opt_s"], min(t_star, wanted["deadline_s"]))

    def story(self):
        return self.js("() => [document.querySelector('#straggler output').textContent,"
                       " ...[...document.querySelectorAll('#straggler-facts dd')].map((dd) => dd.innerText)]")

    def test_straggler_of_the_report(self):
        self.open("middle")
        given = self.js("() => JSON.parse(document.getElementById('perseus-data').textContent).summary.straggler")
        deadline, plan, saving, energy = self.story()
        self.assertEqual(deadline, "3.9000 s")
        self.assertIn(f"point {given['point']}", plan)
        pct = 100 * (1 - given["energy_j"] / given["all_max_energy_j"])
        self.assertIn(f"{pct:.2f} %", saving)
        self.assertIn(f"{given['energy_j']:,.1f} J", energy)

    def test_straggler_by_keyboard(self):
        self.open("middle")
        self.js("() => document.getElementById('straggler-time').focus()")
        self.browser.key("Home")
        self.assertEqual(self.story()[0], "no straggler")
        drawn = self.js(PIXELS, ".timeline-chart")
        last, points = self.points() - 1, []
        for key in ("ArrowRight",) * 3 + ("End",):
            self.browser.key(key)
            points.append(self.point())
            self.assertIn(f"point {self.point()}", self.story()[1])
            self.assertTrue(self.titles()[1].startswith(f"Point {self.point()} "), self.titles())
        self.assertEqual(sorted(points, reverse=True), points)
        self.assertLess(points[0], last + 1)
        self.assertEqual(points[-1], 0)
        self.assertIn("T_opt = T*", self.story()[1])  # past T* the slowest plan stays
        self.assertNotEqual(self.js(PIXELS, ".timeline-chart"), drawn)

    def test_straggler_is_dragged_in_the_chart(self):
        self.open("middle")
        where = ("() => { const b = document.querySelector('.drag-handle').getBoundingClientRect();"
                 " return [b.left + b.width / 2, b.top + b.height / 2]; }")
        x, y = self.js(where)
        before, point = self.story(), self.point()
        self.browser.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.browser.mouse("mouseMoved", x + 60, y, button="left", buttons=1)
        self.browser.mouse("mouseReleased", x + 60, y, button="left", clickCount=1)
        self.browser.settle()
        self.assertAlmostEqual(self.js(where)[0], x + 60, delta=1)
        self.assertGreater(float(self.story()[0].split()[0]), float(before[0].split()[0]))
        self.assertLess(self.point(), point)
        self.assertTrue(self.titles()[1].startswith(f"Point {self.point()} "), self.titles())
        self.assertEqual(self.text("tr[aria-current] th"), str(self.point()))

    def test_clocks_per_stage_are_those_of_the_plan(self):
        for shape in ("small", "middle"):
            self.open(shape)
            data = self.js("() => JSON.parse(document.getElementById('perseus-data').textContent)")
            types, of = data["types"], data["computations"]["type"]
            for step in range(2):
                if step:
                    self.js("() => document.querySelector('.shortcuts button:last-child').click()")
                    self.browser.settle()
                runs = data["plans"]["runs"][data["plans"]["point"].index(self.point())]
                options = [option for n, option in zip(runs[::2], runs[1::2], strict=True) for _ in range(n)]
                clocks = {}
                for i, option in zip(sorted(range(len(of)), key=lambda i: (of[i], i)), options, strict=True):
                    kind = types[of[i]]
                    clocks.setdefault((str(kind["stage"]), kind["instruction"]), []).append(kind["clock_mhz"][option])
                wanted = [[*key, str(min(c)), str(int(sum(c) / len(c) + 0.5)), str(max(c))] for key, c in clocks.items()]
                rows = self.js("() => [...document.querySelectorAll('#clocks tbody tr')].map((row) =>"
                               " [...row.cells].slice(0, 5).map((cell) => cell.textContent))")
                self.assertEqual(rows, wanted)
                for row in wanted:
                    self.assertIn(int(row[2]), range(720, 1411))
                bars = self.js("() => [...document.querySelectorAll('.clock-bar')].map((bar) => {"
                               " const b = bar.getBoundingClientRect(), i = bar.firstChild.getBoundingClientRect();"
                               " return (i.left - b.left) / b.width; })")
                for row, left in zip(wanted, bars, strict=True):
                    self.assertAlmostEqual(left, (int(row[2]) - 720) / 690, delta=0.01)

    def test_timeline_by_keyboard(self):
        for shape in SHAPES:
            with self.subTest(shape=shape):
                self.open(shape)
                self.js("() => document.querySelector('.timeline-chart').focus()")
                self.browser.key("ArrowRight")
                first = self.text(".timeline-chart [aria-live]")
                self.assertIn("rank 0", first)
                self.assertIn("forward 0", first)
                self.assertIn("clock", first)
                self.assertIn("critical yes", first)
                self.browser.key("ArrowRight")
                self.assertIn("forward 1", self.text(".timeline-chart [aria-live]"))
                self.browser.key("ArrowDown")
                self.assertIn("rank 1", self.text(".timeline-chart [aria-live]"))
                drawn = self.js(PIXELS, ".timeline-chart")
                self.browser.key("+")
                self.assertNotEqual(self.js(PIXELS, ".timeline-chart"), drawn)
                self.browser.key("0")
                self.assertEqual(self.js(PIXELS, ".timeline-chart"), drawn)

    def test_timeline_by_pointer(self):
        self.open("small")
        self.js("() => document.getElementById('timeline').scrollIntoView()")
        box = self.js("() => { const b = document.querySelector('.timeline-chart').getBoundingClientRect();"
                      " return [b.left, b.top]; }")
        self.browser.move(box[0] + 40 + 10, box[1] + 30 + 8)  # right of the rank labels, below the first title
        tip = self.text(".timeline-chart .tooltip")
        self.assertIn("forward 0", tip)
        self.assertIn("1410 MHz", tip)

    def test_table_keeps_few_rows_and_follows(self):
        self.open("middle")
        count = self.points()
        self.assertEqual(self.js("() => document.querySelector('#points table').getAttribute('aria-rowcount')"), str(count + 1))
        self.assertLess(self.js("() => document.querySelectorAll('#points tbody tr').length"), 60)
        current = "() => Number(document.querySelector('tr[aria-current]').dataset.point)"
        self.assertEqual(self.js(current), count - 1)
        self.js("() => document.querySelector('#points .table').focus()")
        self.browser.key("ArrowUp")
        self.assertEqual(self.point(), count - 2)
        self.browser.key("Home")
        self.assertEqual(self.js(current), 0)
        self.js("() => document.querySelector('tbody tr[data-point=\"3\"] button').click()")
        self.browser.settle()
        self.assertEqual(self.point(), 3)

    def test_csv(self):
        self.open("small")
        csv = self.js("""() => new Promise((done) => {
          const real = URL.createObjectURL;
          URL.createObjectURL = (blob) => { blob.text().then(done); return real.call(URL, blob); };
          HTMLAnchorElement.prototype.click = () => {};
          [...document.querySelectorAll('button')].find((b) => b.textContent === 'Download CSV').click();
        })""")
        lines = csv.strip().split("\n")
        self.assertEqual(lines[0].split(",")[:3], ["point", "time_s", "energy_j"])
        self.assertEqual(len(lines), self.points() + 1)
        self.assertEqual({len(line.split(",")) for line in lines}, {8})

    def test_everything_is_reached_by_tab(self):
        self.open("small")
        reached = set()
        for _ in range(30):
            self.browser.key("Tab")
            reached.add(self.js("() => document.activeElement.className || document.activeElement.id || document.activeElement.textContent"))
        for wanted in ("chart frontier-chart", "chart timeline-chart", "table", "picker", "Download CSV"):
            self.assertIn(wanted, reached)

    def test_readable_without_a_script(self):
        self.browser.events.clear()
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.browser.call("Page.navigate", url=f"file://{self.folder.name}/small/report.html")
            self.browser.wait_for("Page.loadEventFired")
            root = self.browser.call("DOM.getDocument", depth=0)["root"]
            html = self.browser.call("DOM.getOuterHTML", nodeId=root["nodeId"])["outerHTML"]
        finally:
            self.browser.call("Emulation.setScriptExecutionDisabled", value=False)
        self.assertNotIn("data-ready", html.split("<script")[0])
        self.assertIn("Saved by the default plan", html)
        self.assertIn("One training iteration runs 12 computations on 2 ranks", html)

    def test_svg_files(self):
        for shape in SHAPES:
            for file in ("frontier.svg", "timeline.svg"):
                with self.subTest(shape=shape, file=file):
                    self.open(shape, file)
                    self.assertEqual(self.js("() => document.documentElement.nodeName"), "svg")
                    self.assertEqual(self.js("() => document.querySelectorAll('parsererror').length"), 0)
                    colors = []
                    for dark in (False, True):
                        self.browser.look(dark=dark)
                        colors.append(self.js("() => getComputedStyle(document.querySelector('.bg')).fill"))
                    self.assertNotEqual(colors[0], colors[1])


if __name__ == "__main__":
    run_tests(ReportTest, "program")
