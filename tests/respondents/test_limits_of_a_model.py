"""What a model cannot do is said: prompts beyond its window, passes that fail, switches of its template."""

import json
import re
import shutil
from dataclasses import replace

import pytest
from chat_models import reads
from helpers import run
from tiny_models import torch, transformers

import cora_nb as cn
from cora_nb.cli.respondents import make_respondents
from cora_nb.cli.run import cora_run
from cora_nb.core import CoraError
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import LikelihoodRespondent, context_and_continuations
from cora_nb.respondents.local import organism
from cora_nb.respondents.protocol import ask
from cora_nb.runs.store import Store

WAYS = {"causal": CausalRespondent, "likelihood": LikelihoodRespondent}
WINDOW = {"causal": 80, "likelihood": 80}  # tokens: some of the prompts fit


@pytest.fixture(scope="module", autouse=True)
def quiet():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    yield
    torch.set_num_threads(before)


def different(variants):
    "Variants whose prompts are all different, so that each is asked and counted."
    found = {p.text: v for v, p in zip(variants, cn.Asking().prompts(variants))}
    return list(found.values())


VARIANTS = different(cn.make_variants(cn.load_benchmark("math")[:5]))


@pytest.fixture
def narrow(tmp_path):
    def make(window):
        folder = shutil.copytree(organism("steady"), tmp_path / f"narrow{window}", dirs_exist_ok=True)
        config = json.loads((folder / "config.json").read_text("utf-8"))
        (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": window}), "utf-8")
        return str(folder)

    return make


def asked(who, *asking):
    return cn.evaluate(who, VARIANTS, *asking, progress=False)


def cutting():
    "Ask prompts that are too long as well."
    return cn.Asking(truncate=True)


def remarks(found):
    return " ".join(str(r) for r in cn.score(found)["remarks"])


def numbers(text):
    return [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", text)]


# the window


@pytest.mark.parametrize("way", WAYS)
def test_a_prompt_beyond_the_window_is_a_failure_that_names_both_numbers(narrow, way):
    window = WINDOW[way]
    table = asked(WAYS[way](narrow(window), device="cpu")).table
    failed = table[table.state == "failed"]
    assert 0 < len(failed) < len(table) and set(table.state) == {"failed", "answered"}
    for error in failed.error:
        assert window in numbers(error) and max(numbers(error)) > window, error
    assert table[table.state == "answered"].correct.all()


@pytest.mark.parametrize("way", WAYS)
def test_prompts_that_fit_are_answered_as_ever(narrow, way):
    wide, tight = (asked(WAYS[way](path, device="cpu")) for path in (narrow(1024), narrow(WINDOW[way])))
    both = tight.table[tight.table.state == "answered"].index
    assert list(wide.table.loc[both].prediction) == list(tight.table.loc[both].prediction)


@pytest.mark.parametrize("way", WAYS)
def test_cut_on_request_and_said_beside_the_scores(narrow, way):
    path = narrow(WINDOW[way])
    n = int((asked(WAYS[way](path, device="cpu")).table.state == "failed").sum())
    cut = asked(WAYS[way](path, device="cpu"), cutting())
    assert 0 < n < len(cut.table) and "failed" not in set(cut.table.state)
    assert n in numbers(remarks(cut)), remarks(cut)


@pytest.mark.parametrize("way", WAYS)
def test_where_nothing_is_cut_nothing_is_said(narrow, way):
    who = WAYS[way](narrow(1024), device="cpu")
    plain, allowed = asked(who), asked(who, cutting())
    assert remarks(plain) == remarks(allowed)
    assert list(plain.table.reply.fillna("")) == list(allowed.table.reply.fillna(""))
    assert list(plain.table.scores.map(str)) == list(allowed.table.scores.map(str))


def longest():
    "The longest prompt and its variant."
    prompts = cn.Asking().prompts(VARIANTS)
    return max(zip(prompts, VARIANTS, strict=True), key=lambda both: len(both[0].text))


def cut_and_read(who, monkeypatch):
    "What the model reads of the longest prompt when it may be cut."
    prompt, variant = longest()
    runs = []

    def put():
        runs.append(cn.evaluate(who, [variant], cutting(), progress=False))

    rows = reads(who, prompt, monkeypatch, put)
    assert all(set(found.table.state) == {"answered"} for found in runs)
    return rows


def test_a_prompt_that_fits_keeps_the_room_for_its_reply(narrow):
    "Only where something has to be cut does the reply get less, and then no less than half of the window."
    prompt = longest()[0]
    who = CausalRespondent(narrow(200), device="cpu", max_new_tokens=110)
    rows = [who._row(0, replace(prompt, truncate=t)) for t in (False, True)]
    assert [(row.limit, row.cut) for row in rows] == [(110, 0)] * 2
    n = len(rows[0].ids)
    tight = CausalRespondent(narrow(n + 19), device="cpu", max_new_tokens=40)._row(0, replace(prompt, truncate=True))
    assert (tight.limit, tight.cut) == (40, 20) and tight.ids == rows[0].ids[20:]
    short = CausalRespondent(narrow(30), device="cpu", max_new_tokens=40)._row(0, replace(prompt, truncate=True))
    assert short.limit == 15 and len(short.ids) == 16
    for room in (200, 199, 201, 500):
        row = CausalRespondent(narrow(200), device="cpu", max_new_tokens=room)._row(0, replace(prompt, truncate=True))
        assert row.cut == 0 and row.ids == rows[0].ids and len(row.ids) + row.limit - 1 == 200


def test_causal_cuts_on_the_left(narrow, monkeypatch):
    (full,) = reads(CausalRespondent(narrow(1024), device="cpu"), longest()[0], monkeypatch)
    (row,) = cut_and_read(CausalRespondent(narrow(60), device="cpu", max_new_tokens=1), monkeypatch)
    assert 50 < len(row) <= 60 < len(full)
    assert row[1:] == full[1 - len(row) :]  # the beginning of a text may be kept


def test_likelihood_cuts_on_the_left(narrow, monkeypatch):
    who = LikelihoodRespondent(narrow(30), device="cpu")
    ids = who.tokenizer(context_and_continuations(longest()[0], "joint-label")[0].rstrip())["input_ids"]
    read = [i for row in cut_and_read(who, monkeypatch) for i in row]
    assert len(ids) > 31 and holds(read, ids[-20:]) and not holds(read, ids[1:10])


def holds(ids, part):
    return any(ids[i : i + len(part)] == part for i in range(len(ids)))


@pytest.mark.parametrize("way", WAYS)
def test_truncate_in_one_process(narrow, way, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    spec = f"{way}:{narrow(WINDOW[way])},name=m"
    with pytest.raises(SystemExit):  # some prompts failed
        cora_run([spec], limit=3, store="none", out="plain")
    plain = capsys.readouterr().out
    cora_run([spec], limit=3, store="none", out="cut", truncate=True)
    cut = capsys.readouterr().out
    failed = int(re.search(r"(\d+) failed", plain)[1])
    assert failed > 0 and " 0 failed" in cut
    added = [line for line in cut.splitlines() if line not in plain.splitlines()]
    assert any(numbers(line) and re.search("cut|truncat|window", line) for line in added), cut


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_truncate_as_it_is_typed(narrow, way, tmp_path):
    words = ("cora_run", f"{way}:{narrow(WINDOW[way])},name=m", "--limit", "2", "--store", "none")
    code, said, errors = run(*words, "--truncate", cwd=tmp_path)
    assert code == 0, errors
    assert " 0 failed" in said and re.search("cut|truncat|window", said)


def test_a_cut_reply_is_not_taken_from_the_store_for_a_whole_one(narrow, tmp_path):
    "Nor the other way round: a failure stays one where nobody asked for a cut."
    path, store = narrow(WINDOW["causal"]), Store(tmp_path / "replies.sqlite")
    cut = cn.evaluate(CausalRespondent(path, device="cpu"), VARIANTS, cutting(), store=store, progress=False)
    plain = cn.evaluate(CausalRespondent(path, device="cpu"), VARIANTS, store=store, progress=False)
    again = cn.evaluate(CausalRespondent(path, device="cpu"), VARIANTS, cutting(), store=store, progress=False)
    n = int((plain.table.state == "failed").sum())
    assert n > 0 and "failed" not in set(cut.table.state)
    assert again.facts.calls["asked"] == 0 and n in numbers(remarks(again))


# passes that fail

ERRORS = {
    "KeyError": KeyError("position_embeddings"),
    "TypeError": TypeError("forward() got an unexpected keyword argument"),
    "ValueError": ValueError("of two\nlines"),
    "RuntimeError": RuntimeError("mat1 and mat2 shapes cannot be multiplied (1x2 and 3x4)"),
    "AttributeError": AttributeError("'NoneType' object has no attribute 'shape'"),
    "NotImplementedError": NotImplementedError(),
    "IndexError": IndexError("index out of range in self"),
    "AssertionError": AssertionError(),
    "ImportError": ImportError("install triton"),
    "an error of its own": type("Odd", (Exception,), {})("boom"),
}


@pytest.fixture
def fails(tmp_path, monkeypatch):
    "A respondent whose model raises an error after so many passes."

    def make(way, error, after=0):
        folder = shutil.copytree(organism("steady"), tmp_path / "failing")
        who, n = WAYS[way](str(folder), device="cpu"), 0
        if after:
            ask(who, cn.Asking().prompts(VARIANTS[:2]))  # tests of the model are over
        forward = who.model.forward

        def broken(*words, **named):
            nonlocal n
            n += 1
            if n > after:
                raise error
            return forward(*words, **named)

        monkeypatch.setattr(who.model, "forward", broken)
        return who

    return make


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("way", WAYS)
def test_a_pass_that_fails_ends_the_run_with_one_line(fails, way, name, after):
    who = fails(way, ERRORS[name], after)
    small = {"batch_tokens": 100} if way == "causal" else {"room": 100}
    for field, value in small.items():
        setattr(who, field, value)  # several passes
    with pytest.raises(CoraError) as e:
        asked(who)
    said = str(e.value)
    assert len(said.splitlines()) == 1 and who.path in said
    assert " ".join(str(ERRORS[name].args[0]).split()) in said if ERRORS[name].args else True, said


# switches of a template

HYBRID = (
    "{{ bos_token }}{% for m in messages %}{{ m['content'] }} {% endfor %}"
    "{% if enable_thinking is not defined or enable_thinking %}</s></s></s>{% endif %}"
)
SEES = "{{ bos_token }}{% for m in messages %}{{ m.content }} {% endfor %}{{ [a, b, c, d] | tojson }}"


@pytest.fixture
def hybrid(tmp_path):
    def make(template=HYBRID):
        folder = shutil.copytree(organism("steady"), tmp_path / "hybrid")
        (folder / "chat_template.jinja").write_text(template, "utf-8")
        return folder

    return make


@pytest.mark.parametrize("typed, right", [("false", True), ("true", False)])
def test_a_switch_that_is_typed_reaches_the_template(hybrid, tmp_path, monkeypatch, capsys, typed, right):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    spec = f"causal:{hybrid()},name=m,chat_options.enable_thinking={typed}"
    cora_run([spec], limit=2, family="cyclic", store="none", out="runs")
    said = capsys.readouterr().out
    n, correct = (int(re.search(rf"(\d+) {word}", said)[1]) for word in ("replies", "right"))
    assert (n == correct) == right


def test_switches_are_values_of_json(hybrid):
    given = "chat_options.a=false,chat_options.b=3,chat_options.c=high,chat_options.d=true"
    (who,) = make_respondents([f"causal:{hybrid(SEES)},{given}"])
    assert who.chat_options == {"a": False, "b": 3, "c": "high", "d": True}
    prompt = cn.Asking().prompts(VARIANTS[:1])[0]
    assert who.sent(prompt).endswith('[false, 3, "high", true]')


def test_switches_beside_other_fields(hybrid):
    (who,) = make_respondents([f"causal:{hybrid()},chat_options.enable_thinking=false,max_new_tokens=7,name=x"])
    assert (who.chat_options, who.max_new_tokens, who.name) == ({"enable_thinking": False}, 7, "x")


def test_an_old_way_to_type_it_says_how(hybrid):
    with pytest.raises(CoraError, match="chat_options"):
        make_respondents([f"causal:{hybrid()},enable_thinking=false"])


def test_two_settings_of_a_switch_have_two_keys(hybrid):
    path, prompt = hybrid(), cn.Asking().prompts(VARIANTS[:1])[0]
    requests = [
        json.dumps(CausalRespondent(str(path), device="cpu", chat_options={"enable_thinking": on}).request(prompt))
        for on in (True, False)
    ]
    assert requests[0] != requests[1]


@pytest.mark.slow
def test_a_switch_as_it_is_typed(hybrid, tmp_path):
    words = ("cora_run", f"causal:{hybrid()},name=m,chat_options.enable_thinking=false", "--limit", "3")
    code, said, errors = run(*words, "--store", "none", cwd=tmp_path)
    assert code == 0, errors
    assert "60 replies: 60 right" in said
