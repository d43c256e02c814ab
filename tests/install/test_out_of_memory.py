#!/usr/bin/env python3
"""Takes memory from the program: it ends with one message and exit code 71, and leaves no file behind. Sanitizers reserve
address space without end, so this needs a build without them.

usage: test_out_of_memory.py PERSEUS [unittest's arguments]
exit code 77: there is no such program
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

SAMPLE = pathlib.Path(__file__).resolve().parent.parent.parent / "data/sample_profile.csv"
MEGABYTE = 1 << 20
PERSEUS = ""


def plan(memory_bytes, *more):
    """160,000 computations on 4 ranks."""
    return subprocess.run([PERSEUS, "plan", str(SAMPLE), "-m", "20000", "--blocking-power", "83", *more], text=True,
                          capture_output=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory_bytes,) * 2))


class OutOfMemory(unittest.TestCase):
    def test_a_plan_ends_in_one_message(self):
        with tempfile.TemporaryDirectory() as folder:
            for megabytes in (100, 150, 200):
                ended = plan(megabytes * MEGABYTE, "--out", f"{folder}/plans")
                self.assertEqual(ended.returncode, 71, ended.stderr)
                self.assertRegex(ended.stderr.splitlines()[-1], "^perseus: out of memory: ")
                self.assertEqual(ended.stdout, "")
                self.assertEqual(os.listdir(folder), [])

    def test_errors_are_json_too(self):
        error = json.loads(plan(200 * MEGABYTE, "--json").stdout)["error"]
        self.assertEqual((error["code"], error["exit_code"]), ("out_of_memory", 71))


if __name__ == "__main__":
    PERSEUS = sys.argv.pop(1)
    if not os.path.exists(PERSEUS):
        print(f"no {PERSEUS}: build the release preset")
        sys.exit(77)
    unittest.main()
