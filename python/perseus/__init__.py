"""Connects a training process to a Perseus server: perseus.client is the client, perseus.adapters connects frameworks.

The import warns if libperseus is missing: a package that was installed with PERSEUS_PURE=1 does not contain it.
"""

import sys
import warnings

from perseus import library, options

__version__ = "0.1.0"

if not options.is_set("PERSEUS_DISABLE"):
    _missing = library.missing()
    if _missing:
        try:
            warnings.warn(f"Perseus will do nothing in this process: {_missing}", RuntimeWarning, stacklevel=2)
        except RuntimeWarning as warning:  # of a program that makes warnings errors
            print(f"perseus: warning: {warning}", file=sys.stderr)
