#!/usr/bin/env python3
"""Makes docs/screenshots/: the timelines and the report of a plan, and the server's pages of the cluster, of a job and of a site, light and dark, in Chromium.

usage: make_screenshots.py [PERSEUS [FOLDER]]    default: build/release/apps/perseus docs/screenshots

The report is that of 'perseus plan' on data/sample_profile.csv; the server's pages show the job of 'perseus demo',
on simulated GPUs, under a limit of 90 % of its fastest plan, and while it runs the plan for its straggler; this takes two minutes. Debian's pngquant, where it is installed, makes the files a third as large.
"""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/browser"))
from chromium import Browser  # noqa: E402

SIZE = {"width": 1200, "height": 1000}
SCHEMES = ("light", "dark")


def save(browser: Browser, path: pathlib.Path) -> None:
    browser.screenshot(path, whole_page=False)
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--skip-if-larger", "--strip", "--output", path, path], check=False)
    if browser.errors():
        sys.exit(f"make_screenshots.py: {path.name}: the page reports errors: {browser.errors()}")
    print(f"{path}: {path.stat().st_size} bytes")


def save_schemes(browser: Browser, folder: pathlib.Path, name: str) -> None:
    """The page as it is, light and dark."""
    for scheme in SCHEMES:
        browser.look(dark=scheme == "dark", **SIZE)
        browser.run("document.activeElement.blur()")  # no ring around the part that has the keyboard's focus
        browser.settle()
        save(browser, folder / f"{name}_{scheme}.png")


def of_report(browser: Browser, program: str, folder: pathlib.Path, scratch: str) -> None:
    shutil.copy(ROOT / "data/sample_profile.csv", scratch)
    command = "perseus plan sample_profile.csv --schedule 1f1b -m 12 --blocking-power 90 --out plans"
    subprocess.run(command.split(), executable=program, cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    shutil.copy(f"{scratch}/plans/timeline.svg", folder / "timelines.svg")
    browser.look(**SIZE)
    browser.open(f"{scratch}/plans/report.html")
    save_schemes(browser, folder, "report")


def line_with(lines, text: str) -> str:
    """Reads the demo's output to the first line that contains the text."""
    last = ""
    for last in lines:
        if text in last:
            return last
    sys.exit(f"make_screenshots.py: the demo ended before '{text}', with: {last.strip()}")


def of_site(browser: Browser, url: str, folder: pathlib.Path) -> None:
    """The server's job is alone in a hall, whose limit is below its fastest plan."""
    def ask(method: str, path: str, body=None):
        text = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url.rstrip("/") + path, text, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def limit(watts: float) -> None:
        later = {"from_s": time.time() + 1800, "limit_w": watts * 0.95}
        ask("PUT", "/v1/site", {"domains": [{"name": "hall", "limits": [{"limit_w": watts}, later]}]})

    limit(1e6)
    limit(0.9 * ask("GET", "/v1/site/power")["domains"][0]["baseline_w"])
    browser.open_url(url.rstrip("/") + "/#/site")
    browser.wait_until("document.querySelector('#site-history canvas') && document.querySelector('.gives-table tbody tr')")
    save_schemes(browser, folder, "site")
    ask("DELETE", "/v1/site")


def of_server(browser: Browser, program: str, folder: pathlib.Path, scratch: str) -> None:
    demo = subprocess.Popen([program, "demo", "--known-profile", "--iterations", "20", "--out", f"{scratch}/demo"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        url = line_with(demo.stdout, "dashboard: ").split("dashboard: ")[1].strip()
        line_with(demo.stdout, "the plan is in force")
        of_site(browser, url, folder)
        line_with(demo.stdout, "notice to the server")
        line_with(demo.stdout, "s per iteration")
        browser.look(**SIZE)
        browser.open_url(url)
        browser.wait_until("document.querySelector('tbody a')")
        save_schemes(browser, folder, "cluster")
        browser.run("document.querySelector('tbody a').click()")
        browser.wait_until("[...document.querySelectorAll('canvas')].some((canvas) => canvas.width > 0)")
        save_schemes(browser, folder, "dashboard")
    finally:
        demo.send_signal(signal.SIGINT)
        demo.communicate()


def main() -> None:
    program = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/apps/perseus").resolve())
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory(prefix="perseus-screenshots-") as scratch:
            of_report(browser, program, folder, scratch)
            of_server(browser, program, folder, scratch)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
