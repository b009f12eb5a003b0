"""What the message of a step that failed is about, as the recipe names it."""

from __future__ import annotations

import re

from treesyntax.study.recipe.checks import flag_name
from treesyntax.study.recipe.recipe import SECTIONS
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import PREPARE, Step

FLAG = re.compile(r"(?<!\S)--([a-z][a-z-]*)")


def in_recipe(message: str, step: Step, plan: Plan) -> str:
    """Return the message with the keys of the recipe that it is about.

    Args:
        message: of a step that failed.
        step: the step.
        plan: of the study.
    """
    recipe = plan.recipe
    if step.kind == PREPARE:
        return f"{message} (prepare, command {step.name.partition('-')[2]}, of {recipe.path.name})"
    if step.kind not in SECTIONS:
        return message
    given = dict(zip(step.command, (*step.command[1:], ""), strict=True))
    keys = []
    for flag in dict.fromkeys(map(flag_name, FLAG.findall(message))):
        if (value := given.get(f"--{flag}")) is not None:
            same = [name for name, text in recipe.content["vars"].items() if str(text) == value]
            keys += [f"{step.kind}.{flag}", *(f"vars.{name}" for name in same)]
    return f"{message} ({' or '.join(keys)} of {recipe.path.name})" if keys else message
