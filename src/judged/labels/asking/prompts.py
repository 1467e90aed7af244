"""What models are asked: texts of ours with places for a query and documents, and what makes each of them known."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from typing import Any, Self

from judged.errors import InputError
from judged.labels.scales import Grade
from judged.results.cache import cached_property

_PLACE = re.compile(r"\{(\w+)\}")
_HASH = 12  # characters of a hash that tells prompts apart


@dataclass(frozen=True)
class Prompt:
    """One way to ask: the text of a file, the answers that it allows, and examples of what is asked and answered.

    >>> prompt = Prompt.read("answerable", ("yes", "no"))
    >>> [message["role"] for message in prompt.messages({"query": "who?", "document": "Goethe."})]
    ['system', 'user']
    """

    name: str
    text: str
    forms: tuple[str, ...] = ()  # what may be answered; empty: any line of text
    tokens: int = 0  # that an answer takes, where the endpoint would allow fewer
    values: Mapping[str, str] = field(default_factory=dict[str, str])  # of places that are the same in every request
    examples: Sequence[tuple[Mapping[str, str], str]] = ()  # values of places, and the right answer

    @classmethod
    def read(cls, name: str, forms: tuple[str, ...] = (), package: str = "judged.labels.asking", **more: Any) -> Self:
        """Read one of our files."""
        return cls(name, (files(package) / "prompts" / f"{name}.txt").read_text(encoding="utf-8"), forms, **more)

    @classmethod
    def graded(cls, scale: Sequence[Grade], examples: Sequence[Mapping[str, Any]] = ()) -> Self:
        """Ask for a grade of this scale; examples have a ``query``, a ``document`` and a ``grade``."""
        if any(not grade.grade.is_integer() for grade in scale):
            fix = "use a scale of whole numbers"
            raise InputError("models are asked for whole numbers, and the scale has others", fix=fix)
        forms = tuple(f"{grade.grade:.0f}" for grade in scale)
        described = "\n".join(f"{form} = {one.word}: {one.definition}" for form, one in zip(forms, scale, strict=True))
        shown: list[tuple[Mapping[str, str], str]] = []
        for example in examples:
            answer = str(example.get("grade", "")).removesuffix(".0")
            if answer not in forms or not example.get("query") or not example.get("document"):
                fix = f"give query, document, and a grade of {', '.join(forms)}"
                raise InputError("an example of the prompt cannot be used", fix=fix)
            shown.append(({name: str(example[name]) for name in ("query", "document")}, answer))
        return cls.read("graded", forms, values={"scale": described, "forms": ", ".join(forms)}, examples=shown)

    @cached_property
    def id(self) -> str:
        """Its name, with a hash of all that is the same in every request: text, scale and examples."""
        content = json.dumps([self.text, self.values, self.forms, [[dict(a), b] for a, b in self.examples]])
        return f"{self.name}-{sha256(content.encode()).hexdigest()[:_HASH]}"

    def messages(self, values: Mapping[str, str]) -> list[dict[str, str]]:
        """Write what is sent for a query and documents; examples stand before as if they had been asked.

        Lines around texts carry a code that is a hash of them, which no text can hold.
        """
        system, _, user = self.text.partition("\n---\n")
        turns = [{"role": "system", "content": self._filled(system, {})}]
        for shown, answer in self.examples:
            turns += [{"role": "user", "content": self._filled(user, shown)}, {"role": "assistant", "content": answer}]
        return [*turns, {"role": "user", "content": self._filled(user, values)}]

    def _filled(self, text: str, values: Mapping[str, str]) -> str:
        others = sorted(values.keys() - {"query", "need", "document", "other"})
        content = "\0".join(values.get(name, "") for name in ("query", "document", "other", *others))
        known = {"need": "", **self.values, **values, "code": sha256(content.encode()).hexdigest()[:_HASH]}
        return _PLACE.sub(lambda place: known[place[1]], text).strip()  # in one go: texts have no places
