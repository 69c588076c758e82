"""Benchmarks in the columns of their publishers: the texts, passages, choices, answers and subjects of each come out.

The questions are invented. A layout is the function that puts one of them into the publisher's columns; each is written
in the publisher's format and in the others, since people convert files.
"""

import pytest
from benchmarks.written import FLAT, NESTED, class_labels, lines, load, put, refusal, source, table, to_paste

from cora_nb.core import LETTERS, CoraError

# ---------------------------------------------------------------- the questions: text, choices, answer, subject


FOUR = [
    ("Which animal guards the lighthouse of Ornö?", ["a goose", "a cat", "an otter", "a mule"], 1, "zoology"),
    ("How many bridges lead to the mill?", ["three", "seven", "nine", "eleven"], 3, "mill_lore"),
    ("What does the baker put on rye, at dawn?", ["salt", "honey, warm", "dill", 'a "star"'], 0, "baking"),
    ("Why is the northern gate painted blue?", ["against moths", "for luck", "by decree", "by mistake"], 2, "baking"),
    ("Who carries the lantern through the fen?", ["the miller", "the smith", "the clerk", "the piper"], 3, "zoology"),
    ("Which metal rings lowest in the tower?", ["tin", "bronze", "iron", "lead"], 2, "mill_lore"),
    ("When do the ferries stop?", ["at noon", "at dusk", "at high tide", "never"], 0, "ferries"),
    ("Where is the oldest well of the town?", ["the square", "the school", "the fort", "the park"], 1, "ferries"),
    ("Which colour has the flag of the rowers?", ["green", "white", "amber", "grey"], 3, "ferries"),
    ("What did the clerk lose in the snow?", ["a key", "a seal", "a glove", "a ledger"], 2, "baking"),
    ("How long does the cheese rest?", ["a week", "a month", "a season", "a year"], 1, "baking"),
    ("Which bird returns first?", ["the lark", "the stork", "the swift", "the crane"], 0, "zoology"),
]
FIVE = [(text, [*choices, f"none of it, {i}"], (answer + i) % 5, subject) for i, (text, choices, answer, subject) in
        enumerate(FOUR)]  # fmt: skip
THREE = [(text, choices[:3], (answer + i) % 3, subject) for i, (text, choices, answer, subject) in enumerate(FOUR)]
TWO = [(text, choices[:2], (answer + i // 4) % 2, subject) for i, (text, choices, answer, subject) in enumerate(FOUR)]
YES = [(f"is the {what} older than the mill", ["no", "yes"], answer, None) for what, answer in
       [("well", 1), ("gate", 0), ("fort", 1), ("tower", 1), ("school", 0), ("bridge", 0)]]  # fmt: skip
PASSAGES = [
    "The lighthouse of Ornö stands alone. Its keeper left long ago, and only the animals stayed, says the story.",
    'The mill lies between two rivers, "Old" and "Young"; to reach it, one crosses every bridge that was ever built.',
    "Bread is baked before dawn.\nWhat is put on it depends on the day, and on who bakes, and on what the market had.",
]


def passage(i: int) -> str:
    "The passage of a question; neighbours differ, and some share one."
    return PASSAGES[i % 3]


def letter(q) -> str:
    return LETTERS[q[2]]


def right(q) -> str:
    return q[1][q[2]]


def wrong(q) -> list[str]:
    return [c for i, c in enumerate(q[1]) if i != q[2]]


def columns(q, names) -> dict:
    "The choices in a column each."
    return dict(zip(names, q[1]))


def labelled(q, labels=LETTERS) -> dict:
    return {"text": list(q[1]), "label": list(labels[: len(q[1])])}


def of_arc(i: int) -> str:
    "The labels of one ARC question: some are numbers."
    return "1234" if i % 5 == 3 else LETTERS


# ---------------------------------------------------------------- the layouts: (questions, row, what else comes out)

PLAIN = dict(subject=None, passage=None, texts=None, order=True, flat=True, own="jsonl")
# subject: the subject of a question; "?": not tested. passage: what is shown first. texts: the parts of the text, in
# order, where more than question and passage is shown. order: whether the choices come out in this order. flat:
# whether a CSV file must be read, too; a file whose cells hold objects may be refused.


def mmlu(i, q):
    return dict(question=q[0], subject=q[3], choices=list(q[1]), answer=q[2])


def mmlu_redux(i, q):
    return mmlu(i, q) | dict(error_type="ok", source="", correct_answer=None, potential_reason=None)


def mmlu_pro(i, q):
    return dict(question_id=70 + i, question=q[0], options=q[1][: 3 + (i > 5)] if q[2] < 3 else list(q[1]),
                answer=letter(q), answer_index=q[2], cot_content="", category=q[3], src="ori_mmlu-x")  # fmt: skip


def arc(i, q):
    return dict(id=f"Mercury_{i}", question=q[0], choices=labelled(q, of_arc(i)), answerKey=of_arc(i)[q[2]])


def csqa(i, q):
    return dict(id=f"{i:032x}", question=q[0], question_concept="mill", choices=labelled(q), answerKey=letter(q))


def stems(i, q):
    options = [dict(text=c, label=k) for k, c in zip(of_arc(i), q[1])]
    return dict(id=f"Mercury_{i}", question=dict(stem=q[0], choices=options), answerKey=of_arc(i)[q[2]])


def openbookqa(i, q):
    return dict(id=f"7-{i}", question_stem=q[0], choices=labelled(q), answerKey=letter(q), fact1="a mill grinds",
                humanScore=0.8, clarity=1.6, turkIdAnonymized="b356d338b7")  # fmt: skip


def sciq(i, q):
    a, b, c = wrong(q)
    return dict(question=q[0], distractor3=c, distractor1=a, distractor2=b, correct_answer=right(q), support=passage(i))


def race(i, q):
    return dict(example_id=f"high{i // 3}.txt", article=passage(i), answer=letter(q), question=q[0], options=list(q[1]))


def gpqa(i, q):
    others = {f"Incorrect Answer {k}": c for k, c in enumerate(wrong(q), 1)}
    before = {"Pre-Revision Question": q[0] + " (draft)", "Pre-Revision Correct Answer": right(q)}
    before |= {f"Pre-Revision {k}": c for k, c in others.items()}
    reasons = "The archives of the town say so in three places, and the miller's letters agree with every one of them."
    return (before | {"Pre-Revision Explanation": reasons, "Question": q[0], "Correct Answer": right(q)} | others
            | {"Explanation": reasons, "Subdomain": q[3], "High-level domain": "Lore", "Writer's Difficulty Estimate":
               "Hard graduate level", "Record ID": f"rec{i:04}", "Canary String": "invented"})  # fmt: skip


def medqa(i, q):
    return dict(question=q[0], answer=right(q), options=columns(q, LETTERS), meta_info="step1", answer_idx=letter(q))


def medqa_phrases(i, q):
    return medqa(i, q) | dict(metamap_phrases=["lighthouse", "old mill"])


def medqa_bigbio(i, q):
    return medqa(i, q) | dict(options=[dict(key=k, value=c) for k, c in zip(LETTERS, q[1])])


def medqa_hf(i, q):
    return dict(id=f"test-{i:05}", sent1=q[0], sent2="", **columns(q, ["ending0", "ending1", "ending2", "ending3"]),
                label=q[2])  # fmt: skip


def medmcqa(i, q, first=0):
    return dict(id=f"{i:08x}-45d9", question=q[0], **columns(q, ["opa", "opb", "opc", "opd"]), cop=q[2] + first,
                choice_type="single", exp="It is in the ledger." if i % 2 else None, subject_name=q[3],
                topic_name=None)  # fmt: skip


def agieval(i, q):
    options = [f"({k}){c}" for k, c in zip(LETTERS, q[1])]
    return dict(passage=passage(i) if i % 3 else None, question=q[0], options=options, label=letter(q), answer=None,
                other=None)  # fmt: skip


def logiqa(i, q):
    return dict(label=letter(q).lower(), context=passage(i), question=q[0], options=list(q[1]))


def cmmlu(i, q):
    return {"": i, "Question": q[0], **columns(q, "ABCD"), "Answer": letter(q)}


def ceval(i, q):
    return dict(id=i, question=q[0], **columns(q, "ABCD"), answer=letter(q), explanation="1. " + passage(i))


def mmmlu(i, q):
    return {"Unnamed: 0": i, "Question": q[0], **columns(q, "ABCD"), "Answer": letter(q), "Subject": q[3]}


OPTIONS = ["option_a", "option_b", "option_c", "option_d"]


def global_mmlu(i, q):
    return dict(sample_id=f"{q[3]}/test/{i}", subject=q[3], subject_category="STEM", question=q[0],
                **columns(q, OPTIONS), answer=letter(q), required_knowledge="['None']", time_sensitive="['No']",
                reference="[]", culture="[]", region="[]", country="[]", cultural_sensitivity_label="-",
                is_annotated=False)  # fmt: skip


def kmmlu(i, q):
    return {"question": q[0], "answer": q[2] + 1, **columns(q, "ABCD"), "Category": q[3],
            "Human Accuracy": 0.5 + i / 40}  # fmt: skip


def arabicmmlu(i, q):
    n = max(3 + i % 3, q[2] + 1)
    options = {f"Option {k + 1}": q[1][k] if k < n else None for k in range(5)}
    return {"ID": i, "Source": "school", "Country": None, "Group": "Other", "Subject": q[3], "Level": "Primary",
            "Question": q[0], "Context": passage(i) if i % 3 else None, "Answer Key": letter(q), **options,
            "is_few_shot": 0}  # fmt: skip


def belebele(i, q):
    return dict(link=f"https://wikibooks.example/wiki/{i}", question_number=1 + i % 2, flores_passage=passage(i),
                question=q[0], **columns(q, ["mc_answer1", "mc_answer2", "mc_answer3", "mc_answer4"]),
                correct_answer_num=str(q[2] + 1), dialect="eng_Latn", ds="2023-05-03")  # fmt: skip


def include(i, q):
    return dict(language="Albanian", country="Albania", domain="Lore", subject=q[3], regional_feature="agnostic",
                level="Academic", question=q[0], **columns(q, OPTIONS), answer=q[2])  # fmt: skip


def headqa(i, q):
    answers = [dict(aid=k, atext=c) for k, c in enumerate(q[1], 1)]
    return dict(name="Exam 1", year="2013", category=q[3], qid=1 + i % 6, qtext=q[0], ra=q[2] + 1, image="",
                answers=answers)  # fmt: skip


def piqa(i, q):
    return dict(goal=q[0], **columns(q, ["sol1", "sol2"]), label=q[2])


def winogrande(i, q):
    return dict(sentence=q[0][:-1] + " when _ came", **columns(q, ["option1", "option2"]), answer=str(q[2] + 1))


def siqa(i, q):
    return dict(context=passage(i), question=q[0], **columns(q, ["answerA", "answerB", "answerC"]), label=str(q[2] + 1))


def copa(i, q):
    return dict(premise=q[0][:-1] + ".", **columns(q, ["choice1", "choice2"]), question=("cause", "effect")[i % 2],
                idx=i, label=q[2])  # fmt: skip


def truthfulqa(i, q):
    labels = [int(k == q[2]) for k in range(len(q[1]))]
    return dict(question=q[0], mc1_targets=dict(choices=list(q[1]), labels=labels),
                mc2_targets=dict(choices=[*q[1], "nothing"], labels=[1, *labels]))  # fmt: skip


def hellaswag(i, q):
    before = passage(i).replace("\n", " ")
    return dict(ind=i, activity_label=q[3], ctx_a=before, ctx_b="then the miller", ctx=before + " then the miller",
                endings=list(q[1]), source_id=f"activitynet~v_{i}", split="val", split_type="indomain",
                label=str(q[2]))  # fmt: skip


def boolq(i, q):
    return dict(question=q[0], title="The town", answer=bool(q[2]), passage=passage(i))


def superglue_boolq(i, q):
    return dict(question=q[0], passage=passage(i), idx=i, label=q[2])


def by_text(i, q):
    return dict(question=q[0], options=columns(q, LETTERS), answer=right(q))


def true_option(i, q):
    return {"Question": q[0], **columns(q, "ABCD"), "True_Option": letter(q), "True Answer": right(q)}


LAYOUTS = {
    "plain": (FOUR, lambda i, q: dict(question=q[0], choices=list(q[1]), answer=letter(q)), {}),
    "mmlu": (FOUR, mmlu, dict(subject=True, own="parquet")),
    "mmlu_redux": (FOUR, mmlu_redux, dict(subject=True, own="parquet")),
    "mmlu_pro": (FOUR, mmlu_pro, dict(subject=True, own="parquet")),
    "arc": (FOUR, arc, dict(flat=False, own="parquet")),
    "csqa": (FIVE, csqa, dict(flat=False, own="parquet")),
    "arc of its authors": (FOUR, stems, dict(flat=False)),
    "openbookqa": (FOUR, openbookqa, dict(flat=False, own="parquet")),
    "sciq": (FOUR, sciq, dict(passage=passage, order=False, own="json")),
    "race": (FOUR, race, dict(passage=passage, own="parquet")),
    "gpqa": (FOUR, gpqa, dict(subject="?", order=False, own="csv")),
    "medqa of its authors": (FIVE, medqa, dict(flat=False)),
    "medqa, four options": (FOUR, medqa_phrases, dict(flat=False)),
    "medqa": (FIVE, medqa_bigbio, dict(flat=False, own="parquet")),
    "medqa-hf": (FOUR, medqa_hf, {}),
    "medmcqa": (FOUR, medmcqa, dict(subject=True, own="parquet")),
    "medmcqa of its authors": (FOUR, lambda i, q: medmcqa(i, q, first=1), dict(subject=True, own="json")),
    "agieval": (FIVE, agieval, dict(passage=lambda i: passage(i) if i % 3 else None)),
    "logiqa": (FOUR, logiqa, dict(passage=passage, own="parquet")),
    "cmmlu": (FOUR, cmmlu, dict(own="csv")),
    "ceval": (FOUR, ceval, dict(own="csv")),
    "mmmlu": (FOUR, mmmlu, dict(subject=True, own="csv")),
    "global_mmlu": (FOUR, global_mmlu, dict(subject=True, own="parquet")),
    "kmmlu": (FOUR, kmmlu, dict(subject=True, own="csv")),
    "arabicmmlu": (FIVE, arabicmmlu, dict(subject=True, passage=lambda i: passage(i) if i % 3 else None, own="csv")),
    "belebele": (FOUR, belebele, dict(passage=passage, subject="?")),
    "include": (FOUR, include, dict(subject=True, own="parquet")),
    "headqa": (FOUR, headqa, dict(subject=True, flat=False, own="parquet")),
    "piqa": (TWO, piqa, {}),
    "winogrande": (TWO, winogrande, dict(texts=lambda i, q: [q[0][:-1], "_"])),
    "siqa": (THREE, siqa, dict(passage=passage)),
    "copa": (TWO, copa, dict(texts=lambda i, q: [q[0][:-1] + ".", ("cause", "effect")[i % 2]])),
    "truthfulqa": (FOUR, truthfulqa, dict(flat=False, own="parquet")),
    "hellaswag": (FOUR, hellaswag, dict(subject=True, own="jsonl",
                  texts=lambda i, q: [passage(i).replace("\n", " "), "then the miller"])),  # fmt: skip
    "boolq": (YES, boolq, dict(subject="?", texts=lambda i, q: [passage(i), q[0]])),
    "boolq of SuperGLUE": (YES, superglue_boolq, dict(texts=lambda i, q: [passage(i), q[0]])),
    "answers by text": (FOUR, by_text, dict(flat=False, own="json")),
    "true option": (FOUR, true_option, dict(own="csv")),
}  # fmt: skip


def shown_choices(row, q) -> list[str]:
    "The choices of a row that holds fewer than its question has."
    if "options" in row and isinstance(row["options"], list) and isinstance(row["options"][0], str):
        return list(q[1][: len(row["options"])])
    if "Option 5" in row:
        return [c for k, c in enumerate(q[1]) if row[f"Option {k + 1}"] is not None]
    return list(q[1])


def expected(name):
    "The rows of a layout, and what must come out of each."
    questions, row, changes = LAYOUTS[name]
    rules = PLAIN | changes
    rows = [row(i, q) for i, q in enumerate(questions)]
    return rows, [(i, q, shown_choices(r, q), rules) for i, (r, q) in enumerate(zip(rows, questions))]


def compare(found, wanted):
    "Every question as its row says."
    assert len(found) == len(wanted)
    for got, (i, q, choices, rules) in zip(found, wanted):
        if rules["texts"]:
            rest = got.text
            for part in rules["texts"](i, q):
                assert part in rest
                rest = rest[rest.index(part) + len(part) :]
        else:
            before = rules["passage"] and rules["passage"](i)
            assert got.text == (f"{before}\n\n{q[0]}" if before else q[0])
        mine = [c.casefold() for c in got.choices] if q[1] == ["no", "yes"] else list(got.choices)
        assert mine == choices if rules["order"] else sorted(mine) == sorted(choices)
        assert mine[got.answer] == right(q)
        if rules["subject"] != "?":
            assert got.subject == (q[3] if rules["subject"] else None)
    assert len({q.id for q in found}) == len(found)


def as_kept(rows, kind):
    "Rows as this kind of file holds them: a column without a name exists in texts only."
    if kind in FLAT or kind.startswith("json"):
        return rows
    return [{name or "Unnamed: 0": value for name, value in row.items()} for row in rows]


STRICT = [(n, k) for n, (_, _, c) in LAYOUTS.items() for k in (*NESTED, *(FLAT if (PLAIN | c)["flat"] else ()))]
OBJECTS_IN_CELLS = [n for n, (_, _, c) in LAYOUTS.items() if not (PLAIN | c)["flat"]]


@pytest.mark.parametrize("name, kind", STRICT, ids=lambda v: v)
def test_a_published_benchmark_comes_out_as_its_rows_say(name, kind, tmp_path):
    "Texts with the passage first, choices, answers and subjects, in the publisher's columns, in every format."
    rows, wanted = expected(name)
    loaded = load(source(as_kept(rows, kind), kind, tmp_path))
    compare(loaded.questions, wanted)
    assert str(len(wanted)) in loaded.printed


@pytest.mark.parametrize("name", OBJECTS_IN_CELLS)
def test_objects_in_the_cells_of_a_csv_file_are_read_or_refused(name, tmp_path):
    "A CSV file whose cells hold JSON objects: as the rows say, or refused, never otherwise."
    rows, wanted = expected(name)
    try:
        found = load(source(rows, "csv", tmp_path)).questions
    except CoraError:
        return
    compare(found, wanted)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_publishers_file_under_any_name(name, tmp_path):
    "`load_benchmark(NAME, path=FILE)` with a name of one's own, and a path given as a str."
    rows, wanted = expected(name)
    own = (PLAIN | LAYOUTS[name][2])["own"]
    compare(load("mine", path=str(source(as_kept(rows, own), own, tmp_path, "test-00000-of-00001"))).questions, wanted)


KNOWN = ("mmlu", "mmlu_redux", "arc", "csqa", "medqa", "medmcqa", "truthfulqa", "hellaswag")


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_name_with_a_file(name, tmp_path):
    "The name of a published benchmark reads its file as the columns alone do."
    rows, wanted = expected(name)
    compare(load(name, path=source(rows, "parquet", tmp_path, "test")).questions, wanted)


@pytest.mark.parametrize("name", ["mmlu", "openbookqa", "agieval", "kmmlu", "race", "arabicmmlu", "gpqa"])
def test_columns_in_another_case_are_the_same_columns(name, tmp_path):
    "The case of the columns' names plays no part."
    rows, wanted = expected(name)
    rows = [{k.upper(): v for k, v in row.items()} for row in rows]
    compare(load(source(rows, "jsonl", tmp_path)).questions, wanted)


@pytest.mark.parametrize("name", ["sciq", "gpqa", "race", "kmmlu", "headqa", "arabicmmlu", "mmlu_pro", "medmcqa"])
def test_columns_in_another_order_are_the_same_columns(name, tmp_path):
    "The order of the columns plays no part where they have names."
    rows, wanted = expected(name)
    rows = [dict(reversed(row.items())) for row in rows]
    compare(load(source(rows, "jsonl", tmp_path)).questions, wanted)


# ---------------------------------------------------------------- more forms of these benchmarks


HEADLESS = [(i, q, q[1], PLAIN | {"subject": "?"}) for i, q in enumerate(FOUR)]


def test_mmlu_as_its_authors_publish_it(tmp_path):
    "A CSV without a header: question, four choices, letter."
    rows = [dict(q=q[0], **columns(q, "abcd"), key=letter(q)) for q in FOUR]
    for name, text in (("anatomy_test.csv", table(rows, header=False)), ("x.tsv", table(rows, "\t", header=False))):
        compare(load(put(tmp_path, name, text)).questions, HEADLESS)


def test_the_header_that_is_none_may_be_refused_but_never_eaten(tmp_path):
    "pandas makes the first question of a file without a header its column names: refused, or all questions are there."
    import pandas as pd

    text = table([dict(q=q[0], **columns(q, "abcd"), key=letter(q)) for q in FOUR], header=False)
    path = put(tmp_path, "anatomy_test.csv", text)
    for frame in (pd.read_csv(path, header=None), pd.read_csv(path)):
        try:
            found = load(frame).questions
        except CoraError:
            continue
        compare(found, HEADLESS)


@pytest.mark.parametrize("name, labels", [
    ("mmlu", {"answer": list("ABCD")}), ("medmcqa", {"cop": list("abcd")}), ("piqa", {"label": list("01")}),
    ("copa", {"label": ["choice1", "choice2"]}), ("boolq of SuperGLUE", {"label": ["False", "True"]}),
    ("mmlu_redux", {"answer": list("ABCD")}),
])  # fmt: skip
def test_class_labels_of_the_hub(name, labels, tmp_path):
    "The hub's Parquet files hold numbers, and their names in the schema."
    rows, wanted = expected(name)
    ((column, names),) = labels.items()
    named = [row | {column: names[row[column]]} for row in rows]
    compare(load(put(tmp_path, "test.parquet", class_labels(named, labels))).questions, wanted)


def test_a_label_alone_decides_where_no_number_does(tmp_path):
    "MMLU with answers 1 and 2 only: the class labels say which letters these are."
    rows = [mmlu(i, (q[0], q[1], 1 + i % 2, q[3])) for i, q in enumerate(FOUR)]
    named = [row | {"answer": LETTERS[row["answer"]]} for row in rows]
    found = load(put(tmp_path, "test.parquet", class_labels(named, {"answer": list("ABCD")}))).questions
    assert [q.answer for q in found] == [1 + i % 2 for i in range(12)]


def test_redux_leaves_out_the_questions_that_have_an_error(tmp_path):
    "MMLU-Redux marks questions that are wrong; they are not asked."
    rows, wanted = expected("mmlu_redux")
    for i, kind in ((2, "wrong_groundtruth"), (7, "bad_question_clarity")):
        rows[i]["error_type"] = kind
    for name, options in (("mmlu_redux", True), ("mine", False)):
        path = source(rows, "jsonl", tmp_path)
        found = load(name, path=path) if options else load(path)
        compare(found.questions, [w for w in wanted if w[0] not in (2, 7)])
        assert "10" in found.said and "error_type" in found.said


def test_cevals_test_split_has_no_answers(tmp_path):
    "Without answers there is nothing to ask: refused, whether the column is empty or not there."
    rows = [ceval(i, q) for i, q in enumerate(FOUR)]
    empty = [row | {"answer": "", "explanation": ""} for row in rows]
    none = [{k: v for k, v in row.items() if k not in ("answer", "explanation")} for row in rows]
    for k, kept in enumerate((empty, none)):
        for kind in ("csv", "jsonl", "parquet", "frame"):
            refusal(source(kept, kind, tmp_path, f"accountant_test_{k}"))
            refusal(source(kept, kind, tmp_path, f"accountant_test_{k}"), on_bad="skip")


def test_agieval_with_several_right_choices(tmp_path):
    "A list of labels is refused by its row, and left out on request."
    rows, wanted = expected("agieval")
    rows[4]["label"] = ["A", "C"]
    path = source(rows, "jsonl", tmp_path)
    error = refusal(path)
    assert (error.row, error.field) == (5, "label")
    compare(load(path, on_bad="skip").questions, wanted[:4] + wanted[5:])


def test_medmcqa_counted_from_one_is_not_skipped_into_wrong_keys(tmp_path):
    "The authors' file under the hub's name: its own count, or refused with the line to type; never off by one."
    rows, wanted = expected("medmcqa of its authors")
    path = source(rows, "jsonl", tmp_path)
    for options in ({}, {"on_bad": "skip"}):
        try:
            found = load("medmcqa", path=path, **options)
        except CoraError as e:
            assert {"answer_as": "from 1"} in to_paste(e)
        else:
            compare(found.questions, wanted)
    compare(load("medmcqa", path=path, answer_as="from 1").questions, wanted)


def test_the_remark_that_answers_count_from_one(tmp_path):
    "MedMCQA's authors count from 1, and the loader says so."
    assert "from 1" in load(source(expected("medmcqa of its authors")[0], "jsonl", tmp_path)).said


def test_copas_columns_with_other_questions(tmp_path):
    "`premise, question, choice1, choice2` is COPA only where the question is `cause` or `effect`."
    rows = [dict(premise=passage(i), question=q[0], choice1=q[1][0], choice2=q[1][1], label=q[2]) for i, q in
            enumerate(TWO)]  # fmt: skip
    path = source(rows, "jsonl", tmp_path)
    try:
        found = load(path).questions
    except CoraError:
        found = load(path, columns={"context": "premise"}).questions
    for i, (got, q) in enumerate(zip(found, TWO, strict=True)):
        assert got.text == f"{passage(i)}\n\n{q[0]}" and got.answer == q[2]


def test_quality_and_dream(tmp_path):
    "Lists of questions beside their text: each question after its text, or refused; the gold label counts from 1."
    quality = [dict(article_id=f"a{k}", set_unique_id=f"a{k}_x", title="The town", article=PASSAGES[k] * 3, questions=[
        dict(question=q[0], question_unique_id=f"a{k}_{i}", options=list(q[1]), gold_label=q[2] + 1, difficult=0)
        for i, q in enumerate(FOUR) if i % 3 == k]) for k in range(3)]  # fmt: skip
    dream = [[["M: " + PASSAGES[k], "W: So I heard."], [dict(question=q[0], choice=q[1][:3], answer=q[1][q[2]])
             for i, q in enumerate(THREE) if i % 3 == k], f"4-{k}"] for k in range(3)]  # fmt: skip
    flat = [dict(dialogue_id=f"4-{i}", dialogue=["M: " + passage(i), "W: So I heard."], question=q[0], choice=q[1],
                 answer=right(q)) for i, q in enumerate(THREE)]  # fmt: skip
    tries = {"quality.jsonl": (quality, FOUR), "dream.json": ([dream], THREE), "dream.jsonl": (flat, THREE)}
    for name, (rows, questions) in tries.items():
        try:
            found = load(put(tmp_path, name, lines(rows))).questions
        except CoraError:
            continue
        assert len(found) == len(questions)
        for q in questions:
            (got,) = [f for f in found if f.text.endswith(q[0])]
            assert passage(questions.index(q)) in got.text and got.text.index(passage(questions.index(q))) < 20
            assert list(got.choices) == q[1] and got.answer == q[2]


# ---------------------------------------------------------------- where the file does not say how answers count


UNDECIDED = [dict(question=f"Which of these is {i}?", A=f"a{i}", B=f"b{i}", C=f"c{i}", D=f"d{i}", answer=1 + i % 2)
             for i in range(3)]  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "frame", "json", "tsv"])
@pytest.mark.parametrize("skip", [{}, {"on_bad": "skip"}], ids=["raise", "skip"])
def test_numbers_that_can_be_read_two_ways_are_refused(kind, skip, tmp_path):
    "Answers 1 and 2 of four: both lines to type are in the message, and each of them reads what it says."
    path = source(UNDECIDED, kind, tmp_path)
    lines_to_type = to_paste(refusal(path, **skip))
    assert {"answer_as": "from 0"} in lines_to_type and {"answer_as": "from 1"} in lines_to_type
    assert [q.answer for q in load(path, answer_as="from 0").questions] == [1, 2, 1]
    assert [q.answer for q in load(path, answer_as="from 1").questions] == [0, 1, 0]


def test_the_message_has_the_lines_as_they_are_typed(tmp_path):
    "With double quotes, as in the documentation."
    said = str(refusal(source(UNDECIDED, "csv", tmp_path)))
    assert 'answer_as="from 0"' in said and 'answer_as="from 1"' in said


def test_one_last_number_of_a_small_file_decides_nothing(tmp_path):
    "A 4 in three rows may be a slip: refused, or read from 1, never from 0."
    rows = [row | {"answer": k} for row, k in zip(UNDECIDED, (1, 4, 2))]
    try:
        found = load(source(rows, "csv", tmp_path)).questions
    except CoraError:
        return
    assert [q.answer for q in found] == [0, 3, 1]


def test_a_zero_decides(tmp_path):
    "A 0 can only be counted from 0."
    rows = [row | {"answer": k} for row, k in zip(UNDECIDED, (1, 0, 2))]
    assert [q.answer for q in load(source(rows, "csv", tmp_path)).questions] == [1, 0, 2]


def test_zeros_beside_a_number_past_the_last_choice(tmp_path):
    "0 and 4 of four choices contradict each other: the file is never read with a key that no row says."
    rows = [dict(question=f"Which is {i}?", A=f"a{i}", B=f"b{i}", C=f"c{i}", D=f"d{i}", answer=i % 5)
            for i in range(40)]  # fmt: skip
    refusal(source(rows, "csv", tmp_path))


def test_a_stated_count_that_rows_contradict_is_refused(tmp_path):
    "`answer_as` is no command to read a file wrongly: with answers 1 to 4, from 0 fits three of four rows."
    rows = [dict(question=f"Which is {i}?", A=f"a{i}", B=f"b{i}", C=f"c{i}", D=f"d{i}", answer=1 + i % 4)
            for i in range(40)]  # fmt: skip
    path = source(rows, "csv", tmp_path)
    refusal(path, answer_as="from 0")
    assert [q.answer for q in load(path).questions] == [i % 4 for i in range(40)]
    assert [q.answer for q in load(path, answer_as="from 1").questions] == [i % 4 for i in range(40)]


def test_answer_index_states_its_count(tmp_path):
    "A column called `answer_index` counts from 0, also in three rows."
    rows = [{k if k != "answer" else "answer_index": v for k, v in row.items()} for row in UNDECIDED]
    assert [q.answer for q in load(source(rows, "jsonl", tmp_path)).questions] == [1, 2, 1]
