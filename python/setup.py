"""Everything is in pyproject.toml but the wheel's tag: any Python 3, and this platform if perseus/lib holds the library."""

import sys
from pathlib import Path

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel  # setuptools 70.1 and later
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

has_library = any((Path(__file__).parent / "perseus" / "lib").glob("libperseus.so*"))

if not has_library:  # pip shows this with -v, and the package says it when it is imported
    print("perseus: WITHOUT libperseus.so: set PERSEUS_LIBRARY, or build the wheel with it (perseus_wheel)", file=sys.stderr)


class PackageWithLibrary(Distribution):
    def has_ext_modules(self):
        return has_library


class WheelOfAnyPython(bdist_wheel):
    def get_tag(self):
        platform = super().get_tag()[2]
        return "py3", "none", platform if has_library else "any"


setup(distclass=PackageWithLibrary, cmdclass={"bdist_wheel": WheelOfAnyPython})
