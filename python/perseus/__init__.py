"""The Perseus client in a training process: see perseus.client, and perseus.adapters for frameworks.

Importing it warns where there is no libperseus: a package that was installed with PERSEUS_PURE=1 has none.
"""

import os
import warnings

from perseus import library

__version__ = "0.1.0"

if os.environ.get("PERSEUS_DISABLE", "0") in ("", "0"):
    _missing = library.missing()
    if _missing:
        warnings.warn(f"Perseus will do nothing in this process: {_missing}", RuntimeWarning, stacklevel=2)
