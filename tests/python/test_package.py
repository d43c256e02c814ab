"""The package installs into a new environment without network and without a compiler, and works there."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import test_serve

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


def clean_environment(more):
    return {**{name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}, **more}


class Installed(unittest.TestCase):
    """A new environment without packages, not even pip: the builder's pip installs into it."""

    def setUp(self):
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="perseus_package.")))
        environment = self.folder / "environment"
        self.run_(BUILDER, "-m", "venv", "--without-pip", environment)
        self.python = environment / "bin" / "python"

    def run_(self, *command, fails=False, **environment):
        result = subprocess.run(
            list(map(str, command)), cwd=self.folder, env=clean_environment(environment), capture_output=True, text=True
        )
        said = result.stdout + result.stderr
        self.assertEqual(result.returncode != 0, fails, said)
        return said if fails else result.stdout

    def copied(self, tree):
        copy = self.folder / "tree"  # setuptools writes beside the sources
        unwanted = ["build", "*.egg-info", "__pycache__", *(["lib"] if tree == TREE else [])]
        shutil.copytree(tree, copy, ignore=shutil.ignore_patterns(*unwanted))
        return copy

    def install(self, what, **more):
        options = ("--no-index", "--no-build-isolation", "--no-deps")
        return self.run_(BUILDER, "-m", "pip", "--python", self.python, "install", *options, what, **more)

    def wheel_of(self, tree):
        options = ("--no-index", "--no-build-isolation", "--no-deps")
        self.run_(BUILDER, "-m", "pip", "wheel", *options, "-w", self.folder / "wheels", tree)
        (wheel,) = (self.folder / "wheels").iterdir()
        return wheel

    def started(self, **environment):
        program = "from perseus import client; c = client.start(device='none'); print(c.active, c._library and c._library.path)"
        return self.run_(self.python, "-c", program, **environment).split()


class FromTheTree(Installed):
    """A package without the library."""

    def test_the_installation_fails_with_instructions(self):
        self.run_(BUILDER, "-m", "venv", "--system-site-packages", "--without-pip", self.folder / "builds")
        python, tree = self.folder / "builds" / "bin" / "python", self.copied(TREE)  # it has setuptools and wheel
        pip = (python, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps", tree)
        said = self.run_(*pip, fails=True)
        self.assertIn("perseus: the source tree has no libperseus.so", said)
        self.assertIn("perseus_wheel", said)
        self.run_(python, "-c", "import perseus", fails=True)

        self.run_(*pip, PERSEUS_PURE="1")
        self.python, library = python, os.environ["PERSEUS_LIBRARY"]
        self.assertEqual(self.started(PERSEUS_LIBRARY=library), ["True", library])
        self.assertEqual(self.started(PERSEUS_LIBRARY="/nowhere"), ["False", "None"])
        self.check_warning_at_import()

    def check_warning_at_import(self):
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


class Wheel(Installed, test_serve.JobCase):
    """Of the tree that the build makes, with the real library and helper."""

    def setUp(self):
        super().setUp()
        wheel = self.wheel_of(self.copied(Path(os.environ["PERSEUS_BUILT_PACKAGE"])))
        self.assertRegex(wheel.name, r"^perseus-[0-9.]+-py3-none-linux_\w+\.whl$")
        self.install(wheel)

    def test_library_and_helper_are_in_it(self):
        active, path = self.started(**PRELOAD)
        self.assertEqual(active, "True")
        self.assertIn("site-packages/perseus/lib/libperseus.so", path)
        helper = Path(path).with_name("perseus-clockd")
        self.assertTrue(os.access(helper, os.X_OK), "the helper lost its permission to run")

    def test_jobs_on_simulated_gpus_follow_their_plans(self):
        self.package = ""
        self.follow_plans()


if __name__ == "__main__":
    if BUILDER is None:
        print("no Python here has setuptools, wheel and pip (Debian: python3-setuptools python3-wheel python3-pip)")
        sys.exit(77)
    unittest.main()
