"""Properties of the family `cora` for every number of choices; how families are found; recipes; complete sets."""

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from helpers import numbered
from hypothesis import given, settings, strategies as st

from cora_nb.core import CoraError, Question, uniforms
from cora_nb.responses.responses import make_responses
from cora_nb.variants.families import (
    FAMILIES,
    METHOD_WORDS,
    LeftOut,
    divergence_set,
    get_family,
    _make_recipe,
    make_variants,
    method_words,
    register_family,
    variant_words,
)
from cora_nb.variants.operators import NEW, make_variant


METHODS = [
    "original",
    "shuffled",
    "nota",
    "nota_shuffled",
    "decoupled",
    "decoupled_shuffled",
    "decoupled_nota",
    "decoupled_nota_shuffled",
]


@st.composite
def questions(draw, id="q"):
    "Any question, with choices that may repeat."
    choices = draw(
        st.lists(
            st.sampled_from(["a", "b", "B", "None of the above", "42"]) | st.text(min_size=1).filter(str.strip),
            min_size=2,
            max_size=26,
        )
    )
    return Question(id, "?", tuple(choices), draw(st.integers(0, len(choices) - 1)))


@given(questions(), st.integers(0, 2**40))
def test_every_variant_keeps_the_answer_and_tells_its_sources(q, seed):
    variants = make_variants([q], seed=seed)
    A = q.n_choices
    assert Counter(v.method for v in variants) == {m: 1 if m in METHODS[:2] else A - 1 for m in METHODS}
    assert len(variants) == 2 + 6 * (A - 1)
    for v in variants:
        assert v.sources.count(q.answer) == 1 and v.sources[v.answer] == q.answer
        assert len(v.sources) == len(v.choices) and len(set(v.sources)) == len(v.sources)
        assert v.choices == tuple("None of the above" if s < 0 else q.choices[s] for s in v.sources)


@given(questions())
def test_what_each_method_shows(q):
    by_method = {m: [v for v in make_variants([q]) if v.method == m] for m in METHODS}
    everything, distractors = set(range(q.n_choices)), set(range(q.n_choices)) - {q.answer}
    assert by_method["original"][0].sources == tuple(range(q.n_choices))
    assert set(by_method["shuffled"][0].sources) == everything
    for m, size in [
        ("nota", q.n_choices),
        ("nota_shuffled", q.n_choices),
        ("decoupled", 2),
        ("decoupled_shuffled", 2),
        ("decoupled_nota", 3),
        ("decoupled_nota_shuffled", 3),
    ]:
        assert all(len(v.sources) == size for v in by_method[m])
        assert [v.index for v in by_method[m]] == list(range(q.n_choices - 1))
        assert all((NEW in v.sources) == ("nota" in m) for v in by_method[m])
    for m in ("nota", "nota_shuffled"):  # each distractor is missing from exactly one
        assert Counter(frozenset(everything - set(v.sources)) for v in by_method[m]) == Counter(
            frozenset({d}) for d in distractors
        )
    for m in METHODS[4:]:  # each distractor meets the answer exactly once
        assert Counter(frozenset(set(v.sources) - {NEW, q.answer}) for v in by_method[m]) == Counter(
            frozenset({d}) for d in distractors
        )
    for m in ("nota", "decoupled", "decoupled_nota"):  # a shuffled method shows what its base shows
        for base, shuffled in zip(by_method[m], by_method[m + "_shuffled"]):
            assert sorted(base.sources) == sorted(shuffled.sources)
    assert all(v.answer == 0 for m in ("decoupled", "decoupled_nota") for v in by_method[m])
    own_order = [v for v in make_variants([q], answer_first=False) if v.method == "decoupled"]
    assert all(list(v.sources) == sorted(v.sources) for v in own_order)


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_any_subset_in_any_order_gives_the_same_variants(numbers, rng):
    qs = [Question(f"q{n}", "?", ("w", "x", "y", "z", "v")[: 2 + n % 4], 1) for n in numbers]
    whole = {v.key: v for v in make_variants(qs)}
    rng.shuffle(qs)
    part = qs[: len(qs) // 2]
    assert {v.key: v for v in make_variants(part)} == {k: v for k, v in whole.items() if k[0] in {q.id for q in part}}


def test_variants_are_the_same_on_every_machine():
    "Literal expectation: a change of the hash, of Python or of numpy must not move a single choice."
    q = Question("capital", "?", ("Sydney", "Canberra", "Melbourne", "Perth", "Hobart"), 1)
    got = {(v.method, v.index): v.sources for v in make_variants([q], seed=7) if v.method.endswith("shuffled")}
    assert got == EXPECTED
    assert uniforms(2, 7, "capital") == EXPECTED_UNIFORMS


EXPECTED = {
    ("shuffled", 0): (2, 0, 3, 1, 4),
    ("nota_shuffled", 0): (3, 2, 1, -1, 4),
    ("nota_shuffled", 1): (0, 3, -1, 4, 1),
    ("nota_shuffled", 2): (-1, 4, 0, 1, 2),
    ("nota_shuffled", 3): (-1, 2, 3, 0, 1),
    ("decoupled_shuffled", 0): (0, 1),
    ("decoupled_shuffled", 1): (2, 1),
    ("decoupled_shuffled", 2): (1, 3),
    ("decoupled_shuffled", 3): (4, 1),
    ("decoupled_nota_shuffled", 0): (1, 0, -1),
    ("decoupled_nota_shuffled", 1): (2, 1, -1),
    ("decoupled_nota_shuffled", 2): (1, 3, -1),
    ("decoupled_nota_shuffled", 3): (4, -1, 1),
}
EXPECTED_UNIFORMS = [0.8507197097189936, 0.8175711756246383]


CHINESE = Question("q", "下列哪一项是金属？", ("氖", "铁", "氩"), 1)


@pytest.mark.parametrize(
    "family, n", [("cora", 8), ("mcqa_plus", 1), ("reorderings", 4)]
)  # variants that show None of the above
def test_none_of_the_above_in_the_language_of_the_benchmark(family, n):
    made = make_variants([CHINESE], family, nota="以上都不对")
    assert sum("以上都不对" in v.choices for v in made) == n
    assert not any("None of the above" in v.choices for v in made)
    assert {json.loads(v.recipe)["options"]["nota"] for v in made} == {"以上都不对"}
    english = make_variants([CHINESE], family, nota=True if family == "reorderings" else "None of the above")
    put = {"以上都不对": "None of the above"}
    assert [tuple(put.get(c, c) for c in v.choices) for v in made] == [v.choices for v in english]
    assert [v.sources for v in made] == [v.sources for v in english]


@pytest.mark.parametrize("own", ["以上皆非", "None of these.", "Alles falsch, finde ich"])
def test_a_nota_of_its_own_is_found_in_any_language(own):
    q = replace(CHINESE, choices=("氖", "铁", own))
    nota = "alles falsch - finde ich!" if own.startswith("Alles") else "以上都不对"
    (v,) = [v for v in make_variants([q], "mcqa_plus", nota=nota) if v.method == "nota_answer"]
    assert v.choices[v.answer] == own and v.sources[v.answer] == 2 and nota not in v.choices


@pytest.mark.parametrize("nota", ["", "  ", None, 3])
def test_words_for_none_of_the_above_are_a_text(nota):
    with pytest.raises(CoraError, match="nota must be a non-empty text, got"):
        make_variants([CHINESE], nota=nota)


def test_other_wordings_and_unknown_names():
    q = Question("q", "?", ("a", "b", "c"), 0)
    assert "Keine davon" in make_variants([q], nota="Keine davon")[2].choices
    with pytest.raises(CoraError, match="family must be one of .*got '../cora'"):
        make_variants([q], family="../cora")
    with pytest.raises(CoraError, match="got 'shots'"):
        make_variants([q], shots=3)


# Finding a family


def test_a_family_can_join():
    @register_family
    def backwards(question, seed=0):
        yield make_variant(question, "backwards", "backwards", 0, tuple(range(question.n_choices))[::-1])

    try:
        (v,) = make_variants([Question("q", "?", ("a", "b", "c"), 0)], family="backwards")
        assert v.choices == ("c", "b", "a") and v.answer == 2
    finally:
        del FAMILIES.registered["backwards"]


def test_a_question_is_left_out_whole_and_by_reason():
    @register_family
    def picky(question, seed=0):
        yield make_variant(question, "picky", "original", 0, tuple(range(question.n_choices)))
        if question.n_choices != 4:
            raise LeftOut("too short" if question.n_choices < 4 else "too long")

    try:
        with pytest.warns(UserWarning) as said:
            variants = make_variants([numbered(A, id=f"q{A}") for A in (2, 3, 4, 5)], family="picky")
        assert [v.question_id for v in variants] == ["q4"]
        assert [str(w.message) for w in said] == [
            "picky: left out 2 of 4 questions: too short",
            "picky: left out 1 of 4 questions: too long",
        ]
    finally:
        del FAMILIES.registered["picky"]


MINE = """from cora_nb.variants.families import LeftOut
from cora_nb.variants.operators import make_variant


def my_family(question, seed=0, least=3):
    if question.n_choices < least:
        raise LeftOut("too few")
    yield make_variant(question, "my_family", "backwards", 0, tuple(range(question.n_choices))[::-1])
    yield make_variant(question, "my_family", "padded", 0, (question.answer, -1, -2), new=("x", "y"))
"""


def test_a_users_family_in_ten_lines(tmp_path, monkeypatch):
    assert len(MINE.splitlines()) <= 10
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    asked = [numbered(2, "p"), numbered(3)]
    with pytest.warns(UserWarning, match="^mine.py:my_family: left out 1 of 2 questions: too few$"):
        variants = make_variants(asked, "mine.py:my_family")
    assert [(v.sources, v.choices[-1]) for v in variants] == [((2, 1, 0), "choice 0"), ((1, -1, -2), "y")]
    assert len(make_variants(asked, "mine.py:my_family", least=2)) == 4
    assert divergence_set("mine.py:my_family", 5) == {"backwards": 1, "padded": 1}
    assert divergence_set("mine.py:my_family", 5, {"least": 6}) is None
    with pytest.raises(CoraError, match="family 'mine.py:my_family' takes the options least, got 'most'"):
        make_variants(asked, "mine.py:my_family", most=2)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "sets.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    assert make_variants(asked[1:], "theirs.sets:my_family") == variants


@pytest.mark.parametrize(
    "family, says",
    [
        ("mine.py:no_family", "family 'mine.py:no_family' must be a function of a question and a seed"),
        ("mine.py:number", "family 'mine.py:number' must be a function of a question and a seed"),
        ("mine.py:texts", "family 'mine.py:texts' must yield objects of the class Variant, got str"),
        ("mine.py:gone", "family 'mine.py:gone': mine.py has no 'gone'"),
        ("yours.py:f", "family 'yours.py:f': there is no file yours.py"),
        (None, "family must be one of answer_swap, cora, cyclic, formats, mcqa_plus, misleading, order_swap, "),
    ],
)
def test_what_is_not_a_family(tmp_path, monkeypatch, family, says):
    monkeypatch.chdir(tmp_path)
    code = "def no_family(question):\n    yield\n\n\ndef texts(question, seed):\n    yield 'a'\n\n\nnumber = 3\n"
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(CoraError) as e:
        make_variants([numbered(3)], family)
    assert str(e.value).startswith(says) and "\n" not in str(e.value)


def test_families_are_found_when_first_asked_for():
    "In a fresh interpreter: not loaded at first, named in the message, loaded one by one when asked for."
    code = """if True:
        import sys
        from cora_nb.variants.families import FAMILIES, get_family
        loaded = lambda: {m for m in sys.modules if m.startswith("cora_nb.variants.")}
        light = {"cora_nb.variants.families", "cora_nb.variants.operators"}
        assert list(FAMILIES.registered) == ["cora", "wording"] and loaded() == light, loaded()
        try: get_family("permutation")
        except ValueError as e: print(e)
        assert loaded() == light
        assert get_family("permutations").__name__ == "permutations" and get_family("cyclic").__name__ == "cyclic"
        assert loaded() == light | {"cora_nb.variants.orders"}
        assert all(get_family(name).__name__ == name for name in FAMILIES.names())
        print(sorted({"pandas", "torch", "pyarrow", "importlib.metadata"} & set(sys.modules)))
    """
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines() == [
        "family must be one of answer_swap, cora, cyclic, formats, mcqa_plus, misleading, order_swap, permutations, "
        "reorderings, wording, or module:name, got 'permutation'",
        "['importlib.metadata']",
    ]


# Recipes


@pytest.mark.parametrize(
    "family, options, recorded",
    [
        ("cora", {}, {}),
        ("cora", {"answer_first": True, "nota": "None of the above"}, {}),  # as they are anyway
        ("cora", {"answer_first": False}, {"answer_first": False}),
        ("permutations", {"limit": 100, "most_choices": 5}, {"most_choices": 5}),
        ("permutations", {"limit": np.int64(30)}, {"limit": 30}),
        ("formats", {"only": ["mcq", "tfq", "lfgq"], "sizes": (2, 3)}, {"sizes": [2, 3]}),
        ("mcqa_plus", {"sample": None, "statements": None}, {}),
        ("reorderings", {"n_choices": 6, "nota": True}, {"n_choices": 6, "nota": True}),
    ],
)
def test_a_recipe_has_the_options_that_differ_from_the_defaults(family, options, recorded):
    variants = make_variants([numbered(4)], family, seed=3, **options)
    assert {v.recipe for v in variants} == {_make_recipe(family, 3, options)}
    recipe = json.loads(variants[0].recipe)
    assert recipe == {"family": family, "seed": 3, "options": recorded}
    again = make_variants([numbered(4)], recipe["family"], recipe["seed"], **recipe["options"])
    assert again == variants and again[0].recipe == variants[0].recipe


plain = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
nested = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner))


@pytest.mark.parametrize("value", [print, object(), {"a": print}, [[object()]]])
def test_options_that_cannot_be_recorded(value):
    with pytest.raises(CoraError, match="^the option nota of the family 'cora' must be made of numbers, texts, lists"):
        _make_recipe("cora", 0, {"nota": value})


def test_a_recipe_does_not_travel_through_shared_variants():
    "A family may hand out another family's variants, or the same objects again: each call has its own recipe."
    kept = {}

    @register_family
    def sharing(question, seed=0, again=False):
        if question.id not in kept:
            kept[question.id] = make_variants([question], "cyclic")
        yield from kept[question.id]

    try:
        first = make_variants([numbered(3)], "sharing")
        second = make_variants([numbered(3)], "sharing", again=True)
        assert first == second == kept["q"]
        recipes = [{v.recipe for v in variants} for variants in (kept["q"], first, second)]
        families = [[json.loads(r)["family"] for r in recipe] for recipe in recipes]
        assert families == [["cyclic"], ["sharing"], ["sharing"]] and recipes[1] != recipes[2]
    finally:
        del FAMILIES.registered["sharing"]


def test_a_recipe_plays_no_part_in_equality():
    (v, *_) = make_variants([numbered(3)])
    assert (
        v.recipe and replace(v, recipe="") == v and hash(replace(v, recipe="")) == hash(v) and "recipe" not in repr(v)
    )


# Complete sets


@pytest.mark.parametrize("A", range(2, 27))
@pytest.mark.parametrize(
    "family, options",
    [
        ("cora", {}),
        ("cyclic", {}),
        ("answer_swap", {}),
        ("order_swap", {}),
        ("permutations", {}),
        ("permutations", {"limit": 7, "most_choices": 26}),
        ("reorderings", {}),
        ("reorderings", {"n_choices": 6, "nota": True, "orders": 3}),
        ("mcqa_plus", {}),
        ("formats", {}),
        ("formats", {"claims": "all", "only": ["tfq"], "sizes": (2, 3)}),
        ("formats", {"statements": {("q", 1): "Is it?"}}),
        ("misleading", {"misleading": {"q": 0, "r": 0, "none": 0}}),
    ],
)
def test_complete_sets_are_those_that_are_made(A, family, options):
    "Of questions with other words, ids and answers than the stand-ins, a None of the above among them."
    texts = [f"t{i}" for i in range(A - 1)] + ["None of the above"]
    asked = [Question("q", "?", texts, A - 1), Question("r", "?", texts, A // 2 or 1)]
    expected = divergence_set(family, A, options)
    recipe = json.loads(_make_recipe(family, 0, options))
    assert expected == divergence_set(family, A, recipe["options"])
    for q in asked:
        try:
            made = list(get_family(family)(q, 11, **options))
        except LeftOut:
            made = None
        assert expected == (None if made is None else dict(Counter(v.method for v in made)))


def test_what_a_family_cannot_say():
    assert divergence_set("mcqa_plus", 4, {"sample": 3}) is None
    assert divergence_set("mcqa_plus", 4, {"statements": {("q", 0): "Is it?"}}) is None
    assert divergence_set("mcqa_plus", 4, {"nota": "I do not see it"}) == divergence_set("mcqa_plus", 4)
    assert divergence_set("order_swap", 2) is None and divergence_set("permutations", 7) is None
    assert divergence_set("judge", 4) is None and divergence_set("no such family", 4) is None
    with pytest.raises(CoraError, match="limit must be a whole number"):
        divergence_set("permutations", 4, {"limit": 0})


def test_a_set_that_depends_on_the_question_is_unknown_unless_declared():
    @register_family
    def by_id(question, seed=0, picks=None):
        for i in range(1 + int(2 * uniforms(1, question.id, seed)[0])):
            yield make_variant(question, "by_id", "one", i, tuple(range(question.n_choices)))

    try:
        counts = {len(make_variants([numbered(3, f"q{i}")], "by_id")) for i in range(20)}
        assert counts == {1, 2} and divergence_set("by_id", 3) is None
        by_id.members = lambda n_choices, options: {"one": n_choices}
        assert divergence_set("by_id", 4, {"picks": {"q": 1}}) == {"one": 4}
        divergence_set("by_id", 4, {"picks": {"q": 1}})["one"] = 0  # the caller's own copy
        assert divergence_set("by_id", 4, {"picks": {"q": 1}}) == {"one": 4}
    finally:
        del FAMILIES.registered["by_id"]


@pytest.mark.parametrize("A", range(2, 8))
@pytest.mark.parametrize("shuffles, subsets", [(1, (2,)), (3, (2,)), (1, (2, 3)), (2, (3, 4)), (2, (4, 2))])
def test_more_shuffles_and_larger_subsets(A, shuffles, subsets):
    "The paper's side note: any number of shuffles, and subsets of any size."
    q = Question("q", "?", tuple(f"choice {i}" for i in range(A)), A // 2)
    options = {"shuffles": shuffles, "subsets": subsets}
    found = make_variants([q], seed=5, **options)
    sizes = [k for k in subsets if k == 2 or k < A]
    sets = {k: comb(A - 1, k - 1) for k in sizes}
    s = shuffles
    assert len(found) == 1 + s + (1 + s) * (A - 1) + 2 * (1 + s) * sum(sets.values())
    counts = divergence_set("cora", A, options)
    assert counts == dict(Counter(v.method for v in found)) and sum(counts.values()) == len(found)
    assert len({v.key for v in found}) == len(found)
    for k in sizes:
        name = "decoupled" if k == 2 else f"decoupled_{k}"
        shown = [set(v.sources) for v in found if v.method == name]
        assert len(shown) == sets[k] and all(len(x) == k and q.answer in x for x in shown)
        shuffled = [v for v in found if v.method == f"{name}_nota_shuffled"]
        assert [v.index for v in shuffled] == list(range(s * sets[k]))
        assert [set(v.sources) for v in shuffled] == [x | {-1} for x in shown] * s
    if 2 in subsets:  # whatever is in the paper's set is in this one, unchanged
        assert set(make_variants([q], seed=5)) <= set(found)
    assert json.loads(found[0].recipe)["options"] == {
        name: list(value) if name == "subsets" else value
        for name, value in options.items()
        if value != {"shuffles": 1, "subsets": (2,)}[name]
    }
    run = make_responses(found, ["A"] * len(found), facts={"variants": {"recipe": json.loads(found[0].recipe)}})
    assert run.complete
    assert not run.rows(run.table["index"] == 0).complete or len(found) == len(counts)


CAPITAL = Question("capital", "What is the capital of Australia?", ("Sydney", "Canberra", "Perth", "Darwin"), 1)
OPTIONS = {  # family -> options that give it further methods
    "cora": [{"subsets": (2, 3)}],
    "formats": [{"claims": "all", "sizes": (2, 3, 4)}],
    "mcqa_plus": [{"statements": {("capital", 0): "Sydney is the capital of Australia."}}],
    "misleading": [{"misleading": {"capital": 0}}],
    "reorderings": [{"n_choices": 3}, {"n_choices": 6, "nota": True}, {"nota": True}],
}


def methods_of(family):
    every = OPTIONS.get(family, []) + [{}] * (family != "misleading")
    return {v.method for options in every for v in get_family(family)(CAPITAL, 0, **options)}


BUILT_IN = sorted(name for name, address in FAMILIES.lazy.items() if address.startswith("cora_nb."))


@pytest.mark.parametrize("family", BUILT_IN)
def test_every_method_has_words_of_its_own_within_its_family(family):
    methods = methods_of(family)
    words = {method: method_words(method) for method in methods}
    assert methods and all("_" not in w and w != m.replace("_", " ") for m, w in words.items()), words
    assert len(set(words.values())) == len(methods), words
    assert max(map(len, words.values())) < 60  # as many as a figure shows


def test_no_words_are_for_a_method_that_nobody_makes():
    made = {re.sub("_[0-9]+(?=_|$)", "_n", m) if m not in METHOD_WORDS else m for f in BUILT_IN for m in methods_of(f)}
    assert set(METHOD_WORDS) == made


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("decoupled_3_nota_shuffled", "three choices left and none of the above, shuffled"),
        ("options_11", "11 choices"),
        ("my_own_method", "my own method"),
        ("mine_3", "mine 3"),
        ("options_", "options"),
        ("nota 2", "nota 2"),
        ("", ""),
    ],
)
def test_numbers_become_words_and_unknown_methods_keep_their_names(method, words):
    assert method_words(method) == words
    assert [variant_words(method, i) for i in (0, 1)] == [words, f"{words} (2)"]
