"""Lets transformers be imported where the compiled package tokenizers is not installed: nothing here tokenizes.

    tokenizers_absent.install()     # before transformers is imported; does nothing where tokenizers is there
"""

import importlib.machinery
import importlib.metadata
import importlib.util
import re
import sys
import types
from pathlib import Path

_MODULES = ("", ".decoders", ".models", ".normalizers", ".pre_tokenizers", ".processors", ".trainers")
_COPIED = ("huggingface_hub", "accelerate")  # packages that were copied have no metadata


class Stub(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def install():
    if importlib.util.find_spec("tokenizers") is not None:
        return
    for suffix in _MODULES:
        module = Stub("tokenizers" + suffix)
        module.__spec__, module.__path__ = importlib.machinery.ModuleSpec(module.__name__, None), []
        sys.modules[module.__name__] = module
    table = Path(importlib.util.find_spec("transformers").origin).with_name("dependency_versions_table.py").read_text()
    versions = {"tokenizers": re.search('"tokenizers>=([0-9.]+)', table).group(1)}
    for name in _COPIED:
        source = Path(importlib.util.find_spec(name).origin).read_text()
        versions[name.replace("_", "-")] = re.search('^__version__ = "([0-9.]+[0-9])', source, re.MULTILINE).group(1)
    version = importlib.metadata.version

    def version_or_stub(name):
        try:
            return version(name)
        except importlib.metadata.PackageNotFoundError:
            if name in versions:
                return versions[name]
            raise

    importlib.metadata.version = version_or_stub
