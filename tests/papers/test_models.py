"""The models of the papers: every one there, nothing guessed, and what is missing said."""

import pytest

from cora_nb.cli.respondents import make_respondent
from cora_nb.core import CoraError, data_path
from cora_nb.papers.published import card_spec, model_cards
from cora_nb.papers.published import load_published

HUB_ID = r"[\w.-]+/[\w.-]+"


def test_every_model_of_the_papers_is_there_once():
    cards = model_cards()
    assert cards["paper"].value_counts(sort=False).to_dict() == {
        "cora": 8,
        "mcqa_plus": 3,
        "quadruple_slit": 11,
        "li2024": 13,
    }
    assert not cards[["paper", "key"]].duplicated().any() and cards["key"].str.fullmatch(r"[a-z0-9.-]+").all()
    assert cards["source"].ne("").all() and "`models.csv`" in data_path("published", "README.md").read_text()
    printed = {m for t in range(1, 5) for m in load_published(t)["model_name"]}
    assert {
        n.replace("GPT4o version", "GPT4o, version").replace('"', "") for n in model_cards("cora")["name"]
    } == printed
    assert set(model_cards("mcqa_plus")["name"]) == set(load_published(2, "mcqa_plus")["model"])
    assert set(load_published(3, "li2024")["model"]) <= set(model_cards("li2024")["name"])


def test_a_name_on_the_hub_says_where_it_comes_from():
    cards = model_cards()
    known = cards["hub_id"] != ""
    assert cards.loc[known, "hub_id"].str.fullmatch(HUB_ID).all()
    assert cards.loc[known, "hub_id_from"].isin(["paper", "repository", "name"]).all()
    assert (cards.loc[~known, "hub_id_from"] == "").all()
    served = cards["weights"] == "served"
    maybe = cards["candidates"] != ""
    assert cards.loc[maybe & ~served, "candidates"].str.fullmatch(rf"{HUB_ID}(; {HUB_ID})*").all()
    assert not ((known | cards["api"].ne("")) & maybe).any()
    assert not (cards["api"].ne("") & ~served).any() and cards["chat"].isin(["no", ""]).all()


def test_what_is_not_known_is_said():
    cards = model_cards()
    assert cards["kind"].isin(["base", "instruct", ""]).all()
    silent = cards[cards["not_known"] == ""]
    assert list(silent["key"]) == ["gpt-4o"] and (silent["revision"] != "").all()
    on_the_hub = cards[cards["weights"] != "served"]
    assert on_the_hub["not_known"].str.contains("revision|which sum").all()


@pytest.mark.parametrize("paper", ("cat", "", 1, ["cora"]))
def test_unknown_paper(paper):
    with pytest.raises(
        CoraError, match=r"\Apaper must be one of cora, mcqa_plus, quadruple_slit, li2024, got [^\n]*\Z"
    ):
        model_cards(paper)


def test_every_card_is_a_respondent_or_says_which_it_may_be():
    for card in model_cards().itertuples():
        name = f"{card.paper}/{card.key}"
        if not (card.hub_id or card.api):
            with pytest.raises(CoraError, match=r"\Apaper:[^\n]*\Z") as e:
                card_spec(name)
            assert card.not_known in str(e.value) and all(m in str(e.value) for m in card.candidates.split("; "))
            continue
        who = make_respondent(f"paper:{name}")
        assert who.name == card.key
        if card.weights == "served":
            assert who.model == card.api
        else:
            assert (who.path, who.revision or "") == (card.hub_id, card.revision or card.branch)
            assert who.chat is (False if card.chat else None)
            assert make_respondent(card_spec(name, kind="likelihood")).path == card.hub_id


def test_fields_behind_the_name_are_added_and_win():
    who = make_respondent("paper:mpt-7b,revision=abc,name=mine,dtype=float16")
    assert (who.path, who.revision, who.name, who.dtype) == ("mosaicml/mpt-7b", "abc", "mine", "float16")
    with pytest.raises(CoraError, match="a causal respondent has the fields .* got 'wisdom=1'"):
        make_respondent("paper:mpt-7b,wisdom=1")
    with pytest.raises(CoraError, match="paper: needs a model"):
        make_respondent("paper:")


@pytest.mark.parametrize(
    "name, said",
    [
        ("llama2-13b", "name it as paper:mcqa_plus/llama2-13b or paper:quadruple_slit/llama2-13b"),
        ("mistral", "no paper has a model 'mistral'; did you mean mistral-7b?"),
        ("li2024/mpt-7b", "no paper has a model 'li2024/mpt-7b'"),
        ("qqqq", "no paper has a model 'qqqq'; cora list models shows all"),
        ("alpaca-7b", "name a model yourself, as causal:MODEL"),
        ("chatgpt-3.5", "name one: chat:gpt-3.5-turbo"),
    ],
)
def test_what_is_not_certain_is_one_line(name, said):
    with pytest.raises(CoraError, match=r"\A[^\n]*\Z") as e:
        card_spec(name)
    assert said in str(e.value)


def test_the_plans_own_paper_is_meant():
    assert card_spec("llama2-13b", "quadruple_slit", "likelihood").startswith("likelihood:meta-llama/Llama-2-13b-hf,")
    assert card_spec("llama2-chat-7b") == card_spec("llama2-chat-7b", "li2024")
    with pytest.raises(CoraError, match="the paper leaves open base or chat"):
        card_spec("llama2-13b", "mcqa_plus")
