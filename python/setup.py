"""Everything is in pyproject.toml but the wheel's tag: any Python 3, and this platform if perseus/lib holds the library.

Without the library nothing is built, unless PERSEUS_PURE=1 asks for a package that needs PERSEUS_LIBRARY when it runs.
"""

import os
import sys
from pathlib import Path

from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel  # setuptools 70.1 and later
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

has_library = any((Path(__file__).parent / "perseus" / "lib").glob("libperseus.so*"))

if not has_library and os.environ.get("PERSEUS_PURE") != "1":
    sys.exit(
        "perseus: the source tree has no libperseus.so. Build and install the wheel that has it: "
        "cmake --build BUILD --target perseus_wheel && pip install BUILD/wheel/perseus-*.whl. To install the package without "
        "the library, and have PERSEUS_LIBRARY name it at run time: PERSEUS_PURE=1 pip install ./python"
    )


class PackageWithLibrary(Distribution):
    def has_ext_modules(self):
        return has_library


class WheelOfAnyPython(bdist_wheel):
    def get_tag(self):
        platform = super().get_tag()[2]
        return "py3", "none", platform if has_library else "any"


setup(distclass=PackageWithLibrary, cmdclass={"bdist_wheel": WheelOfAnyPython})
