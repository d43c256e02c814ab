#!/usr/bin/env python3
"""The version of CMake's project() is that of every other file that names it.

usage: test_version.py VERSION
"""

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VERSION = ""


class Version(unittest.TestCase):
    def test_it_is_the_same_everywhere(self):
        for name, pattern in (("CITATION.cff", r"^version: (\S+)$"), ("CHANGELOG.md", r"^## (\S+)"),
                              ("python/pyproject.toml", r'^version = "(.*)"$'),
                              ("deploy/helm/perseus/Chart.yaml", r"^version: (\S+)$"),
                              ("deploy/helm/perseus/Chart.yaml", r"^appVersion: (\S+)$"),
                              ("packaging/man/perseus-clockd.8", r'"perseus (.*?)"')):
            found = re.search(pattern, (ROOT / name).read_text(), re.M)
            self.assertIsNotNone(found, name)
            self.assertEqual(found[1], VERSION, name)


if __name__ == "__main__":
    VERSION = sys.argv.pop(1)
    unittest.main()
