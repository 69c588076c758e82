"""Published raw data: from a folder or from a server, never anything but the published file, and one line otherwise."""

import csv
import io
import os
import re
import subprocess
import sys
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pyarrow.parquet as pq
import pytest

from cora_nb.core import CoraError, data_path
from cora_nb.metrics.bias import position_ranks
from cora_nb.metrics.calibration import ece_interval
from cora_nb.metrics.circular import position_spread
from cora_nb.metrics.consistency import inconsistency_components
from cora_nb.metrics.consistency import consistency_by, label_sequences
from cora_nb.metrics.scoring import score
from cora_nb.metrics.guessing import chance_scores
from cora_nb.metrics.items import slot_table
from cora_nb.papers import published
from cora_nb.papers.published import RECORDED, _RecordedFile, load_recorded, recorded_file, recorded_swaps
from cora_nb.metrics.order import letter_table, order_tests, published_swaps
from cora_nb.metrics.guessing import prompt_numbers

CONTENT = b"\xef\xbb\xbfAnswer,Consistency,Accuracy,words\r\nAAAB,0.75,0,yes\r\nDDDD,1,1,no"
EXCERPT = b"Answer,Consistency,Accuracy\nAAAB,0.75,0.0\nDDDD,1.0,1.0\n"
NAME = "li2024/consistency_lfg_gpt35"
CAT = "cat/medqa/medalpaca-7b"
KNOWN, REAL = RECORDED[NAME], dict(RECORDED)
SHARED = {k: v for k, v in os.environ.items() if k in ("CORA_SHARED", "XDG_CACHE_HOME")}  # before they are hidden
URL = f"/{KNOWN.repository}/raw/{KNOWN.commit}/{KNOWN.path}"


@pytest.fixture(autouse=True)
def nothing_here(tmp_path, monkeypatch):
    "No folder, an empty cache, and a small file in the place of a published one."
    monkeypatch.delenv("CORA_RECORDED", raising=False)
    monkeypatch.setenv("CORA_SHARED", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    small = KNOWN._replace(sha256=sha256(CONTENT).hexdigest()[:16], excerpt=sha256(EXCERPT).hexdigest())
    monkeypatch.setitem(RECORDED, NAME, small)


class Site:
    "A server on this machine in the place of GitHub: what it serves by path, and what was asked for."

    def __init__(self):
        self.files, self.asked, self.status, self.cut = {URL: CONTENT}, [], 200, 0
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = unquote(self.path)
                site.asked.append(path)
                if path.startswith("/Meetyou") or path.startswith("/IBM"):  # as GitHub does
                    self.send_response(302)
                    self.send_header("Location", f"/raw{self.path}")
                    return self.end_headers()
                body = site.files.get(path.removeprefix("/raw"))
                self.send_response(404 if body is None else site.status)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write((body or b"")[: len(body or b"") - site.cut])

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site(monkeypatch):
    site = Site()
    monkeypatch.setattr(published, "_SITE", site.address)
    yield site
    site.close()


def cached(tmp_path):
    return [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def refused(words, *args):
    "The one line of the error."
    with pytest.raises(CoraError) as e:
        load_recorded(NAME, *args, texts=True)
    assert "\n" not in str(e.value) and words in str(e.value)
    return str(e.value)


def test_downloaded_once_from_the_commit(site, tmp_path):
    first = recorded_file(NAME)
    assert first.read_bytes() == CONTENT and site.asked == [URL, f"/raw{URL}"]
    assert cached(tmp_path) == [first] and KNOWN.commit in str(first)
    assert recorded_file(NAME) == first and len(site.asked) == 2
    table = load_recorded(NAME, texts=True)
    assert table.to_dict("list") == {"Answer": ["AAAB", "DDDD"], "Consistency": [0.75, 1.0], "Accuracy": [0, 1]}


def test_another_content_is_refused_and_not_kept(site, tmp_path):
    site.files[URL] = b"<html>Sign in</html>"
    said = refused("not the published file: its SHA-256 begins with")
    assert site.address in said and sha256(site.files[URL]).hexdigest()[:16] in said
    assert cached(tmp_path) == []
    site.files[URL] = CONTENT
    assert len(load_recorded(NAME, texts=True)) == 2


def test_a_download_that_breaks_off_leaves_nothing(site, tmp_path):
    site.cut = 10
    refused("li2024/consistency_lfg_gpt35.csv")
    assert cached(tmp_path) == []


def test_a_cached_file_that_was_altered_is_taken_again(site):
    path = recorded_file(NAME)
    path.write_bytes(CONTENT[:-1])
    assert recorded_file(NAME).read_bytes() == CONTENT and len(site.asked) == 4


@pytest.mark.parametrize("status, words", [(404, "(HTTP status 404)"), (503, "(HTTP status 503)")])
def test_a_server_that_refuses(site, status, words):
    site.status = status
    said = refused(words)
    assert "CORA_RECORDED" in said and KNOWN.path.replace(" ", "%20") in said


def test_no_network_and_no_folder(monkeypatch):
    monkeypatch.setattr(published, "_SITE", "http://127.0.0.1:9")
    said = refused("(ConnectionError)")
    assert said.startswith("li2024/consistency_lfg_gpt35.csv is not in a local folder") and "CORA_RECORDED" in said


@pytest.mark.parametrize("at", (KNOWN.name, KNOWN.path))
@pytest.mark.parametrize("content", (CONTENT, EXCERPT))
def test_a_folder_of_ours_or_a_clone_needs_no_network(tmp_path, monkeypatch, site, at, content):
    path = tmp_path / "mine" / at
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert recorded_file(NAME, tmp_path / "mine") == path
    assert load_recorded(NAME, tmp_path / "mine")["Accuracy"].tolist() == [0, 1]
    monkeypatch.setenv("CORA_RECORDED", str(tmp_path / "mine"))
    assert recorded_file(NAME) == path and site.asked == []


def test_beside_a_checkout(tmp_path, monkeypatch, site):
    path = tmp_path / "shared" / "data" / "recorded" / KNOWN.name
    path.parent.mkdir(parents=True)
    path.write_bytes(EXCERPT)
    monkeypatch.setenv("CORA_SHARED", str(tmp_path / "shared"))
    monkeypatch.setenv("CORA_RECORDED", str(tmp_path))  # has it not, and is not the end
    assert recorded_file(NAME) == path and site.asked == []


def test_a_named_folder_is_the_only_place(tmp_path, site):
    refused(f"there is neither {KNOWN.name} nor {KNOWN.path} in this folder", tmp_path)
    path = tmp_path / KNOWN.name
    path.parent.mkdir()
    path.write_bytes(EXCERPT + b"A,1,0\n")
    refused(f"{path}: not the published file", tmp_path)
    assert site.asked == []


@pytest.mark.parametrize("name", ("cat", "li2024", "", None, 1, "cat/medqa/medalpaca-7b "))
def test_unknown_name(name):
    with pytest.raises(CoraError, match=r"\Aname must be one of cat/medqa/medalpaca-7b, [^\n]*\Z"):
        load_recorded(name)


def test_every_file_is_pinned():
    for name, file in RECORDED.items():
        assert isinstance(file, _RecordedFile) and len(file.commit) == 40 and len(file.sha256) in (16, 64)
        assert file.name.split(".")[0] in (name, "cat_medqa_medalpaca-7b")


# --- the published files themselves, where they can be had ---


@pytest.fixture(scope="module")
def copies(recorded_at):
    "Where they are: found before the fixture above hides them."
    return {name: recorded_at(name) for name in RECORDED}


def with_mark_and_crlf(text):
    "As the authors' spreadsheet wrote it: a byte order mark, CR LF, and no end of the last line."
    return b"\xef\xbb\xbf" + text.rstrip("\n").replace("\n", "\r\n").encode()


def as_published(name, excerpt):
    "The authors' file, byte by byte, from our copy of it."
    if sha256(excerpt.read_bytes()).hexdigest() == RECORDED[name].sha256:  # it was downloaded
        return excerpt.read_bytes()
    text = excerpt.read_text(encoding="utf-8-sig")
    if name == "li2024/math_300":
        out, rows = io.StringIO(), list(csv.DictReader(io.StringIO(text)))
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*rows[0], "MC", "MC_R"])
        for row in rows:
            shown = [f"{letter} {float(row[letter])}" for letter in "ABCD"]
            orders = [shown, [shown[1], shown[0], *shown[2:]]]
            asked = [f"请选择一个选项{row['Question']}: {' , '.join(o)}。只能选择一个选项，禁止解释。" for o in orders]
            writer.writerow([*row.values(), *asked])
        text = out.getvalue()
    return with_mark_and_crlf(text)


@pytest.mark.parametrize("name", ("li2024/order_predictions", "li2024/math_300"))
def test_the_whole_published_file_gives_what_our_copy_gives(name, copies, site):
    "Two of the authors' files can be written again from our copies, and have the published hash."
    copy, known = copies[name], RECORDED[name]
    content = as_published(name, copy)
    assert sha256(content).hexdigest() == known.sha256
    site.files[f"/{known.repository}/raw/{known.commit}/{known.path}"] = content
    ours, theirs = load_recorded(name, copy.parents[1], texts=True), load_recorded(name, texts=True)
    assert len(site.asked) == 2 and len(ours) in (300, 344)
    assert ours.equals(theirs) if isinstance(ours, pd.DataFrame) else ours == theirs


@pytest.mark.slow
def test_the_recorded_replies_by_either_way(copies, site):
    copy, known = copies[CAT], RECORDED[CAT]
    site.files[f"/{known.repository}/raw/{known.commit}/{known.path}"] = copy.read_bytes()
    downloaded = load_recorded(CAT, texts=True)
    assert len(site.asked) == 2 and len(downloaded) == 58_558 and downloaded.name == "medalpaca-7b"
    assert downloaded.facts.published["commit"] == known.commit
    assert downloaded.equals(load_recorded(CAT, copy.parent, texts=True))


def test_the_letters_are_counted_as_the_counts_that_ship(copies):
    found = recorded_swaps(copies["li2024/order_predictions"].parents[1])
    assert list(found) == list(published_swaps())
    for name, table in published_swaps().items():
        pd.testing.assert_frame_equal(found[name], table, check_dtype=False)


FACTS = [name for name in RECORDED if name != "li2024/math_300"]


@pytest.mark.parametrize("name", FACTS)
def test_facts_need_neither_folder_nor_network(name, site):
    found = load_recorded(name)
    assert len(found) and site.asked == []


def test_questions_are_texts(site):
    with pytest.raises(CoraError, match=r"\Ali2024/math_300 is a list of questions, .* texts=True\) gets them\Z"):
        load_recorded("li2024/math_300")
    assert site.asked == []


def test_no_text_ships():
    run = load_recorded(CAT)
    assert run.questions[["subject", "text", "choices"]].isna().all(axis=None) and run.table["reply"].isna().all()
    assert run.questions["answer"].notna().all() and run.facts.published["texts"] is False
    assert run.first_trial().complete
    folder = data_path("recorded")
    assert sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) < 200_000
    for name in FACTS[1:]:
        text = (folder / RECORDED[name].name).read_text(encoding="ascii")
        assert re.fullmatch(r"[-A-Z0-9.,\n]*", "\n".join(text.splitlines()[1:]))


@pytest.mark.slow
def test_the_facts_of_the_replies_are_those_of_the_file(copies):
    "Every column but the replies, and so every measure; also an import from a folder of which the texts are left out."
    theirs, ours = load_recorded(CAT, copies[CAT].parent, texts=True), load_recorded(CAT)
    columns = [c for c in theirs.table if c != "reply"]
    assert list(ours.table) == list(theirs.table) and ours.table[columns].equals(theirs.table[columns])
    assert ours.questions[["question_id", "answer"]].equals(theirs.questions[["question_id", "answer"]])
    assert ours.name == theirs.name and ours.equals(load_recorded(CAT, copies[CAT].parent))
    assert ours.members().equals(theirs.members())
    assert (prompt_numbers(ours) == prompt_numbers(theirs)).all()
    for measure in (score, chance_scores, slot_table, inconsistency_components):
        pd.testing.assert_frame_equal(measure(ours.first_trial()), measure(theirs.first_trial()))


@pytest.mark.parametrize("name", FACTS[1:])
def test_the_tables_are_the_known_excerpts(name):
    known = REAL[name]
    assert sha256((data_path("recorded") / known.name).read_bytes()).hexdigest() == known.excerpt


@pytest.mark.slow
def test_the_script_makes_what_ships(copies, tmp_path):
    script = Path(__file__).parents[2] / "scripts" / "make_recorded.py"
    env = {k: v for k, v in os.environ.items() if k not in ("CORA_SHARED", "XDG_CACHE_HOME")}
    subprocess.run([sys.executable, script, "--out", tmp_path], check=True, capture_output=True, env=env | SHARED)
    for file in (f for f in tmp_path.rglob("*") if f.is_file() and f.suffix in (".csv", ".parquet")):
        there = data_path("recorded") / file.relative_to(tmp_path)
        same = pq.read_table(file).equals(pq.read_table(there)) if file.suffix == ".parquet" else None
        assert same if same is not None else file.read_bytes() == there.read_bytes()


def test_import_does_not_load_the_downloader():
    code = "import sys, cora_nb.papers.published; assert not {'pooch', 'requests', 'torch', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


STATISTICS = {
    CAT: lambda run: [
        score(run.first_trial()),
        score(run.pool_trials(), ci=0.95),
        position_ranks(run.first_trial()),
        position_spread(run.first_trial(), resamples=100),
    ],
    "li2024/order_predictions": lambda letters: [
        order_tests(letter_table(letters[c], letters[f"{c}_R"])) for c in letters if f"{c}_R" in letters
    ],
    "li2024/consistency_lfg_gpt35": lambda t: [consistency_by({"long form": label_sequences(t["Answer"], "D")})],
    "li2024/confidence_gpt35": lambda t: [
        ece_interval(t[f"{c}_C"], t[f"{c}_L"], bins=b) for c in ("4_MC", "3_MC", "2_MC", "4_LFG") for b in (5, 100)
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FACTS)
def test_the_facts_give_the_numbers_of_the_published_file(name, copies, monkeypatch):
    "Scores, statistics of order and calibration errors with texts and without; a new file must be added above."
    monkeypatch.setitem(RECORDED, name, REAL[name])
    folder = copies[name].parents[len(Path(REAL[name].name).parents) - 1]
    ours, theirs = STATISTICS[name](load_recorded(name)), STATISTICS[name](load_recorded(name, folder, texts=True))
    assert ours and all(len(table) for table in ours)
    for one, other in zip(ours, theirs, strict=True):
        pd.testing.assert_frame_equal(one, other)


def test_nothing_is_downloaded_unless_it_may_be(site):
    with pytest.raises(CoraError, match=r"\A[^\n]* is not on this machine; it is at [^\n]*\Z"):
        load_recorded(CAT, texts=True, download=False)
    assert site.asked == []
