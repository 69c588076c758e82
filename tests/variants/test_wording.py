"""The family `wording`: same choices, other words; one prompt of each axis as text; families joined; runs repeated."""

from collections import Counter
from dataclasses import replace

import pytest
from helpers import run as run_command
from hypothesis import given, settings, strategies as st

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError, Question
from cora_nb.forms import Variant, Wording
from cora_nb.prompts.labels import apply_rule
from cora_nb.prompts.letters import first_token, last_line
from cora_nb.prompts.reading import careful
from cora_nb.prompts.templates import TEMPLATES, Prompt, make_prompts
from cora_nb.respondents.chat_replies import letter_scores
from cora_nb.respondents.likelihood import ADAPTATIONS, context_and_continuations
from cora_nb.respondents.simulated import RecordedRespondent, SimulatedRespondent
from cora_nb.metrics.guessing import prompt_numbers
from cora_nb.responses.files import read_responses, write_responses
from cora_nb.runs.asking import Asking
from cora_nb.runs.evaluate import evaluate, prepare, Running
from cora_nb.variants.families import divergence_set, make_variants
from cora_nb.variants.families import AXES, INSTRUCTIONS, recorded_wording

CAPITAL = Question("capital", "What is the capital of Australia?", ("Sydney", "Canberra", "Perth", "Hobart"), 1)
POOL = [
    Question("sum", "What is 7 + 5?", ("12", "13", "75", "57"), 0),
    Question("war", "When did it end?", ("1918", "1945"), 1),
]
QUESTION = "Question: What is the capital of Australia?\n"
LETTERED = "A. Sydney\nB. Canberra\nC. Perth\nD. Hobart"
AT = {(v.method, v.index): v for v in make_variants([CAPITAL], "wording")}


@st.composite
def questions(draw):
    choices = draw(st.lists(st.text(min_size=1).filter(str.strip), min_size=2, max_size=26))
    return Question("q", "?", tuple(choices), draw(st.integers(0, len(choices) - 1)))


@given(questions(), st.integers(0, 9))
def test_the_same_choices_in_the_same_order_whatever_the_words(q, seed):
    made = make_variants([q], "wording", seed)
    assert Counter(v.method for v in made) == {"original": 1, **{axis: len(words) for axis, words in AXES.items()}}
    assert [v.wording for v in made] == [None, *(w for words in AXES.values() for w in words)]
    for v in made:
        assert (v.choices, v.answer, v.sources, v.form) == (q.choices, q.answer, tuple(range(q.n_choices)), "mcq")
        assert v.family == "wording" and len(set(v.labels)) == q.n_choices
    assert made == make_variants([q], "wording", seed + 1)  # nothing is random


@given(questions(), st.sampled_from(sorted(TEMPLATES)), st.sampled_from(["text", "messages"]))
@settings(max_examples=30)
def test_all_prompts_differ(q, template, way):
    made = make_variants([q], "wording")
    assert len({str(getattr(Prompt(v, template=template), way)) for v in made}) == len(made)


@given(questions(), st.sampled_from(sorted(TEMPLATES)))
@settings(max_examples=30)
def test_defaults_are_what_every_template_does(q, template):
    v = make_variants([q], "wording")[0]
    worded = replace(v, wording=Wording())
    assert worded.labels == v.labels
    shots = (Question("s", "1 + 1?", ("2", "3"), 0),)
    for way in ("text", "messages"):
        one, two = (getattr(Prompt(x, template=template, shots=shots), way) for x in (v, worded))
        assert one == two
    for adaptation in ADAPTATIONS:
        one, two = (
            context_and_continuations(Prompt(x, template=template, shots=shots), adaptation) for x in (v, worded)
        )
        assert one == two


def test_one_prompt_of_each_axis_by_hand():
    cora = (
        "Answer the following multiple choice question. The first line of your response should be of the following "
        "format: 'LETTER' (without quotes), where LETTER is one of ABCD (depending on the number of alternatives), "
        "followed by a step-by-step explanation.\n\n"
    )
    by_hand = {
        ("original", 0): cora + QUESTION + "Choices: " + LETTERED + "\nAnswer:",
        ("instruction", 5): "I need the answer to this question. Tell me which of A, B, C, D it is.\n\n"
        + QUESTION
        + "Choices: "
        + LETTERED
        + "\nAnswer:",
        ("labels", 0): cora + QUESTION + "Choices: (A) Sydney\n(B) Canberra\n(C) Perth\n(D) Hobart\nAnswer:",
        ("labels", 1): cora.replace("ABCD", "a, b, c, d")
        + QUESTION
        + "Choices: (a) Sydney\n(b) Canberra\n(c) Perth\n(d) Hobart\nAnswer:",
        ("labels", 2): cora.replace("LETTER", "NUMBER").replace("ABCD", "1, 2, 3, 4")
        + QUESTION
        + "Choices: 1) Sydney\n2) Canberra\n3) Perth\n4) Hobart\nAnswer:",
        ("labels", 3): cora.replace("LETTER", "NUMBER").replace("ABCD", "i, ii, iii, iv")
        + QUESTION
        + "Choices: i. Sydney\nii. Canberra\niii. Perth\niv. Hobart\nAnswer:",
        ("separator", 1): cora + QUESTION + "Choices: A - Sydney\nB - Canberra\nC - Perth\nD - Hobart\nAnswer:",
        ("separator", 3): cora + QUESTION + "Choices: A. Sydney; B. Canberra; C. Perth; D. Hobart\nAnswer:",
        ("answer_line", 1): cora + QUESTION + "Choices: " + LETTERED + "\nMy choice:",
    }
    assert {at: Prompt(AT[at]).text for at in by_hand} == by_hand


def test_every_request_names_the_labels_and_suits_both_ways_to_reply():
    assert len(INSTRUCTIONS) == len(set(INSTRUCTIONS)) == 10
    for words in INSTRUCTIONS:
        assert words.instruction.count("$LABELS$") == words.reasoned.count("$LABELS$") == 1
        assert words.reasoned.count("'Answer: LABEL'") == 1
    for v in AT.values():
        for template in TEMPLATES.names():
            prompt = Prompt(v, template=template)
            assert "$LABELS$" not in prompt.text and "$LETTERS$" not in prompt.text
            (said,) = prompt.messages
            assert said["content"] == prompt.text


@pytest.mark.parametrize("method, index", list(AT))
def test_labels_and_last_lines_are_read_back(method, index):
    v = AT[method, index]
    line = (v.wording.answer_line if v.wording and v.wording.answer_line else "\nAnswer:").strip()
    for place, label in enumerate(v.labels):
        shown = (v.wording or Wording()).choice.format(label, v.choices[place])
        for reply in (label, shown, f"({label})", f"The answer is {label}."):
            assert apply_rule(careful, reply, v) == place, reply
        assert apply_rule(first_token, label, v) == place
        assert apply_rule(last_line, f"It is none of the others.\n\n{line} {label}", v) == place


@pytest.mark.parametrize("shots_as", ["plain", "like_variant"])
@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_shots_look_like_the_question_below_them(shots_as, template):
    pool = POOL[:1]
    for v, prompt in zip(AT.values(), make_prompts(list(AT.values()), template, pool, 1, shots_as)):
        (shot,) = pool
        like = Variant(shot, "x", "x", 0, shot.choices, shot.answer, (0, 1, 2, 3), wording=v.wording)
        alone = Prompt(like, template=template).text
        below = Prompt(v, template=template).text
        top = get_opening(template, v)
        assert alone.startswith(top) and below.startswith(top)
        between = prompt.text.removeprefix(alone).removesuffix(below.removeprefix(top))
        said = between.strip().removeprefix("Answer:").removeprefix(str(v.wording and v.wording.answer_line).strip())
        assert said.strip() == v.labels[0], between
        assert prompt.messages[1]["content"].endswith(v.labels[0]) and len(prompt.messages) == 3


def get_opening(template, v):
    "What the prompt begins with, before the first question."
    template = TEMPLATES[template]
    return template.opening(4, "mcq", *([v.wording] if v.wording else []))


@pytest.mark.parametrize("adaptation", ADAPTATIONS)
def test_likelihoods_are_about_the_labels_shown(adaptation):
    for v in AT.values():
        prompt = Prompt(v, template="bare", shots=(POOL[1],))
        context, said = context_and_continuations(prompt, adaptation)
        words = v.wording or Wording()
        if adaptation == "separate":
            assert said == [" Sydney", " Canberra", " Perth", " Hobart"]
        elif adaptation == "joint-label":
            assert said == [f" {label}" for label in v.labels]
        else:
            assert said == [" " + words.choice.format(*pair) for pair in zip(v.labels, v.choices)]
        if adaptation != "separate":
            assert context == prompt.text if adaptation == "joint-label" else "1945" in context


def test_a_server_s_scores_are_about_the_labels_shown():
    top = {"2": -1.0, " 2": -2.0, "B": -0.5, "ii": -1.0, "I": -0.1, " b": -1.0, "i": -3.0, "(a": -4.0}
    near = {"digits": [None, 0.5032], "roman": [0.0498, 0.3679], "small": [0.0183, 0.9744], "capitals": [None, 0.6065]}
    for alphabet, (one, two) in near.items():
        scores = letter_scores(top, Wording(alphabet=alphabet).labels(2))
        found = [None if s == float("-inf") else round(2.718281828**s, 4) for s in scores]
        assert found == [one, two], alphabet


def test_a_run_repeats_its_prompts_after_parquet(tmp_path):
    variants = make_variants(math_benchmark(3), "wording", seed=5)
    ask = prepare(variants, Asking(shots=POOL, k=1, shots_as="like_variant"))
    run = ask.ask(SimulatedRespondent(0.5), Running(progress=False))
    write_responses(run, tmp_path / "run")
    back = read_responses(tmp_path / "run")
    assert back.equals(run) and back.complete and back.family == "wording"
    told = back.facts.variants.recipe
    asked = [Question(q.question_id, q.text, q.choices, int(q.answer)) for q in back.questions.itertuples()]
    again = make_variants(asked, told.family, told.seed, **told.options)
    assert [v.wording for v in again] == [v.wording for v in variants]
    new = prepare(again, Asking(shots=POOL, k=1, shots_as="like_variant"))
    assert [p.text for p in new.prompts] == [p.text for p in ask.prompts]
    for what in ("hash", "count", "recipe"):
        assert getattr(new.known.variants, what) == getattr(back.facts.variants, what)
    assert new.known.asked.prompts == back.facts.asked.prompts
    repeated = evaluate(RecordedRespondent(back), again, Asking(shots=POOL, k=1), progress=False)
    assert repeated.table["prediction"].tolist() == run.table["prediction"].tolist()
    for r in back.table.itertuples():
        assert recorded_wording(r.family, r.method, r.index) == next(
            v.wording for v in again if v.key == (r.question_id, r.method, r.index)
        )


def test_prompts_that_differ_in_words_are_not_taken_for_equal_ones():
    variants = make_variants(math_benchmark(5), "wording")
    run = evaluate(SimulatedRespondent(0.5), variants, progress=False)
    texts = {}
    numbers = [texts.setdefault(Prompt(v).text, len(texts)) for v in variants]
    assert prompt_numbers(variants).tolist() == prompt_numbers(run).tolist() == numbers


def test_axes_can_be_chosen_and_wrong_ones_are_named():
    assert Counter(v.method for v in make_variants([CAPITAL], "wording", axes=["labels"])) == {
        "original": 1,
        "labels": 4,
    }
    assert divergence_set("wording", 4, {"axes": "separator"}) == {"original": 1, "separator": 5}
    for wrong in ("colour", (), ["labels", 3], 7):
        with pytest.raises(CoraError, match="axes must name some of instruction, labels, separator, answer_line, got"):
            make_variants([CAPITAL], "wording", axes=wrong)


# Results and commands


@pytest.mark.slow
def test_cora_run_takes_it(tmp_path):
    code, out, err = run_command("cora_run", "simulated:knows=0.8", "--family", "wording", "--sample", 6, cwd=tmp_path)
    assert code == 0, err
    (folder,) = (tmp_path / "responses" / "math").iterdir()
    back = read_responses(folder)
    assert back.family == "wording" and len(back) == 6 * 25 and back.complete


@pytest.mark.slow
def test_a_model_s_scores_are_those_of_its_labels():
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    from cora_nb.respondents.causal import CausalRespondent
    from cora_nb.respondents.likelihood import LikelihoodRespondent

    variants = make_variants(math_benchmark(3), "wording", axes="labels")
    causal = CausalRespondent("organism/steady", device="cpu", chat=False)
    likely = LikelihoodRespondent("organism/steady", device="cpu", adaptation="joint-label")
    one, two = (
        evaluate(who, variants, Asking("bare"), progress=False, strict=None).table["scores"] for who in (causal, likely)
    )
    for v, generated, compared in zip(variants, one, two):
        if v.labels[0] == "i":
            assert generated is None and len(compared) == 4  # no token of this model says ii
        elif v.labels[0] == "1":
            assert generated == pytest.approx(compared, abs=1e-3)  # each digit is one token, and the only one
        else:
            assert len(generated) == 4 and all(a >= b - 1e-3 for a, b in zip(generated, compared))
