"""The models of the papers: every one there, nothing guessed, and what is missing said."""

import pytest

from cora_nb.core import CoraError, data_path
from cora_nb.papers.models import model_cards
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
    assert cards.loc[cards["candidates"] != "", "candidates"].str.fullmatch(rf"{HUB_ID}(; {HUB_ID})*").all()
    assert not (known & (cards["candidates"] != "")).any()


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
