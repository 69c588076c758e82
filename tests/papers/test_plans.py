"Plans: every table and figure named, counted, read and written; and carried out at a small size."

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

import cora_nb as cn
from cora_nb.benchmarks.load import load_benchmark
from cora_nb.benchmarks.samples import Part
from cora_nb.core import CoraError
from cora_nb.papers.reproduce import PLANS, load_plan, only, parse_plan, plan_list, plan_text
from cora_nb.papers.mcqa_plus_items import published_mcqa_plus
from cora_nb.papers.published import PAPERS as PUBLISHED
from cora_nb.papers.published import load_recorded
from cora_nb.papers.reproduce import _MEASURES, Size, ask_plan, make_item, plan_calls, _prepare_run, _run_questions
from cora_nb.respondents.likelihood import LikelihoodRespondent
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.results import lookup
from cora_nb.runs.store import Store
from cora_nb.runs.evaluate import Running

HUB = Path(__file__).parents[3] / "shared" / "data" / "hub"
TINY = Size(sample=3, benchmark="math")


def people():
    return [
        SimulatedRespondent(knows=k, seed=s, name=n, with_scores=True) for n, k, s in (("ann", 0.9, 1), ("bob", 0.3, 2))
    ]


@pytest.mark.parametrize("paper", PLANS)
def test_a_plan_is_read_as_it_is_written_and_names_every_measure(paper):
    plan = load_plan(paper)
    assert parse_plan(plan_text(plan)) == plan
    for item in plan.items.values():
        assert callable(_MEASURES.get(item.measure)), item
        assert item.about and not item.about.endswith(".")
    assert {run for item in plan.items.values() for run in item.runs} == set(plan.runs)


@pytest.mark.parametrize("paper", PUBLISHED)
def test_every_published_table_is_an_item_or_named_with_its_reason(paper):
    plan = load_plan(paper)
    assert {f"table_{n}" for n in PUBLISHED[paper]} <= {*plan.items, *plan.missing}
    assert not set(plan.items) & set(plan.missing)


def test_the_list_names_every_item_with_its_prompts():
    table = plan_list().set_index("item")
    assert table.loc["cora/table_1", "prompts"] == 33098
    assert table.loc["mcqa_plus/table_8", "prompts"] == 2 * 36 * (452 + 967)
    assert len(table) == sum(len(load_plan(p).items) for p in PLANS)


@pytest.mark.slow
@pytest.mark.skipif(not HUB.exists(), reason="no folder shared/data/hub beside the project")
@pytest.mark.parametrize("paper", PLANS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sizes_are_those_of_the_benchmarks(paper):
    counted = Counter()
    for run in load_plan(paper).runs.values():
        if run.shots or run.each and run.name != "sociology" or run.prompts and run.prompts > 100_000:
            continue  # the same questions without examples; four choices have 24 orders; minutes
        try:
            ready = _prepare_run(run, Size(path=str(HUB)))
        except CoraError as e:
            assert "there is no folder" in str(e) or "no such" in str(e) or "there are" in str(e), e
            continue
        assert len(ready.questions) == run.questions, run
        if ready.prepared:
            assert len(ready.prepared.prompts) == run.prompts, run
        counted["runs"] += 1
    assert counted["runs"]


def test_all_of_mmlu_counts_as_the_plan_says():
    if not HUB.exists():
        pytest.skip("no folder shared/data/hub beside the project")
    questions = load_benchmark("mmlu", path=HUB)
    run = load_plan("cora").runs["mmlu"]
    assert run.questions == len(questions)
    assert run.prompts == sum(2 + 6 * (q.n_choices - 1) for q in questions)


@pytest.mark.slow
def test_every_item_of_two_papers_is_made_from_runs_that_are_asked_once():
    for paper in ("cora", "mcqa_plus"):
        plan, taken = load_plan(paper), []
        asked = ask_plan(
            plan,
            people(),
            TINY,
            Running(progress=False),
            on_run=lambda run, name, step, r: taken.append((run.name, name, step)),
        )
        assert len(taken) == len(set(taken)) > len(plan.runs)
        for item in plan.items.values():
            made = make_item(item, asked)
            assert made.text and len(made.result), item.name
            if item.runs:
                assert {"ann", "bob"} & set(made.result["respondent"]), item.name


@pytest.mark.slow
def test_every_item_of_li_et_al_is_made_by_a_language_model():
    plan = load_plan("li2024")
    few = {"order_arc", "formats_arc", "repeated_arc", "sizes_math", "states_arc"}
    runs = {name: run for name, run in plan.runs.items() if name in few}
    items = {n: dataclasses.replace(i, runs=tuple(r for r in i.runs if r in few)) for n, i in plan.items.items()}
    asked = ask_plan(
        dataclasses.replace(plan, runs=runs),
        [cn.CausalRespondent("organism/skewed", device="cpu")],
        Size(6, "math"),
        Running(progress=False),
    )
    for item in items.values():
        made = make_item(dataclasses.replace(item, runs=item.runs or ("sizes_math",)), asked)
        assert made.text and "skewed" in set(made.result["respondent"]), item.name
        assert bool(made.figures) == item.name.startswith("figure"), item.name
    printed = make_item(items["table_3"], asked).text
    assert "GPT-4 (paper)" in printed and "2.681, p = 0.443" in printed


def test_hidden_states_are_read_of_language_models_alone():
    with pytest.raises(CoraError, match="name them as causal:PATH"):
        ask_plan(load_plan("li2024/table_6"), people(), TINY, Running(progress=False))


def test_an_item_asks_only_the_steps_it_needs():
    assert load_plan("mcqa_plus/table_2").runs["mmlu_0"].steps == ("mcqa_plus",)
    assert set(load_plan("mcqa_plus/table_2").runs) == {"mmlu_0", "medmcqa_0"}
    table = plan_calls(load_plan("mcqa_plus/table_2"), people()[:1], TINY)
    assert table.loc[("mmlu_0", "ann"), "prompts"] == 3 * 14


def test_none_of_the_above_stands_where_the_plan_says():
    "Table 3 says that it stands last, as in the paper's figures; the plan of ours says so, and so does what is asked."
    for run in load_plan("mcqa_plus").runs.values():
        assert run.options == {"nota_place": "last"}, run.name
    asked = ask_plan(load_plan("mcqa_plus/table_3"), people()[:1], TINY, Running(progress=False))
    nota = asked["mmlu_0"]["ann"]["nota_answer"].table
    assert (nota["answer"] == nota["n_choices"] - 1).all()


def test_published_percentages_are_shares():
    for table in (4, 5):
        assert published_mcqa_plus(table)["value"].max() < 1, table
    assert published_mcqa_plus(4)["value"].iloc[0] == pytest.approx(0.7031)
    ratio = published_mcqa_plus(5).query("score == 'Conf_wrong*/Conf_right'")["value"].iloc[0]
    assert ratio == pytest.approx(0.9269)


def test_the_plans_ask_what_the_papers_say():
    "Quadruple-Slit, Section 5.2: 100 questions, 24 orders, 100 for USMLE. The caption of MCQA+, Table 6: few-shot."
    slit = load_plan("quadruple_slit")
    asked = {name: (run.sample, run.prompts // run.questions) for name, run in slit.runs.items()}
    assert asked.pop("usmle") == (100, 100) and set(asked.values()) == {(100, 24)}
    mcqa_plus = load_plan("mcqa_plus")
    assert [mcqa_plus.runs[name].shots for name in mcqa_plus.items["table_6"].runs] == [5, 5]
    said = [words for plan in (slit, mcqa_plus) for item in plan.items.values() for words in item.differs]
    assert not [words for words in said if "lost" in words or "here with none" in words]


def test_who_is_not_in_a_table_is_named_below_it():
    knows = SimulatedRespondent(knows=1.0, name="knows")
    plan = load_plan("mcqa_plus/table_6")
    made = make_item(
        plan.items["table_6"], ask_plan(plan, [knows, people()[1]], Size(6, "math"), Running(progress=False))
    )
    assert "No question qualifies for this table: knows." in made.text and "bob" in made.text
    assert "Recall_m: share of these that name the choice that misled it before" in made.text


def test_what_is_said_of_the_size_fits_the_runs():
    size, plan = Size(3, "math"), load_plan("cora")
    assert size.words([]) == []
    assert size.words([plan.runs["medqa"]])[1] == "the benchmark math in place of the paper's"
    assert size.words([plan.runs["arc"]])[1].endswith(", with 5 examples")


def test_the_published_numbers_stand_beside_ones_own():
    plan = load_plan("cora/table_2")
    made = make_item(plan.items["table_2"], ask_plan(plan, people(), TINY, Running(progress=False)))
    assert lookup(made.result, "CoRA", respondent="Gran (paper)").value == 0.47
    assert lookup(made.result, "MCQA", respondent="ann").high >= lookup(made.result, "MCQA", respondent="ann").value
    line = next(line for line in made.text.splitlines() if "CoRA" in line)
    assert line.split()[-4:] == ["0.47", "(1)", "0.33", "(3)"] and "ann" in made.text.splitlines()[0]


@pytest.mark.slow
def test_seven_ways_share_the_weights_and_ask_a_language_model_alone():
    plan = load_plan("quadruple_slit/figure_3")
    plan = dataclasses.replace(plan, runs={"sociology": plan.runs["sociology"]})
    item = dataclasses.replace(plan.items["figure_3"], runs=("sociology",))
    with pytest.raises(CoraError, match="likelihood:PATH"):
        ask_plan(plan, people(), TINY, Running(progress=False))
    asked = ask_plan(
        plan, [LikelihoodRespondent("organism/steady", device="cpu")], Size(2, "math"), Running(progress=False)
    )
    assert len(asked["sociology"]["steady"]) == 7
    made = make_item(item, asked)
    shares = made.result[(made.result["score"] == "share") & (made.result["method"] == "se:All")]
    assert shares["value"].tolist() == [0.25] * 4 and set(made.figures) == {"figure_3"}


def test_a_second_time_nothing_is_asked(tmp_path):
    plan = load_plan("cora/table_5")
    with Store(tmp_path / "replies.sqlite") as store:
        first = ask_plan(plan, people(), TINY, Running(store, progress=False))
        again = ask_plan(plan, people(), TINY, Running(store, progress=False))
    assert [r[""].facts.calls["asked"] for r in again["medqa"].values()] == [0, 0]
    item = plan.items["table_5"]
    assert make_item(item, first).result.equals(make_item(item, again).result)


@pytest.mark.slow
def test_recorded_replies_give_the_reference_numbers():
    recorded = load_recorded("cat/medqa/medalpaca-7b")
    plan = only(load_plan("cora"), ["table_1", "table_5", "table_6"])
    asked = ask_plan(plan, [recorded])
    one, five, six = (make_item(item, asked).result for item in plan.items.values())
    name = recorded.name
    found = {s: lookup(one, s, respondent=name).value for s in ("MCQA", "MCQA+", "MV", "CoRA")}
    assert {s: round(v, 4) for s, v in found.items()} == {"MCQA": 0.2608, "MCQA+": 0.3571, "MV": 0.2435, "CoRA": 0.1954}
    assert lookup(five, "CoRA", respondent="GPT4o (paper)").value == 0.77
    assert lookup(six, "CoRA, sd of resamples", respondent="BMist (paper)").value == 0.001
    five, six = (table[table["respondent"] == name] for table in (five, six))
    part = five[~five["score"].str.contains("difference") & (five["method"] != "all")].set_index("score")["value"]
    assert part.round(4).to_dict() == {"MCQA+": 0.2668, "MV": 0.1595, "CoRA": 0.1985}
    means = {s: lookup(six, f"{s}, mean of resamples").value for s in ("MCQA+", "MV", "CoRA")}
    spreads = {s: 1000 * lookup(six, f"{s}, sd of resamples").value for s in ("MCQA+", "MV", "CoRA")}
    assert means == pytest.approx({"MCQA+": 0.357, "MV": 0.265, "CoRA": 0.1955}, abs=6e-4)
    assert spreads == pytest.approx({"MCQA+": 8.5, "MV": 13.6, "CoRA": 0.13}, rel=0.03)
    few = ask_plan(plan, [recorded], Size(sample=50))["medqa"][name][""]
    assert len(few.questions) == 50 and few.complete


def test_several_recorded_runs_and_somebody_who_is_asked():
    "Recorded runs of other sizes stand beside a respondent; with a sample, each gives as many questions."
    plan, family = load_plan("cora/table_4"), cn.make_variants(Part(sample=8).of(load_benchmark("math")), "cora")
    before = [cn.evaluate(who, family, progress=False) for who in people()]
    new = SimulatedRespondent(knows=0.5, seed=3, name="new")
    asked = ask_plan(plan, [*before, new], Size(5, "math"), Running(progress=False))["truthfulqa"]
    assert {name: len(steps[""].questions) for name, steps in asked.items()} == {"ann": 5, "bob": 5, "new": 5}
    assert set(asked["ann"][""].questions["question_id"]) == set(asked["bob"][""].questions["question_id"])
    made = make_item(plan.items["table_4"], {"truthfulqa": asked})
    assert {"ann", "bob", "new", "Gran (paper)"} <= set(made.result["respondent"])
    assert len(ask_plan(plan, before, Size(500), Running(progress=False))["truthfulqa"]["ann"][""].questions) == 8


def test_recorded_replies_cannot_stand_for_runs_that_need_more():
    taken = cn.evaluate(
        people()[0], cn.make_variants(Part(sample=3).of(load_benchmark("math")), "mcqa_plus"), progress=False
    )
    for address in ("mcqa_plus/table_3", "li2024/table_3", "li2024/table_6", "quadruple_slit/figure_3"):
        with pytest.raises(CoraError, match="these are replies to mcqa_plus") as e:
            ask_plan(load_plan(address), [taken])
        assert "\n" not in str(e.value)
    assert ask_plan(load_plan("mcqa_plus/table_7"), [taken])["all_mmlu_0"]["ann"][""].family == "mcqa_plus"


WRONG = {  # what is written in place of what, in a plan -> what is said
    "no TOML": ("cora/table_1", 'benchmark = "medqa"', "benchmark = medqa", "mine.toml: Invalid value"),
    "no such key": ("cora/table_1", 'benchmark = "medqa"', 'benchmark = "medqa"\nshot = 5', "there is no key 'shot'"),
    "another type": ("cora/table_2", "shots = 5", 'shots = "5"', "run mmlu: shots cannot be '5'"),
    "truth for a number": ("cora/table_2", "shots = 5", "shots = true", "run mmlu: shots cannot be True"),
    "no benchmark": ("cora/table_1", 'benchmark = "medqa"', "", "run medqa: benchmark is missing"),
    "no such run": ("cora/table_1", 'runs = ["medqa"]', 'runs = ["medq"]', "item table_1: there is no run 'medq'"),
    "no items": ("cora/table_1", "[items.table_1]", "[other.table_1]", "there is no key 'other'"),
    "no such family": ("li2024/figure_2", '"formats"', '"format"', "format"),
    "no such template": ("li2024/figure_2", 'template = "li2024"', 'template = "li"', "li2024"),
    "no such rule": ("li2024/figure_2", '"careful"', '"lenent"', "careful"),
    "no such option": ("li2024/figure_3", "only = [", "onli = [", "onli"),
    "no such measure": ("cora/table_1", '"scores"', '"score"', "score"),
    "no such step": (
        "mcqa_plus/table_2",
        '["mcqa_plus"]\nquest',
        '["mcqa"]\nquest',
        "steps of run mmlu_0 must be among",
    ),
    "no option of steps": ("mcqa_plus/table_2", "nota_place", "nota", "options of run mmlu_0 must be among orders"),
    "no such place": ("mcqa_plus/table_2", '"last"', '"first"', "nota_place must be one of answer, last, got 'first'"),
    "nobody's each": ("li2024/table_6", '"hidden_states"', '"states"', "each must be one of"),
    "no trials": ("li2024/figure_3", "trials = 5", "trials = 0", "trials"),
    "too many examples": ("cora/table_2", "shots = 5", "shots = -1", "k must be"),
    "no such shots": ("cora/table_2", "shots = 5", 'shots = 5\nshots_as = "altered"', "shots_as must be one of"),
    "no published table": ("cora/table_1", "published = [1]", "", "item table_1: the measure scores needs `published`"),
    "another published table": ("cora/table_1", "published = [1]", "published = [11]", "table must be"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_plan_that_was_changed_wrongly_is_one_clear_line(wrong, tmp_path):
    address, old, new, said = WRONG[wrong]
    text = plan_text(load_plan(address))
    assert old in text
    (tmp_path / "mine.toml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(CoraError) as e:
        plan = load_plan(str(tmp_path / "mine.toml"))
        asked = ask_plan(plan, people(), Size(2, "math"), Running(progress=False))
        for item in plan.items.values():
            make_item(item, asked)
    assert said in str(e.value) and "\n" not in str(e.value), str(e.value)


def test_replies_to_other_variants_are_refused():
    taken = cn.evaluate(
        people()[0], cn.make_variants(Part(sample=3).of(load_benchmark("math")), "cyclic"), progress=False
    )
    with pytest.raises(CoraError, match="run medqa asks the family cora, and these are replies to cyclic"):
        ask_plan(load_plan("cora/table_1"), [taken])


@pytest.mark.parametrize(
    "address, said",
    [
        ("cora/table_9", "cora has no item 'table_9'; there are table_1"),
        ("mcqa_plus/table_1", "is not made: which benchmarks others have reported"),
        ("nature", "a plan is one of cora, mcqa_plus"),
        ("mine.toml", "mine.toml: there is no such file"),
    ],
)
def test_an_address_that_leads_nowhere_is_one_clear_line(address, said):
    with pytest.raises(CoraError, match=said.replace("(", r"\(")):
        load_plan(address)


def test_a_changed_plan_is_run_by_its_path(tmp_path):
    text = plan_text(load_plan("cora/table_2")).replace("shots = 5", 'shots = 1\nparse = "careful"')
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    plan = load_plan(str(file))
    assert plan.runs["mmlu"].shots == 1 and plan.runs["mmlu"].parse == "careful"
    asked = ask_plan(plan, people()[:1], TINY, Running(progress=False))
    assert asked["mmlu"]["ann"][""].facts.asked.k == 1
    assert asked["mmlu"]["ann"][""].facts.run.plan["parse"] == "careful"


def test_questions_with_too_many_choices_are_left_out_before_any_is_drawn():
    math = load_benchmark("math")
    assert {q.n_choices for q in math} == {4}
    run = dataclasses.replace(load_plan("quadruple_slit/figure_2").runs["usmle"], benchmark="math", sample=7)
    assert run.most_choices == 6 and _run_questions(run) == Part(sample=7, seed=run.seed).of(math)
    assert not _run_questions(dataclasses.replace(run, most_choices=3, sample=None))
    with pytest.raises(CoraError, match="sample must be at most the number of questions, 0, got 7"):
        _run_questions(dataclasses.replace(run, most_choices=3))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_sizes_of_benchmarks_that_are_not_at_hand(tmp_path):
    "M3KE has five questions in each of 71 subjects, as its repository does."
    import pyarrow as pa
    import pyarrow.parquet as pq

    for subject in range(71):
        folder = tmp_path / "TJUNLP__M3KE" / f"subject {subject:02}"
        folder.mkdir(parents=True)
        rows = [dict(id=n, question=f"{subject}, {n}?", **dict(zip("ABCD", "wxyz")), answer="B") for n in range(5)]
        pq.write_table(pa.Table.from_pylist(rows), folder / "dev.parquet")
    runs = load_plan("li2024").runs
    for name in ("order_m3ke", "sizes_m3ke"):
        ready = _prepare_run(runs[name], Size(path=str(tmp_path)))
        assert len(ready.questions) == runs[name].questions == 299
        assert len(ready.prepared.prompts) == runs[name].prompts


def test_as_many_questions_of_m3ke_as_there_are_published_letters():
    letters = load_recorded("li2024/order_predictions")
    assert set(letters.filter(like="M3KE").notna().sum()) == {299}
    assert set(letters.filter(like="ARC").notna().sum()) == {load_plan("li2024").runs["order_arc"].questions}


def test_table_3_has_m3ke_beside_the_published_letters():
    plan = load_plan("li2024/table_3")
    run = dataclasses.replace(plan.runs["order_m3ke"], sample=20)
    asked = ask_plan(
        dataclasses.replace(plan, runs={"order_m3ke": run}), people(), Size(20, "math"), Running(progress=False)
    )
    made = make_item(dataclasses.replace(plan.items["table_3"], runs=("order_m3ke",)), asked)
    assert set(made.result["benchmark"]) == {"M3KE"} and {"ann", "GPT-4 (paper)"} <= set(made.result["respondent"])
