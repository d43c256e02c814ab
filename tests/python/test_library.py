"""The ctypes declarations against perseus.h: names, arguments, offsets, sizes, constants."""

import os
import subprocess
import sys
import unittest
from ctypes import sizeof

from header import Header
from perseus import library

HEADER = Header(os.environ["PERSEUS_HEADER"])
STRUCTS = {"perseus_options": library.Options, "perseus_statistics": library.Statistics}


class Declarations(unittest.TestCase):
    def test_functions(self):
        self.assertGreater(len(HEADER.functions), 10)
        declared = {name: len(arguments) for name, (_, arguments) in library.FUNCTIONS.items()}
        self.assertEqual(declared, HEADER.functions)

    def test_structs(self):
        layout = compiled()
        for name, struct in STRUCTS.items():
            self.assertEqual([field for field, _ in struct._fields_], HEADER.structs[name])
            self.assertEqual(sizeof(struct), layout["struct", name])
            for field, _ in struct._fields_:
                descriptor = getattr(struct, field)
                self.assertEqual((descriptor.offset, descriptor.size), layout["field", name, field], field)

    def test_constants(self):
        layout = compiled()
        for code, name in enumerate(library.INSTRUCTIONS):
            self.assertEqual(layout["constant", "PERSEUS_" + name.upper()], code)
        for code, name in enumerate(library.STATES):
            self.assertEqual(layout["constant", "PERSEUS_" + name.upper()], code)
        for name in ("TRAIN", "EVALUATE", "ADVICE_ONLY", "NO_ENERGY", "SYNCHRONOUS", "PACES", "ABI_VERSION"):
            self.assertEqual(layout["constant", "PERSEUS_" + name], getattr(library, name))
        for level, name in enumerate(("INFO", "WARNING", "ERROR")):
            self.assertEqual(layout["constant", "PERSEUS_LOG_" + name], level)

    def test_the_library_knows_the_instructions(self):
        loaded = library.load()
        for code, name in enumerate(library.INSTRUCTIONS):
            self.assertEqual(loaded.instruction_named(name.encode()), code)
        self.assertEqual(loaded.instruction_named(b"forwards"), -1)


def compiled():
    layout = {}
    output = subprocess.run([os.environ["PERSEUS_PRINT_LAYOUT"]], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        kind, *rest = line.split()
        names, numbers = rest[: 2 if kind == "field" else 1], rest[2 if kind == "field" else 1 :]
        layout[(kind, *names)] = tuple(map(int, numbers)) if kind == "field" else int(numbers[0])
    return layout


class Loading(unittest.TestCase):
    def reason(self, **environment):
        program = "from perseus import client; c = client.start(); print(c.active, c.reason)"
        result = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("Perseus does nothing"), 1, result.stderr)
        return result.stdout

    def test_no_library(self):
        self.assertIn("False", self.reason(PERSEUS_LIBRARY="/nowhere/libperseus.so"))
        self.assertIn("/nowhere/libperseus.so", self.reason(PERSEUS_LIBRARY="/nowhere/libperseus.so"))
        self.assertIn("PERSEUS_LIBRARY is not set", self.reason(PERSEUS_LIBRARY=""))

    def test_no_library_where_warnings_are_errors(self):
        self.assertIn("False", self.reason(PERSEUS_LIBRARY="/nowhere/libperseus.so", PYTHONWARNINGS="error"))

    def test_another_library(self):
        self.assertIn("has no perseus_", self.reason(PERSEUS_LIBRARY="libc.so.6"))

    def test_another_abi_version(self):
        self.assertIn("has ABI version 99, this package is for 1", self.reason(PERSEUS_RECORDING_ABI="99"))


if __name__ == "__main__":
    unittest.main()
