"""Base of tests on the recording stand-in for libperseus: the package's calls of the library, one by one."""

import logging
import os
import tempfile
import unittest

if "PERSEUS_LIBRARY" not in os.environ:
    raise unittest.SkipTest("PERSEUS_LIBRARY is not set: run by ctest -L python")

_file = tempfile.NamedTemporaryFile(prefix="perseus_recording.", suffix=".txt")
os.environ["PERSEUS_RECORDING"] = _file.name
from perseus import client, library, options  # noqa: E402

for name in ["RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES", *("PERSEUS_" + name.upper() for name in options.KINDS)]:
    os.environ.pop(name, None)  # they would choose other options


class RecordedTest(unittest.TestCase):
    def setUp(self):
        self.restart()
        self.addCleanup(client.stop)

    def restart(self):
        """Starts from the state of a new process."""
        client.stop()
        client._said.clear()
        logging.getLogger("perseus").addHandler(logging.NullHandler())  # assertLogs is how a test looks
        self._from = os.path.getsize(_file.name)

    def calls(self):
        """Calls since the test began, except those of start()."""
        return [line for line in self._lines() if not line.startswith(("option ", "start"))]

    def options(self):
        """Options of the last start()."""
        given = {}
        for line in self._lines():
            if line == "start":
                given.clear()
            elif line.startswith("option "):
                key, _, value = line.removeprefix("option ").partition("=")
                given[key] = value.replace("\\n", "\n")
        return given

    def computations(self):
        """Begun ones as (name, microbatch, chunk), checked: each has its speed set before it and ends before the next."""
        found, open_ = [], None
        for line in self.calls():
            verb, *numbers = line.split()
            if verb not in ("set_speed", "begin", "end"):
                continue
            numbers = tuple(int(number) for number in numbers)
            if verb == "set_speed":
                self.assertIsNone(open_, line)
                speed = numbers
            elif verb == "begin":
                self.assertEqual(speed, numbers)
                open_ = numbers
                found.append((library.INSTRUCTIONS[numbers[0]], *numbers[1:]))
            elif verb == "end":
                self.assertEqual(open_, numbers)
                open_ = None
        self.assertIsNone(open_, "a computation did not end")
        return found

    def steps(self):
        return [line for line in self.calls() if line.startswith("step")]

    def microbatches(self):
        """Of each training step."""
        return [int(line.split()[1]) for line in self.calls() if line.startswith("microbatches ")]

    def tables(self):
        """Action tables given for other numbers of microbatches."""
        tables = [line.split(" ", 2)[1:] for line in self.calls() if line.startswith("table ")]
        return {int(microbatches): table.replace("\\n", "\n") for microbatches, table in tables}

    def _lines(self):
        with open(_file.name, encoding="utf-8") as file:
            file.seek(self._from)
            return file.read().splitlines()
