"""The family `formats` and the template `li2024`: three forms of any question, by an independent definition."""

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from cora_nb.core import CoraError, Question, uniforms
from cora_nb.prompts.templates import TEMPLATES, Prompt, Template, make_prompts
from cora_nb.variants.families import LeftOut, make_variants
from cora_nb.variants.files import read_variants, write_variants
from cora_nb.variants.mcqa_plus import FORMAT_METHODS, claim, formats


@st.composite
def questions(draw):
    choices = draw(
        st.lists(
            st.sampled_from(["a", "b", "None of the above", "42"]) | st.text(min_size=1).filter(str.strip),
            min_size=2,
            max_size=26,
        )
    )
    return Question(draw(st.text(min_size=1, max_size=4)), "?", tuple(choices), draw(st.integers(0, len(choices) - 1)))


def check(q, made, seed):
    "What the three forms of any question are."
    mcq, tfq, lfgq = made
    assert [v.method for v in made] == list(FORMAT_METHODS) == [v.form for v in made] and {v.family for v in made} == {
        "formats"
    }
    for v in (mcq, lfgq):
        assert (v.choices, v.answer, v.sources, v.index, v.asked) == (
            q.choices,
            q.answer,
            tuple(range(q.n_choices)),
            0,
            q.text,
        )
    first, second = uniforms(2, seed, q.id, "claim")
    wrong = [i for i in range(q.n_choices) if i != q.answer]
    judged = q.answer if first < 0.5 else wrong[int(second * len(wrong))]
    assert (tfq.index, tfq.choices, tfq.answer, tfq.sources) == (
        judged,
        ("Yes", "No"),
        int(judged != q.answer),
        (-1, -2),
    )
    assert tfq.text.startswith(q.text) and f"Proposed answer: {q.choices[judged]}\n" in tfq.text


@given(questions(), st.integers(0, 2**40))
def test_three_forms_of_any_question(q, seed):
    check(q, make_variants([q], "formats", seed=seed), seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mmlu", "arc"])
def test_every_real_question(shared, name):
    from cora_nb.benchmarks.load import load_benchmark

    asked = load_benchmark(name, path=shared / "hub", on_bad="skip")
    made = make_variants(asked, "formats", seed=3)
    for q, *three in zip(asked, made[::3], made[1::3], made[2::3]):
        check(q, three, 3)
    true = sum(v.answer == 0 for v in made[1::3]) / len(asked)
    assert abs(true - 0.5) < 3.3 * (0.25 / len(asked)) ** 0.5
    places = Counter(
        (v.index - v.question.answer) % v.question.n_choices
        for v in made[1::3]
        if v.answer == 1 and v.question.n_choices == 4
    )
    assert set(places) == {1, 2, 3} and max(places.values()) < 1.35 * min(places.values())


@given(questions(), st.integers(0, 2**40))
def test_all_claims(q, seed):
    made = make_variants([q], "formats", seed=seed, only="tfq", claims="all")
    assert [v.index for v in made] == list(range(q.n_choices)) and [v.answer == 0 for v in made] == [
        i == q.answer for i in range(q.n_choices)
    ]
    assert claim(q, seed) in range(q.n_choices) and make_variants([q], "formats", seed=seed, only="tfq")[0] in made


@given(questions(), st.integers(0, 2**40), st.data())
def test_sizes_are_nested_with_the_answer_last(q, seed, data):
    sizes = data.draw(st.lists(st.integers(2, q.n_choices), min_size=1, max_size=5, unique=True))
    made = make_variants([q], "formats", seed=seed, only=(), sizes=sizes)
    assert [v.method for v in made] == [f"mcq_{n}" for n in sizes]
    for v, n in zip(made, sizes):
        assert v.form == "mcq" and v.n_choices == n and v.answer == n - 1 and v.sources[-1] == q.answer
        assert (
            list(v.sources[:-1]) == sorted(set(v.sources[:-1]))
            and q.answer not in v.sources[:-1]
            and v.choices == tuple(q.choices[s] for s in v.sources)
        )
    made.sort(key=lambda v: v.n_choices)
    for small, large in zip(made, made[1:]):
        assert set(small.sources) < set(large.sources)


def test_a_part_of_the_questions_in_any_order_gives_the_same_variants():
    asked = [Question(f"q{i}", "?", ("a", "b", "c", "d"), i % 4) for i in range(50)]
    every = {v.key: v for v in make_variants(asked, "formats", seed=1, sizes=(2, 3))}
    some = make_variants(asked[::-7], "formats", seed=1, sizes=(3, 2))
    assert all(every[v.key] == v for v in some)
    assert [claim(q, 1) for q in asked] != [claim(q, 2) for q in asked]


@pytest.mark.parametrize(
    "options, says",
    [
        (dict(claims="both"), "claims must be one of one, all, got 'both'"),
        (dict(claims=None), "got None"),
        (dict(only="cloze"), "only must name some of mcq, tfq, lfgq, got 'cloze'"),
        (dict(only=("mcq", "mcq_2")), "only must name some"),
        (dict(only=None), "got None"),
        (dict(only=[]), "nothing is left to ask"),
        (dict(sizes=1), "a size must be a whole number of 2 or more, got 1"),
        (dict(sizes=(2, 2.5)), "got 2.5"),
        (dict(sizes="234"), "sizes must be numbers of choices"),
        (dict(sizes=None), "got None"),
        (dict(sizes=(3, 3)), "different numbers"),
        (dict(statements={("q", 0): " ", ("q", 1): ""}), "must be a non-empty text"),
        (dict(order=1), "takes the options claims, only, sizes, statements, got 'order'"),
    ],
)
def test_mistakes_get_one_clear_line(options, says):
    with pytest.raises(CoraError) as e:
        make_variants([Question("q", "?", ("a", "b"), 0)], "formats", **options)
    assert says in str(e.value) and "\n" not in str(e.value)


def test_too_few_choices_are_left_out():
    pair, four = Question("p", "?", ("a", "b"), 0), Question("f", "?", tuple("abcd"), 0)
    with pytest.raises(LeftOut):
        list(formats(pair, sizes=(2, 3)))
    with pytest.warns(UserWarning, match="formats: left out 1 of 2 questions: fewer than 3 choices"):
        assert {v.question_id for v in make_variants([pair, four], "formats", sizes=(2, 3))} == {"f"}
    assert [v.method for v in make_variants([four], "formats", only="mcq", sizes=4)] == ["mcq", "mcq_4"]


def test_written_and_read_back(tmp_path):
    made = make_variants([Question("t", "?", ("a", "b", "c", "d"), 1, "s")], "formats", claims="all", sizes=(2, 3, 4))
    write_variants(made, tmp_path / "v.parquet")
    assert read_variants(tmp_path / "v.parquet") == made


def test_the_family_is_found_by_name():
    "In a fresh interpreter, without importing its module, and without anything heavy."
    code = (
        "import sys; from cora_nb.core import Question; from cora_nb.variants.families import make_variants; "
        "print(len(make_variants([Question('q', '?', ('a', 'b', 'c'), 0)], 'formats')), "
        "sorted({'pandas', 'torch', 'pyarrow'} & set(sys.modules)))"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "3 []"
    )


# ---- the template

SUN = Question("sun", "Where does the sun rise?", ("East", "West"), 0)


def test_the_papers_words():
    "Li et al., Experimental Details; full stops and line breaks are ours."
    mcq, tfq, lfgq = make_variants([SUN], "formats")
    assert (
        Prompt(mcq, template="li2024").text
        == "Please select a correct option.\nWhere does the sun rise?\nA. East\nB. West\n"
        "Only one option can be selected. No explanation is allowed."
    )
    assert Prompt(tfq, template="li2024").text == f"{tfq.text} Just answer 'yes' or 'no'."
    assert Prompt(lfgq, template="li2024").text == "Where does the sun rise? Just answer in one sentence."


def test_each_form_has_its_own_requests_and_shots_carry_them():
    t = Template(
        "t", before_question="Q: ", before_answer="\nA:", pre_mcq="<", post_mcq=">", post_tfq="?!", post_lfgq="~"
    )
    assert (
        t.body("x", ("1", "2")) == "<Q: x\nA. 1\nB. 2>\nA:"
        and t.body("x", ("1", "2"), "several") == "Q: x\nA. 1\nB. 2\nA:"
    )
    assert t.body("x", ("Yes", "No"), "tfq") == "Q: x?!\nA:" and t.body("x", ("1",), "lfgq") == "Q: x~\nA:"
    pool = [Question("s", "sum?", ("3", "4"), 1)]
    mcq, tfq, lfgq = (p.text for p in make_prompts(make_variants([SUN], "formats"), t, shots=pool, k=1))
    assert (
        mcq.startswith("<Q: sum?\nA. 3\nB. 4>\nA: B\n\n<Q: Where")
        and lfgq.startswith("Q: sum?~\nA: 4\n\nQ: Where")
        and tfq.count("?!\nA:") == 2
    )


def test_the_older_templates_make_no_requests():
    for name in ("cora", "cat", "bare"):
        assert {getattr(TEMPLATES[name], f) for f in ("pre_mcq", "post_mcq", "post_tfq", "post_lfgq")} == {""}
