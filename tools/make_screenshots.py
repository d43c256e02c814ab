#!/usr/bin/env python3
"""Makes docs/screenshots/: the report and the dashboard, light and dark, in Chromium.

usage: make_screenshots.py [PERSEUS [FOLDER]]    default: build/release/apps/perseus docs/screenshots

The report is that of 'perseus plan' on data/sample_profile.csv; the dashboard shows the job of 'perseus demo',
on simulated GPUs, while it runs the plan for its straggler; this takes a minute. Debian's pngquant, where it is installed, makes the files a third as large.
"""

import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

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


def of_report(browser: Browser, program: str, folder: pathlib.Path, scratch: str) -> None:
    shutil.copy(ROOT / "data/sample_profile.csv", scratch)
    command = "perseus plan sample_profile.csv --schedule 1f1b -m 12 --blocking-power 90 --out plans"
    subprocess.run(command.split(), executable=program, cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    for scheme in SCHEMES:
        browser.look(dark=scheme == "dark", **SIZE)
        browser.open(f"{scratch}/plans/report.html")
        save(browser, folder / f"report_{scheme}.png")


def wait_for_straggler_plan(lines) -> str:
    """Reads the demo's output until the job has the plan for the straggler. Returns the dashboard's address."""
    url, announced = "", False
    for line in lines:
        if "dashboard: " in line:
            url = line.split("dashboard: ")[1].strip()
        announced |= "notice to the server" in line
        if announced and "s per iteration" in line:
            return url
    sys.exit("make_screenshots.py: the demo ended before the plan for its straggler; 'perseus demo --known-profile' shows why")


def of_dashboard(browser: Browser, program: str, folder: pathlib.Path, scratch: str) -> None:
    demo = subprocess.Popen([program, "demo", "--known-profile", "--out", f"{scratch}/demo"], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    try:
        url = wait_for_straggler_plan(demo.stdout)
        for scheme in SCHEMES:
            browser.look(dark=scheme == "dark", **SIZE)
            browser.open_url(url)
            browser.wait_until("[...document.querySelectorAll('canvas')].some((canvas) => canvas.width > 0)")
            browser.settle()
            save(browser, folder / f"dashboard_{scheme}.png")
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
            of_dashboard(browser, program, folder, scratch)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
