"""The README's own method works as printed."""

import re

import torch
from support import ROOT
from support.helpers import batch_of

from treesyntax.model.composition import Composition
from treesyntax.nn.injection import METHODS, Site
from treesyntax.trees.tree import Tree

README = (ROOT / "README.md").read_text(encoding="utf-8")
IMPORTS = """
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.nn.injection import Injection, Site, register
"""


def test_the_whole_method_of_the_readme():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    try:
        exec(IMPORTS + code, {"__name__": "readme"})
        composition = Composition("sibling_bias", Site(8, 2, 1))
        torch.nn.init.ones_(composition["sibling_bias"].bias)
        (term,) = composition.relate(batch_of([Tree([-1, 0, 0], list("abc"))]))(0)
        siblings = (term.bias[0][term.ids[0].long()] == 1).nonzero().tolist()
        assert siblings == [[1, 1], [1, 2], [2, 1], [2, 2]]
    finally:
        METHODS.pop("sibling_bias", None)


def test_every_method_is_in_the_table_with_its_file():
    for name, method in METHODS.items():
        assert f"| `{name}` |" in README
        assert method.__module__.replace(".", "/") + ".py" in README
