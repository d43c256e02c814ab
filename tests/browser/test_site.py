#!/usr/bin/env python3
"""The documentation site in a real Chromium.  usage: test_site.py BUILD_SITE [TEST...]

BUILD_SITE is tools/build_site.py. Exits with 77, which ctest counts as skipped, where there is no Chromium or no mkdocs.
"""

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from chromium import Browser, run_tests  # noqa: E402


class Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class SiteTest(unittest.TestCase):
    builder = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="perseus-site-")
        built = subprocess.run([cls.builder, cls.folder.name], capture_output=True, text=True)
        print(built.stdout + built.stderr, end="", flush=True)
        if built.returncode == 77:
            os._exit(77)  # unittest would report a failure
        if built.returncode != 0:
            raise RuntimeError("the site was not built")
        handler = functools.partial(Files, directory=cls.folder.name)
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.server.shutdown()
        cls.server.server_close()
        cls.folder.cleanup()

    def open(self, page, **look):
        self.browser.look(**look)
        self.browser.open_url(f"http://127.0.0.1:{self.server.server_port}/{page}")

    def js(self, script, *arguments):
        return self.browser.run(f"({script})({', '.join(json.dumps(a) for a in arguments)})")

    def check_nothing_else_is_loaded(self):
        foreign = [url for url in self.browser.requests() if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))]
        self.assertEqual(foreign, [])
        self.assertEqual(self.browser.errors(), [])

    def test_links(self):
        checker = os.path.join(os.path.dirname(self.builder), "check_links.py")
        checked = subprocess.run([checker, "--site", self.folder.name], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_navigation_has_every_audience(self):
        self.open("index.html")
        tabs = self.js("() => [...document.querySelectorAll('.md-tabs__link')].map((tab) => tab.textContent.trim())")
        self.assertEqual(tabs, ["Perseus", "All pages", "Use", "Operate", "Understand", "Change"])
        self.check_nothing_else_is_loaded()

    def test_every_page_of_docs_is_in_the_navigation(self):
        self.open("docs/index.html")
        linked = set(self.js("() => [...document.querySelectorAll('.md-nav__link')].map((link) => link.pathname)"))
        docs = os.path.join(os.path.dirname(self.builder), "..", "docs")
        for folder, _, files in os.walk(docs):
            for file in files:
                if file.endswith(".md"):
                    path = os.path.relpath(os.path.join(folder, file), os.path.join(docs, ".."))
                    page = "/" + path.replace("README.md", "index.html").replace(".md", ".html")
                    self.assertIn(page, linked)

    def test_search_finds_pages(self):
        self.open("index.html")
        self.js("() => { document.querySelector('.md-search__input').focus(); }")
        self.browser.type("perseus_time_with_cuda")
        # A question before the search has its index is answered with nothing, and the same one is not asked again: so the last
        # letter is taken away or typed once more, ever less often: what is typed before an answer drops the answer.
        self.browser.wait_until("""(() => {
            const input = document.querySelector('.md-search__input');
            window.looks = (window.looks ?? 0) + 1;
            if (window.looks === (window.again ?? 50)) {
                window.again = 2 * window.looks;
                input.value = input.value.endsWith('cuda') ? 'perseus_time_with_cud' : 'perseus_time_with_cuda';
                input.dispatchEvent(new Event('keyup', { bubbles: true }));
            }
            const found = [...document.querySelectorAll('.md-search-result__link')].map((link) => link.pathname);
            return found.includes('/docs/api_c.html');
        })()""")
        self.check_nothing_else_is_loaded()

    def test_lists_and_code_render_as_on_github(self):
        self.open("docs/formats.html")
        profile = self.js("() => document.getElementById('profile').nextElementSibling.nodeName")
        self.assertEqual(profile, "DIV")  # highlighted code right after the heading
        items = self.js("() => document.querySelectorAll('article li').length")
        with open(os.path.join(os.path.dirname(self.builder), "..", "docs", "formats.md")) as page:
            written = len(re.findall(r"^ *(?:-|\d+\.) ", page.read(), re.M))
        self.assertGreater(written, 0)
        self.assertEqual(items, written)

    def test_screenshots_follow_the_color_scheme(self):
        for dark, scheme in ((False, "light"), (True, "dark")):
            self.open("docs/plan.html", dark=dark)
            self.browser.wait_until("[...document.images].every((image) => image.complete)")
            shown = self.js("() => [...document.images].map((image) => [image.currentSrc, image.naturalWidth])")
            names = [url.rsplit("/", 1)[1] for url, _ in shown]
            self.assertEqual(names, [f"report_{scheme}.png"])
            for url, width in shown:
                self.assertTrue(0 < width <= 1280, f"{url}: {width}")
        folder = os.path.join(self.folder.name, "docs/screenshots")
        self.assertLess(sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)), 1_000_000)

    def test_reads_on_a_phone(self):
        for page in ("index.html", "docs/api.html", "docs/formats.html"):
            self.open(page, width=390, height=844, phone=True)
            self.assertLessEqual(self.js("() => document.documentElement.scrollWidth"), 390, page)
            self.check_nothing_else_is_loaded()


if __name__ == "__main__":
    run_tests(SiteTest, "builder")
