"""YAML files that hold one mapping; a key given twice is an error, not a silent loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from treesyntax.errors import InputError
from treesyntax.files import read_lines


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader keeps the last of two equal keys; this one refuses them."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is there twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        InputError: if the file cannot be read, is not YAML, or holds something else.
    """
    text = "\n".join(read_lines(path))
    try:
        content = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(path, line, f"is not YAML ({error.problem})") from None
    except yaml.YAMLError as error:
        raise InputError(path, None, f"is not YAML ({str(error).splitlines()[0]})") from None
    if not isinstance(content, dict):
        raise InputError(path, None, "holds no recipe", "write keys and values, such as name: demo")
    return content
