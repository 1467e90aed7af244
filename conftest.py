"""What pytest leaves alone, the doctests of a module whose library is not installed; and threads of linear algebra."""

import os
from importlib.util import find_spec

# Workers run side by side: with threads of their own for each small matrix product they wait for one another.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

OPTIONAL = {
    "ir_measures": "src/judged/scoring/compat/ir_measures.py",
    "sentence_transformers": "src/judged/integrations/sentence_transformers.py",
}
collect_ignore = [path for library, path in OPTIONAL.items() if find_spec(library) is None]
