"""The library's messages in the words of a command: ``steps=…`` is ``--steps`` at the prompt."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

# Keywords of the library that commands know by another name.
_ALSO = {"num_classes": "classes", "num_features": "features", "root": "data_root"}
# What stands inside a path, a quotation or a call stays as it is.
_CALL, _BEFORE, _AFTER = r"\w\([^()]*\)", r"(?<![\w./'\"-])", r"(?![\w/'\"(=])(?!\.\w)"
_VALUE = r"…|True\b|'[^']*'|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|-?inf\b|nan\b|(?=[\s,;.)]|$)"
_KEYWORD = re.compile(rf"{_CALL}|{_BEFORE}([a-z_]+)=({_VALUE}){_AFTER}")
_NAME = re.compile(rf"{_CALL}|{_BEFORE}([a-z]+_[a-z_]+){_AFTER}")  # a plain word may be English
# tstar.fold is not among them: it folds a model, the command a file of weights.
_FUNCTION = re.compile(rf"{_BEFORE}tstar\.(check|csg|recommend|temperature){_AFTER}")


def asked(program: Any, words: Sequence[str]) -> Any:
    """The command of ``program`` that the words of the command line name."""
    for word in words:
        inside = getattr(program, "commands", {})
        if word not in inside:
            break
        program = inside[word]
    return program


def in_options(text: str, command: Any) -> str:
    """The text with each keyword that is an option of the command written as that option.

    ``name=True`` and ``name=…`` become ``--name``; ``name='value'`` becomes ``--name value``; a name that is no English
    word, such as ``batch_size``, becomes ``--batch-size``; ``tstar.check`` becomes ``tstar check``. Keywords that are no
    options of the command stay.
    """
    options: dict[str, str] = {
        parameter.name: max(parameter.opts, key=len)
        for parameter in getattr(command, "params", ())
        if parameter.param_type_name == "option" and not parameter.hidden
    }
    options |= {name: options[own] for name, own in _ALSO.items() if own in options}

    def option(found: re.Match[str]) -> str:
        name, *rest = found.groups()
        value = rest[0] if rest else ""
        if name not in options:  # None for a call
            return found[0]
        if value in ("", "…", "True"):
            return options[name]
        return f"{options[name]} {shlex.quote(value.strip(chr(39)))}"

    text = _NAME.sub(option, _KEYWORD.sub(option, text))
    return _FUNCTION.sub(r"tstar \1", text) if options else text
