#!/usr/bin/env python3
"""./test and ./run answer questions about themselves without building, and ./test refuses what it does not know.

usage: test_scripts.py SOURCE [unittest's arguments]
"""

import pathlib
import subprocess
import sys
import unittest

SOURCE = pathlib.Path()


def run(script, *arguments):
    # An empty PATH: a build or an installation fails at once.
    tools = {"PATH": "/nonexistent"}
    return subprocess.run(["/bin/bash", "-c", 'dirname() { /usr/bin/dirname "$@"; }; sed() { /bin/sed "$@"; }; . "$0" "$@"',
                           str(SOURCE / script), *arguments], env=tools, cwd=SOURCE, capture_output=True, text=True, check=False)


class Scripts(unittest.TestCase):
    def test_help_is_printed_and_nothing_starts(self):
        for script in ("test", "run"):
            for option in ("--help", "-h"):
                done = run(script, option)
                self.assertEqual((done.returncode, done.stderr), (0, ""), script)
                self.assertIn(f"usage: ./{script} ", done.stdout)
                for line in done.stdout.splitlines():
                    self.assertFalse(line.startswith(("#", "set ")), line)

    def test_unknown_options_are_refused(self):
        for option in ("--bogus", "--al", "12x"):
            done = run("test", option)
            self.assertEqual((done.returncode, done.stdout), (64, ""))
            self.assertEqual(done.stderr, f"./test: '{option}' is not an option; allowed: --all, --packages, --frameworks, --help, a number of "
                                          "inputs per fuzzer\n")


if __name__ == "__main__":
    SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
