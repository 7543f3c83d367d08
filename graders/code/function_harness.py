"""Runs inside the sandbox as a script: calls one function of an answer and hands its result out.

It imports nothing of ours. Standard input is one JSON object: `code`, the `name` of the function,
and `arguments`, the JSON text of each. Standard output is one frame and nothing else:

    qualeval-result <bytes of the JSON that follows>\\n<JSON>\\n

The frame goes to a copy of file descriptor 1 made before the answer runs; descriptor 1 itself then
points to standard error, and so does `print`, so that what an answer prints or closes does no harm
and a traceback comes last. An answer that finds the copy can only lie about its own result.

As LiveCodeBench does (testing_util at 28fef95): the answer is a module that is not `__main__`, its
names begin with the star imports below, recursion may be 50,000 deep, arguments go by position to
`Solution().name` where there is a class Solution, else to the function `name`. As a judge does: the
answer is compiled by itself, so that `from __future__` works, and every test has a fresh process.

The JSON of the result is written from what a value is, not from what it says it is:

    None, bool, float, str, int below 2**63     as JSON has them (no nan, no inf)
    list, tuple                                 an array
    int beyond                                  {"int": "-0x1f..."}
    nan, inf, -inf                              {"float": "nan"}
    dict                                        {"dict": [[key, value], ...]}
    anything else, and what is in itself        {"unsupported": "set"}

Subclasses are what they hold, whatever they override; numpy scalars and arrays are as their
`item()` and `tolist()`.
"""

import contextlib
import json
import math
import os
import sys
import types
from typing import Any

PRELUDE = """
from string import *
from re import *
from datetime import *
from collections import *
from heapq import *
from bisect import *
from copy import *
from math import *
from random import *
from statistics import *
from itertools import *
from functools import *
from operator import *
from io import *
from sys import *
from json import *
from builtins import *
from typing import *
import string
import re
import datetime
import collections
import heapq
import bisect
import copy
import math
import random
import statistics
import itertools
import functools
import operator
import io
import sys
import json
"""

RECURSION_LIMIT = 50_000
DEEPEST = 200


def call(payload: bytes) -> bytes:
    """Run the answer and call its function: the frame. What the answer raises goes through."""
    asked = json.loads(payload)
    arguments = [json.loads(text) for text in asked["arguments"]]
    answer = types.ModuleType("answer")
    exec(PRELUDE, answer.__dict__)  # noqa: S102 - our own text
    sys.modules["answer"] = answer  # dataclasses and pickle look a class's module up there
    program = compile(asked["code"], "<answer>", "exec", dont_inherit=True)
    exec(program, answer.__dict__)  # noqa: S102 - this is what the sandbox is for
    solution = answer.__dict__.get("Solution")
    holder = solution() if isinstance(solution, type) else answer
    result = getattr(holder, asked["name"])(*arguments)
    body = json.dumps(encoded(result), separators=(",", ":"), allow_nan=False).encode("ascii")
    return b"qualeval-result %d\n%b\n" % (len(body), body)


def encoded(value: Any, around: tuple[int, ...] = ()) -> Any:
    """What stands for a value in the frame. `around`: ids of the containers that it is in."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if issubclass(kind, int):
        whole = int.__pos__(value)
        return whole if abs(whole) < 2**63 else {"int": hex(whole)}
    if issubclass(kind, float):
        number = float.__pos__(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    if issubclass(kind, str):
        return str.__add__(value, "")
    numpy = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, numpy.ndarray):
        return encoded(numpy.ndarray.tolist(value), around)
    if numpy is not None and issubclass(kind, numpy.generic):
        plain = numpy.generic.item(value)
        if not issubclass(type(plain), numpy.generic):  # a long double's item is itself
            return encoded(plain, around)
    if id(value) in around or len(around) == DEEPEST:
        return {"unsupported": "nesting"}
    inside = (*around, id(value))
    if issubclass(kind, list):
        return [encoded(part, inside) for part in list.__iter__(value)]
    if issubclass(kind, tuple):
        return [encoded(part, inside) for part in tuple.__iter__(value)]
    if issubclass(kind, dict):
        pairs = dict.items(value)
        return {"dict": [[encoded(key, inside), encoded(part, inside)] for key, part in pairs]}
    return {"unsupported": kind.__name__}


def main() -> None:
    """Read the payload, run, write the frame, and leave at once."""
    sys.set_int_max_str_digits(0)
    sys.setrecursionlimit(RECURSION_LIMIT)
    payload = sys.stdin.buffer.read()
    out = os.dup(1)
    os.dup2(2, 1)
    with contextlib.redirect_stdout(sys.stderr):
        frame = call(payload)
    while frame:
        frame = frame[os.write(out, frame) :]
    # Not by returning: threads and exit handlers of the answer, or a standard output that it has
    # closed, must not change the exit status of a call that ended well.
    os._exit(0)


if __name__ == "__main__":
    main()
