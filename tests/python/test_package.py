"""The package installs into a new environment without network and without a compiler, and works there."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# A library built with the address sanitizer needs it to be there first.
PRELOAD = {name: os.environ[name] for name in ("LD_PRELOAD", "ASAN_OPTIONS") if name in os.environ}
UNWANTED = ("PERSEUS_", "PYTHON", "PIP_", "LD_PRELOAD")
TREE = Path(__file__).resolve().parents[2] / "python"


def builder():
    """A Python that can build wheels: this one, or the system's."""
    for python in (sys.executable, "/usr/bin/python3"):
        can = subprocess.run([python, "-c", "import setuptools, wheel, pip"], capture_output=True)
        if can.returncode == 0:
            return python
    return None


BUILDER = builder()


class Package(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perseus_package.")))
        self.tree = self.folder / "tree"  # setuptools writes beside the sources
        shutil.copytree(TREE, self.tree, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "lib"))
        environment = self.folder / "environment"
        self.run_(BUILDER, "-m", "venv", "--system-site-packages", "--without-pip", environment)
        self.python = environment / "bin" / "python"

    def run_(self, *command, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}
        result = subprocess.run(
            command, cwd=self.folder, env={**clean, **environment}, capture_output=True, text=True, check=False
        )
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def install(self, what):
        self.run_(self.python, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps", what)

    def started(self, **environment):
        program = "from perseus import client; c = client.start(device='none'); print(c.active, c._library and c._library.path)"
        return self.run_(self.python, "-c", program, **environment).split()

    def test_from_the_tree(self):
        self.install(self.tree)
        library = os.environ["PERSEUS_LIBRARY"]
        self.assertEqual(self.started(PERSEUS_LIBRARY=library), ["True", library])
        self.assertEqual(self.started(PERSEUS_LIBRARY="/nowhere"), ["False", "None"])

    def test_importing_it_without_the_library_says_so(self):
        self.install(self.tree)
        program = (
            "import warnings\n"
            "with warnings.catch_warnings(record=True) as said:\n"
            "    warnings.simplefilter('always')\n"
            "    import perseus\n"
            "print([str(warning.message) for warning in said])"
        )
        self.assertIn("libperseus.so is not installed", self.run_(self.python, "-c", program))
        self.assertIn("/nowhere", self.run_(self.python, "-c", program, PERSEUS_LIBRARY="/nowhere/libperseus.so"))
        self.assertEqual(self.run_(self.python, "-c", program, PERSEUS_DISABLE="1"), "[]\n")

    def test_wheel_with_library_and_helper(self):
        """Of the tree that the build makes, with the real library."""
        tree = self.folder / "built"  # setuptools writes beside the sources
        shutil.copytree(os.environ["PERSEUS_BUILT_PACKAGE"], tree, ignore=shutil.ignore_patterns("build", "*.egg-info"))
        wheels = self.folder / "wheels"
        options = ("--no-index", "--no-build-isolation", "--no-deps")
        self.run_(self.python, "-m", "pip", "wheel", *options, "-w", wheels, tree)
        (wheel,) = wheels.iterdir()
        self.assertRegex(wheel.name, r"^perseus-[0-9.]+-py3-none-linux_\w+\.whl$")
        self.install(wheel)
        active, path = self.started(**PRELOAD)
        self.assertEqual(active, "True")
        self.assertIn("site-packages/perseus/lib/libperseus.so", path)
        helper = Path(path).with_name("perseus-clockd")
        self.assertTrue(os.access(helper, os.X_OK), "the helper lost its permission to run")


if __name__ == "__main__":
    if BUILDER is None:
        print("no Python here has setuptools, wheel and pip (Debian: python3-setuptools python3-wheel python3-pip)")
        sys.exit(77)
    unittest.main()
