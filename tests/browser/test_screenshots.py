#!/usr/bin/env python3
"""tools/make_screenshots.py makes the pictures of the documents from the pages as they are.  usage: test_screenshots.py PERSEUS [TEST...]"""

import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from chromium import run_tests  # noqa: E402

ROOT = os.path.join(os.path.dirname(__file__), "../..")
LEAST_BYTES = 15_000  # a page without content takes less than a third of it


def size_of(png):
    """Width and height in the header of a PNG file."""
    with open(png, "rb") as file:
        header = file.read(24)
    assert header[:8] == b"\x89PNG\r\n\x1a\n", png
    return struct.unpack(">II", header[16:24])


class ScreenshotsTest(unittest.TestCase):
    program = None

    def test_every_picture_is_made_and_has_content(self):
        with tempfile.TemporaryDirectory(prefix="perseus-screenshots-test-") as folder:
            done = subprocess.run([sys.executable, os.path.join(ROOT, "tools/make_screenshots.py"), self.program, folder],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            kept = sorted(os.listdir(os.path.join(ROOT, "docs/screenshots")))
            self.assertEqual(sorted(os.listdir(folder)), kept, "docs/screenshots has the pictures that are made, and no others")
            contents = set()
            for name in kept:
                if name.endswith(".svg"):
                    continue
                path = os.path.join(folder, name)
                self.assertEqual(size_of(path), (1200, 1000), name)
                with open(path, "rb") as file:
                    contents.add(file.read())
                self.assertGreater(os.path.getsize(path), LEAST_BYTES, name)
            self.assertEqual(len(contents), len(kept) - 1, "light and dark differ; timelines.svg is for both")


if __name__ == "__main__":
    run_tests(ScreenshotsTest, "program")
