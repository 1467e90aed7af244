"""Names that JavaScript modules import from each other are exported."""

from __future__ import annotations

import re
from pathlib import Path

SCRIPTS = sorted((Path(__file__).resolve().parents[2] / "src" / "judged").rglob("*.js"))


def exported_names(text: str) -> set[str]:
    names = set(re.findall(r"export (?:async )?(?:const|let|function\*?|class) (\w+)", text))
    for names_list in re.findall(r"export \{([^}]*)\}", text):
        names |= {name.rpartition(" as ")[2].strip() for name in names_list.split(",")}
    return names


def test_imported_names_are_exported() -> None:
    exports: dict[str, set[str]] = {}
    for path in SCRIPTS:
        exports.setdefault(path.name, set()).update(exported_names(path.read_text(encoding="utf-8")))
    imports = [
        (path.name, source, name.partition(" as ")[0].strip())
        for path in SCRIPTS
        for names_list, source in re.findall(r'import \{([^}]*)\} from "([^"]*)"', path.read_text(encoding="utf-8"))
        for name in names_list.split(",")
    ]
    assert len(imports) > 20
    assert [row for row in imports if row[2] not in exports.get(Path(row[1]).name, set())] == []
