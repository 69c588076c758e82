"""Questions: what may be one."""

import numpy as np
import pytest

from cora_nb.core import BadRow, Question


@pytest.mark.parametrize("answer", [True, False, np.True_, np.False_, 1.0, "1", None, -1, 2])
def test_an_answer_is_the_index_of_a_choice(answer):
    "True is 1 to Python, and a benchmark that says so means something else."
    with pytest.raises(BadRow, match="the answer must be (the|an) index") as e:
        Question("q", "?", ("a", "b"), answer)
    assert e.value.field == "answer" and e.value.value is answer
