"""Arrow's compute functions as a value of type Any: they are made at import, so no type checker sees them."""

from __future__ import annotations

from typing import Any

import pyarrow.compute

pc: Any = pyarrow.compute
