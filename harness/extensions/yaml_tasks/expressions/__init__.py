"""Expressions in YAML: a part of Python's expressions, checked when a spec is read and bounded when they run.

    constraint = compiled("answer[u] != answer[v]", {"answer"}, ("u", "v"))
    check = constraint.on(names({"answer": {"Ann": "red", "Bob": "red"}}))
    check("Ann", "Bob")                         # False

An expression has no statements, no attributes of objects and no functions but those of `FUNCTIONS`. It gives the same
value everywhere: sets are iterated in order, and chance comes from `random_functions` alone.
"""

from ._compile import CompiledExpression, Names, compiled, names, renew
from ._errors import Expression, ExpressionError, ExpressionLimitError
from ._functions import FUNCTIONS
from ._guards import is_number
from ._random import RANDOM, random_functions

__all__ = [
    "FUNCTIONS", "RANDOM", "CompiledExpression", "Expression", "ExpressionError", "ExpressionLimitError",
    "Names", "compiled", "is_number", "names", "random_functions", "renew",
]  # fmt: skip
