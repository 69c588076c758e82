"""Every check: what it lets through, and the one line it raises. Its callers are tested where they live."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from cora_nb.checks import (
    check_columns,
    check_count,
    check_level,
    check_named,
    check_names,
    check_number,
    check_numbers,
    check_option,
    check_seed,
    integer_column,
)
from cora_nb.core import BadRow, CoraError

FRAME = pd.DataFrame({"x": [1, 0, 1], "y": [0.5, 1, 2], "z": ["a", "b", None]})
NAN = float("nan")


@pytest.mark.parametrize(
    "call",
    [
        lambda: check_count("n", 0, 0),
        lambda: check_count("n", np.int64(5), 1),
        lambda: check_count("n", 26, 2, 26),
        lambda: check_seed(0),
        lambda: check_seed(np.random.default_rng(0)),
        lambda: check_level(0.95),
        lambda: check_level(np.float32(0.5)),
        lambda: check_number("c", 0),
        lambda: check_number("c", 1.0),
        lambda: check_option("stop", None, (None, "cora")),
        lambda: check_names("scores", [], ["a"]),
        lambda: check_named("runs", {"a": 1}),
        lambda: check_columns(FRAME),
        lambda: check_columns(FRAME, "x", "y", "x"),
    ],
)
def test_what_is_right_passes(call):
    call()


@pytest.mark.parametrize(
    "call, why",
    [
        (lambda: check_count("n", 0, 1), "n must be a whole number of 1 or more, got 0"),
        (lambda: check_count("n", True, 1), "n must be a whole number of 1 or more, got True"),
        (lambda: check_count("n", 2.0, 1), "n must be a whole number of 1 or more, got 2.0"),
        (lambda: check_count("n", "5", 1), "n must be a whole number of 1 or more, got '5'"),
        (lambda: check_count("n", None, 0), "n must be a whole number of 0 or more, got None"),
        (lambda: check_count("n", NAN, 0), "n must be a whole number of 0 or more, got nan"),
        (lambda: check_count("n", 27, 2, 26), "n must be a whole number from 2 to 26, got 27"),
        (lambda: check_count("n", 1, 2, 26), "n must be a whole number from 2 to 26, got 1"),
        (lambda: check_seed(-1), "seed must be a whole number of 0 or more, got -1"),
        (lambda: check_seed(None), "seed must be a whole number of 0 or more, got None"),
        (lambda: check_seed(1.5), "seed must be a whole number of 0 or more, got 1.5"),
        *(
            (lambda x=x: check_level(x), f"level must be between 0 and 1, got {x!r}")
            for x in (0, 1, 95, -0.5, True, None, "0.95", NAN)
        ),
        *(
            (lambda x=x: check_number("c", x), f"c must be a number from 0 to 1, got {x!r}")
            for x in (-0.1, 1.5, 60, True, None, "0.5", NAN, [0.5])
        ),
        (lambda: check_number("h", 0.5, 0, 0.5, ends=False), "h must be between 0 and 0.5, got 0.5"),
        (lambda: check_number("d", 0.2, 0.3, 1), "d must be a number from 0.3 to 1, got 0.2"),
        (lambda: check_numbers("p", [1, 12], 0, 10), "p must be a number from 0 to 10, got 12"),
        (lambda: check_numbers("p", [1, NAN], 0), "p must be a number of 0 or more, got nan"),
        (lambda: check_numbers("p", [1, 2.5], 0, whole=True), "p must be a whole number of 0 or more, got 2.5"),
        (lambda: check_numbers("p", "3", 0, 10), "p must be a number from 0 to 10, got '3'"),
        (lambda: check_numbers("p", None, 0, 10), "p must be a number from 0 to 10, got None"),
        (lambda: check_numbers("p", [True], 0, 10), "p must be a number from 0 to 10, got [True]"),
        (lambda: check_option("method", "x", ("holm", "bh")), "method must be one of holm, bh, got 'x'"),
        (lambda: check_option("method", None, ("holm", "bh")), "method must be one of holm, bh, got None"),
        (lambda: check_option("method", ["bh"], {"bh": 1}), "method must be one of bh, got ['bh']"),
        (lambda: check_option("method", np.array(["bh"]), ("bh",)), "method must be one of bh, got array(["),
        (lambda: check_names("scores", ["a", "b"], ["a"]), "scores must be among a, got 'b'"),
        (lambda: check_named("runs", {}), "runs must be given by name, such as {'my model': responses}, got none"),
        (lambda: check_named("runs", [FRAME]), "such as {'my model': responses}, got a list"),
        (lambda: check_named("runs", FRAME), "such as {'my model': responses}, got a DataFrame"),
        (lambda: check_named("groups", None, "{1: x}"), "groups must be given by name, such as {1: x}, got a NoneType"),
        (lambda: check_columns(None), "responses must be a table, got a NoneType"),
        (lambda: check_columns([1], "x"), "responses must be a table, got a list"),
        (lambda: check_columns(FRAME, "x", "u", "v", "u"), "the responses have no column u, v"),
        (lambda: check_columns(FRAME, "u", what="bins"), "the bins have no column u"),
        (
            lambda: integer_column(FRAME, "y", 0, 2),
            "responses, row 1, y: y must be a whole number from 0 to 2, got 0.5",
        ),
        (lambda: integer_column(FRAME, "x", 0, 0), "responses, row 1, x: x must be a whole number from 0 to 0, got 1"),
        (lambda: integer_column(FRAME, "x", 0, np.array([1, 0, 0])), "row 3, x: x must be a whole number from 0 to 0"),
        (lambda: integer_column(FRAME, "z", 0, 2, "labels"), "labels, row 1, z: z must be a whole number from 0 to 2"),
    ],
)
def test_what_is_wrong_is_one_line(call, why):
    with pytest.raises(CoraError) as e:
        call()
    assert why in str(e.value) and "\n" not in str(e.value)


def test_what_comes_back():
    assert check_number("c", np.float32(0.5)) == 0.5 and type(check_number("c", 1)) is float
    found = check_numbers("p", [[0, 3.0]], 0, 10, whole=True)
    assert found.dtype == np.int64 and found.tolist() == [[0, 3]]
    assert check_numbers("p", 2, 0).dtype == np.float64
    frame = pd.DataFrame({"x": [1.0, 2.0, NAN]})
    assert integer_column(frame.iloc[:2], "x", 0, 2).tolist() == [1, 2]
    assert integer_column(frame.iloc[:2].astype("Int64"), "x", 0, 2).dtype == np.int64
    with pytest.raises(BadRow) as error:
        integer_column(frame, "x", 0, 2)
    assert (error.value.row, error.value.field) == (3, "x")


def test_importing_is_light():
    code = "import sys, cora_nb.checks; print({'numpy', 'pandas', 'scipy', 'matplotlib', 'torch'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"
