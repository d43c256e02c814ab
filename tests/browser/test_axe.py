#!/usr/bin/env python3
"""axe-core finds no violation on the pages: light, dark, and on a phone.  usage: test_axe.py PERSEUS SAMPLE_PROGRAM [TEST...]

axe-core is a development dependency of web/; where web/node_modules lacks it, npm installs it in a scratch folder. Exits with
77, which ctest counts as skipped, where there is no Chromium, or neither axe-core nor npm and its registry.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(__file__))
import made_pages  # noqa: E402
from chromium import Browser, run_tests  # noqa: E402
from standin_server import Cluster, Server, fill_site, populate  # noqa: E402

WEB = os.path.join(made_pages.ROOT, "web")
LOOKS = ({}, {"dark": True}, {"width": 390, "height": 844, "phone": True})
AXE = """axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(({ id, help, nodes }) =>
  nodes.map((node) => `${id} (${help}): ${node.html.slice(0, 200)} ${node.any.map((check) => check.message).join(' ').slice(0, 160)}`)))"""


def axe_source(scratch):
    installed = os.path.join(WEB, "node_modules/axe-core/axe.min.js")
    if not os.path.exists(installed):
        if not shutil.which("npm"):
            print("skipped: no npm, which installs axe-core")
            os._exit(77)  # unittest would report a failure
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(os.path.join(WEB, name), scratch)
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=scratch, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"skipped: npm cannot install axe-core: {done.stderr}")
            os._exit(77)
        installed = os.path.join(scratch, "node_modules/axe-core/axe.min.js")
    with open(installed) as file:
        return file.read()


class AxeTest(unittest.TestCase):
    program = None
    sample = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="perseus-axe-")
        scratch = {name: os.path.join(cls.folder.name, name) for name in ("npm", "pages", "sample")}
        for path in scratch.values():
            os.makedirs(path)
        cls.axe = axe_source(scratch["npm"])
        cls.pages = made_pages.make(cls.program, scratch["pages"])
        subprocess.run([cls.sample, scratch["sample"], "4", "8", "60", "1.5"], check=True, stdout=subprocess.DEVNULL)
        cls.pages["straggler report"] = os.path.join(scratch["sample"], "report.html")
        cls.shown = Cluster(scratch["sample"])
        cls.job = populate(cls.shown).id
        now_s = int(time.time()) // 60 * 60
        cls.shown.history = [{"start_s": now_s - 60 * k, "iterations": 9, "compared_iterations": 8, "energy_j": 6.3e6, "planned_energy_j": 6e6}
                             for k in range(300, 0, -1)]
        fill_site(cls.shown)
        cls.server = Server(cls.shown)
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.server.close()
        cls.folder.cleanup()

    def violations(self):
        self.browser.run(self.axe + "; undefined")
        return self.browser.run(AXE)

    def test_finds_a_planted_violation(self):
        self.browser.look()
        self.browser.open(self.pages["partition"])
        self.browser.run("document.querySelector('main').append(document.createElement('img')); undefined")
        self.assertIn("image-alt", "".join(self.violations()))

    def test_files(self):
        for name, page in self.pages.items():
            for look in LOOKS:
                with self.subTest(page=name, **look):
                    self.browser.look(**look)
                    self.browser.open(page)
                    self.assertEqual(self.violations(), [])

    def test_dashboard(self):
        for part in ("#/", "#/site", f"#/jobs/{self.job}"):
            for look in LOOKS:
                with self.subTest(part=part, **look):
                    self.browser.look(**look)
                    self.browser.open_url("about:blank")
                    self.browser.open_url(f"{self.server.url}/{part}")
                    self.browser.wait_until("document.querySelector('#cluster-table tbody tr, .job-body:not([hidden]) canvas, .proof-table tbody tr')")
                    if part == "#/site":
                        self.browser.wait_until("document.querySelector('#site-history canvas')")
                    if part == "#/":
                        self.browser.wait_until("document.querySelector('#cluster-history canvas')")
                    self.browser.settle()
                    self.assertEqual(self.violations(), [])


if __name__ == "__main__":
    run_tests(AxeTest, "program", "sample")
