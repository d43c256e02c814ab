"""Lets transformers be imported where the compiled package tokenizers is not installed: nothing here tokenizes.

    tokenizers_absent.install()     # before transformers is imported; does nothing where tokenizers is there
"""

import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import types

_MODULES = ("", ".decoders", ".models", ".normalizers", ".pre_tokenizers", ".processors", ".trainers")
# What transformers compares with its list of dependencies; packages that were copied have no metadata.
_VERSIONS = {"tokenizers": "0.20.3", "huggingface-hub": "0.36.2", "accelerate": "1.6.0"}


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
    version = importlib.metadata.version

    def version_or_stub(name):
        try:
            return version(name)
        except importlib.metadata.PackageNotFoundError:
            if name in _VERSIONS:
                return _VERSIONS[name]
            raise

    importlib.metadata.version = version_or_stub
