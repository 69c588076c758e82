"""The batch road: what is handed in, what is read back, and that it joins the ordinary road without a trace.

`tools/peers/record_vllm_batch.py` made the files of vLLM, by running the real `vllm run-batch`.
"""

import json
import math
import random
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from cora_nb.runs.batch import _batch_line, read_batch, write_batch, BatchFormat
from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import BadRow, CoraError, Question
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents.protocol import ask
from cora_nb.respondents.simulated import SimulatedRespondent
from cora_nb.respondents.chat import ChatRespondent
from cora_nb.runs.asking import Asking

from cora_nb.runs.evaluate import evaluate
from cora_nb.runs.store import Store
from cora_nb.variants.families import make_variants
from faulty_server import Answer, FaultyServer, completion

VARIANTS = make_variants(math_benchmark(n=10, seed=3))
PROMPTS = make_prompts(VARIANTS, template="bare", trials=2)
MODEL = ChatRespondent("m", base_url="http://127.0.0.1:9/v1", seed=5)
DIFFERENT = {(p.text, p.trial): p for p in PROMPTS}
DIFFERENT_KEYS = [_batch_line(MODEL, p)["custom_id"] for p in DIFFERENT.values()]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "replies.sqlite") as store:
        yield store


def lines(*files):
    return [json.loads(line) for f in files for line in f.read_text("utf-8").splitlines()]


def results(requests, text="B"):
    "What a server makes of requests: a line for each, in another order."
    done = [
        {
            "id": f"batch_req_{i}",
            "custom_id": r["custom_id"],
            "error": None,
            "response": {
                "status_code": 200,
                "request_id": "r",
                "body": completion(text(r) if callable(text) else text),
            },
        }
        for i, r in enumerate(requests)
    ]
    random.Random(0).shuffle(done)
    return done


def save(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    return path


def test_each_request_once_and_exactly_as_it_would_have_been_sent(tmp_path):
    (file,) = write_batch(MODEL, PROMPTS, tmp_path / "r.jsonl")
    requests = lines(file)
    assert len(requests) == len({r["custom_id"] for r in requests}) == len(DIFFERENT) < len(PROMPTS)
    assert all(
        r.keys() == {"custom_id", "method", "url", "body"}
        and r["method"] == "POST"
        and r["url"] == "/v1/chat/completions"
        for r in requests
    )
    assert [r["body"]["messages"] for r in requests] == [p.messages for p in DIFFERENT.values()]  # in order
    with FaultyServer() as server:
        live = ChatRespondent("m", base_url=server.url, seed=5)
        ask(live, list(DIFFERENT.values()))
    assert sorted(json.dumps(a.body, sort_keys=True) for a in server.asked) == sorted(
        json.dumps(r["body"], sort_keys=True) for r in requests
    )
    assert _batch_line(MODEL, PROMPTS[0], "max_completion_tokens")["body"]["max_completion_tokens"] == PROMPTS[0].room
    assert _batch_line(ChatRespondent("m", endpoint="completions"), PROMPTS[0])["url"] == "/v1/completions"


@pytest.mark.slow
@given(st.integers(1, 500), st.integers(400, 60_000))
@settings(max_examples=30)
def test_files_are_never_too_large_and_lose_nothing(tmp_path_factory, max_requests, max_bytes):
    folder = tmp_path_factory.mktemp("files")
    files = write_batch(
        MODEL, PROMPTS, folder / "r.jsonl", format=BatchFormat(max_requests=max_requests, max_bytes=max_bytes)
    )
    assert [f.name for f in files] == ["r.jsonl", *(f"r-{i}.jsonl" for i in range(2, len(files) + 1))]
    assert all(f.stat().st_size <= max_bytes and 1 <= len(lines(f)) <= max_requests for f in files)
    assert lines(*files) == lines(*write_batch(MODEL, PROMPTS, folder / "whole.jsonl"))


def test_a_batch_gives_the_same_table_as_asking_one_by_one(tmp_path, store):
    with FaultyServer(lambda asked: Answer(body=completion("ABCD"[len(asked.prompt) % 4]))) as server:
        model = ChatRespondent("m", base_url=server.url)
        live = evaluate(model, VARIANTS, Asking("bare"), progress=False)
        asked = len(server.asked)
        files = write_batch(
            model, make_prompts(VARIANTS, template="bare"), tmp_path / "r.jsonl", format=BatchFormat(max_requests=70)
        )
        outputs = [
            save(
                tmp_path / f"out{i}.jsonl",
                results(lines(f), lambda r: "ABCD"[len(r["body"]["messages"][-1]["content"]) % 4]),
            )
            for i, f in enumerate(files)
        ]
        result = read_batch(model, make_prompts(VARIANTS, template="bare"), outputs, store)
        assert (result.answered, result.failed, result.missing, result.unknown, result.broken) == (asked, {}, 0, 0, 0)
        batch = evaluate(model, VARIANTS, Asking("bare"), store=store, progress=False)
        assert len(server.asked) == asked  # nobody was asked
    assert batch.table.equals(live.table) and batch.questions.equals(live.questions)
    assert {k: v for k, v in batch.facts.plain().items() if k != "calls"} == {
        k: v for k, v in live.facts.plain().items() if k != "calls"
    }


def test_only_what_is_missing_is_asked_after_a_batch(tmp_path, store):
    prompts = make_prompts(VARIANTS, template="bare")
    with FaultyServer() as server:
        model = ChatRespondent("m", base_url=server.url)
        (file,) = write_batch(model, prompts, tmp_path / "r.jsonl")
        requests = lines(file)
        answered, expired, refused = requests[:100], requests[100:110], requests[110:113]
        output = save(tmp_path / "out.jsonl", results(answered))
        errors = [
            {"custom_id": r["custom_id"], "response": None, "error": {"code": "batch_expired", "message": "too late"}}
            for r in expired
        ]
        errors += [
            {
                "custom_id": r["custom_id"],
                "error": None,
                "response": {"status_code": 400, "body": {"error": {"message": "no"}}},
            }
            for r in refused
        ]
        result = read_batch(model, prompts, [output, save(tmp_path / "err.jsonl", errors)], store)
        assert (
            result.answered == 100 == len(store)
            and result.failed == {"batch_expired: too late": 10, "400 no": 3}
            and result.missing == len(requests) - 113
        )
        (second,) = write_batch(model, prompts, tmp_path / "second.jsonl", store)
        assert lines(second) == requests[100:]
        responses = evaluate(model, VARIANTS, Asking("bare"), store=store, progress=False)
        assert sorted(a.prompt for a in server.asked) == sorted(
            r["body"]["messages"][-1]["content"] for r in requests[100:]
        )
    assert responses.summary().loc["all", "failed"] == 0
    again = read_batch(
        model, prompts, [tmp_path / "err.jsonl", output, save(tmp_path / "late.jsonl", results(expired, "C"))], store
    )
    assert again.answered == 110 and again.failed == {"400 no": 3}  # answered in one file, whatever another says
    assert len(store) == len(requests)  # and nothing that was there has changed


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_answered_in_one_file_and_failed_in_another(tmp_path, store, order):
    "An error file of a second attempt, read before or after the answers: the prompt is answered, and its reply stays."
    (file,) = write_batch(MODEL, PROMPTS[:1], tmp_path / "r.jsonl")
    (request,) = lines(file)
    failed = {"custom_id": request["custom_id"], "response": None, "error": {"code": "batch_expired"}}
    files = [save(tmp_path / "out.jsonl", results([request], "C")), save(tmp_path / "err.jsonl", [failed])]
    got = read_batch(MODEL, PROMPTS[:1], [files[i] for i in order], store)
    assert (got.answered, got.failed, got.missing) == (1, {}, 0)
    assert store.get([request["custom_id"]])[request["custom_id"]].text == "C"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_answered_in_one_file_and_refused_in_another(tmp_path, store, order):
    "A server that refuses a prompt and one that answers it: the answer counts, whatever the order of the files."
    (file,) = write_batch(MODEL, PROMPTS[:1], tmp_path / "r.jsonl")
    (request,) = lines(file)
    body = {"error": {"message": "This model's maximum context length is 16 tokens", "code": "context_length_exceeded"}}
    refused = {"custom_id": request["custom_id"], "response": {"status_code": 400, "body": body}, "error": None}
    files = [save(tmp_path / "out.jsonl", results([request], "C")), save(tmp_path / "err.jsonl", [refused])]
    got = read_batch(MODEL, PROMPTS[:1], [files[i] for i in order], store)
    assert (got.answered, got.failed, got.missing) == (1, {}, 0)
    assert store.get([request["custom_id"]])[request["custom_id"]].text == "C"


@pytest.mark.parametrize(
    "result,why",
    [
        ({"error": {"code": "server_error", "message": "oh\nno"}, "response": None}, "server_error: oh no"),
        ({"error": {"message": "oh no"}}, "oh no"),
        ({"error": "words"}, "words"),
        ({"error": None, "response": None}, "no response"),
        ({}, "no response"),
        ({"response": {"status_code": 200}}, "unusable reply"),
        ({"response": {"status_code": 200, "body": None}}, "no JSON object"),
        ({"response": {"status_code": 200, "body": {"choices": []}}}, "no choices"),
        ({"response": {"status_code": 200, "body": completion(message=None)}}, "no message"),
        ({"response": {"status_code": 500, "body": {"error": {"message": "broken"}}}}, "500 broken"),
        ({"response": {"status_code": 503, "body": "busy"}}, "503 busy"),
        ({"response": "B"}, "unusable reply"),
        ({"error": {"error": {"error": {"message": "deep", "code": 500}}}}, "500: deep"),
        ({"error": {"error": {"message": "deep"}}, "response": {"status_code": 404, "body": None}}, "404 deep"),
        ({"error": "no such place", "response": {"status_code": 400, "body": None}}, "400 no such place"),
        ({"error": {"error": None}, "response": None}, "{'error': None}"),
    ],
)
def test_what_counts_as_failed(tmp_path, store, result, why):
    line = {"custom_id": _batch_line(MODEL, PROMPTS[0])["custom_id"]} | result
    got = read_batch(MODEL, PROMPTS, save(tmp_path / "out.jsonl", [line]), store)
    ((reason, n),) = got.failed.items()
    assert (
        why in reason
        and "\n" not in reason
        and n == 1
        and got.answered == 0 == len(store)
        and got.missing == len(DIFFERENT) - 1
    )


TOO_LONG = "This model's maximum context length is 1024 tokens. However, your prompt contains at least 1025"


@pytest.mark.parametrize(
    "result",
    [
        {"response": {"status_code": 400, "body": {"error": {"message": TOO_LONG}}}},
        {"response": {"status_code": 400, "body": None}, "error": {"error": {"message": TOO_LONG, "code": 400}}},
        {"response": {"status_code": 400, "body": {"error": {"code": "content_filter", "message": "no"}}}},
    ],
)
def test_a_prompt_that_is_refused_for_good_is_answered_by_nothing(tmp_path, store, result):
    "It counts as wrong, and is never asked again, unless none was answered: then nothing is stored, however few."
    answered, *rest = results(lines(*write_batch(MODEL, PROMPTS, tmp_path / "r.jsonl")))
    refused = [r | result for r in rest]
    few, many = save(tmp_path / "few.jsonl", refused[:19]), save(tmp_path / "many.jsonl", refused[19:])
    for _ in range(2):
        with pytest.raises(CoraError, match=f"{len(rest) - 19} prompts were refused and none was answered: "):
            read_batch(MODEL, PROMPTS, many, store)
        got = read_batch(MODEL, PROMPTS, few, store)
        assert (got.answered, sum(got.failed.values()), len(store)) == (0, 19, 0)
    assert read_batch(MODEL, PROMPTS, save(tmp_path / "one.jsonl", [answered]), store).answered == 1
    assert read_batch(MODEL, PROMPTS, few, store).answered == 19
    got = read_batch(MODEL, PROMPTS, many, store)
    assert (got.answered, got.failed, len(store)) == (len(rest) - 19, {}, len(DIFFERENT))
    replies = store.get([r["custom_id"] for r in refused]).values()
    assert {(r.text, r.meta["finish_reason"], r.error) for r in replies} == {("", "refusal", None)}


VLLM = Path(__file__).parents[1] / "recorded" / "vllm_batch"


def test_what_the_real_vllm_wrote(tmp_path, store):
    model = ChatRespondent("steady", base_url="http://127.0.0.1:8000/v1", top_logprobs=5, max_tokens=4)
    long = Question("long", "Is it true? " * 400, ("yes", "no"), answer=0)
    variants = [*make_variants(math_benchmark(n=1, seed=3))[:6], make_variants([long])[0]]
    prompts = make_prompts(variants, template="bare")
    (file,) = write_batch(model, prompts, tmp_path / "r.jsonl", format=BatchFormat(server="vllm"))
    requests = lines(VLLM / "requests.jsonl")
    assert lines(file) == requests[: len(prompts)]
    got = read_batch(model, prompts, VLLM / "output.jsonl", store)
    assert (got.answered, got.failed, got.missing, got.unknown) == (7, {}, 0, 4)  # four ids that are not ours
    replies = [store.get([r["custom_id"]])[r["custom_id"]] for r in requests[: len(prompts)]]
    assert [r.text for r in replies] == [" A . 91", " C . 91", *[" A . 91"] * 3, " D . 91", ""]
    assert replies[-1].meta["finish_reason"] == "refusal"  # longer than the model's window
    for variant, reply in zip(variants[:-1], replies):
        best = max(range(variant.n_choices), key=reply.scores.__getitem__)
        assert best == "ABCD".index(reply.text.strip()[0]) and -0.002 < reply.scores[best] < 0
        assert reply.meta["completion_tokens"] == 4 and math.isfinite(reply.confidence)


def test_the_errors_of_the_real_vllm(tmp_path, store):
    "The four lines that were wrong on purpose, as if each had been the answer to our prompt."
    rows, (asked,) = lines(VLLM / "output.jsonl")[-4:], DIFFERENT_KEYS[:1]
    assert all(r["response"]["body"] is None for r in rows)
    said = {}
    for row in rows:
        file = save(tmp_path / "out.jsonl", [row | {"custom_id": asked}])
        ((said[row["custom_id"]], _),) = read_batch(MODEL, PROMPTS, file, store).failed.items()
    assert said == {
        "another-model": "404 The model `other` does not exist. Valid aliases: steady.",
        "too-many-logprobs": "400 Requested sample logprobs of 50, which is greater than max allowed: 20"
        " (parameter=logprobs, value=50)",
        "too-much-room": "400 max_tokens=5000 cannot be greater than max_model_len=1024."
        " Please request fewer output tokens. (parameter=max_tokens, value=5000)",
        "no-such-place": "400 URL /v1/nothing was used. Supported endpoints: /v1/chat/completions, /v1/embeddings,"
        " /v1/audio/transcriptions, /v1/audio/translations, /score, /rerank.",
    }
    assert len(store) == 0


def test_small_files_for_vllm(tmp_path):
    many = make_prompts(make_variants(math_benchmark(n=300, seed=1)), template="bare")
    files = write_batch(MODEL, many, tmp_path / "v.jsonl", format=BatchFormat(server="vllm"))
    assert len(files) == 2 and len(lines(files[0])) == 5000
    (whole,) = write_batch(MODEL, many, tmp_path / "o.jsonl")
    assert lines(whole) == lines(*files)
    with pytest.raises(CoraError, match="m: vllm run-batch reads chat requests only"):
        write_batch(
            ChatRespondent("m", endpoint="completions"),
            PROMPTS,
            tmp_path / "c.jsonl",
            format=BatchFormat(server="vllm"),
        )
    with pytest.raises(CoraError, match="server must be one of openai, vllm, got 'tgi'"):
        write_batch(MODEL, PROMPTS, tmp_path / "c.jsonl", format=BatchFormat(server="tgi"))
    assert not list(tmp_path.glob("c*"))


def test_no_half_of_a_batch_is_left(tmp_path, monkeypatch):
    "An error at the third file takes the first two away; files of an earlier batch stay, and are named."
    from cora_nb.runs import batch

    written, real = [], batch.write_whole

    def full_after_two(path, write):
        if len(written) == 2:
            raise CoraError(f"{path}: cannot be written (No space left on device)")
        real(path, write)
        written.append(path)

    monkeypatch.setattr(batch, "write_whole", full_after_two)
    with pytest.raises(CoraError, match="r-3.jsonl: cannot be written"):
        write_batch(MODEL, PROMPTS, tmp_path / "r.jsonl", format=BatchFormat(max_requests=10))
    assert len(written) == 2 and list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    (tmp_path / "r-7.jsonl").write_text("of an earlier, larger batch")
    with pytest.raises(CoraError, match="r-7.jsonl: there is a file of this name already"):
        write_batch(MODEL, PROMPTS, tmp_path / "r.jsonl")
    assert [p.name for p in tmp_path.iterdir()] == ["r-7.jsonl"]


def test_scores_tokens_and_the_first_of_two_answers(tmp_path, store):
    model = ChatRespondent("m", base_url=MODEL.base_url, top_logprobs=2)
    id, n = _batch_line(model, PROMPTS[0])["custom_id"], PROMPTS[0].variant.n_choices
    given = completion(
        "A",
        logprobs={
            "content": [
                {
                    "token": "A",
                    "logprob": -0.5,
                    "top_logprobs": [{"token": "A", "logprob": -0.5}, {"token": "B", "logprob": -1.0}],
                }
            ]
        },
    )
    rows = [{"custom_id": id, "response": {"status_code": 200, "body": body}} for body in (given, completion("C"))]
    assert read_batch(model, PROMPTS, save(tmp_path / "out.jsonl", rows), store).answered == 1
    (reply,) = store.get([id]).values()
    assert (
        reply.text == "A"
        and reply.scores[:2] == (-0.5, -1.0)
        and len(reply.scores) == n
        and reply.meta["prompt_tokens"] == 9
    )


@pytest.mark.parametrize(
    "line,why",
    [
        ("{", "the line is not JSON"),
        ("[1]", "must be a JSON object"),
        ("{}", "no custom_id"),
        ('{"custom_id": 7}', "no custom_id"),
        ("[" * 100_000, "the line is not JSON"),
        ("not a line", "the line is not JSON"),
    ],
)
def test_a_broken_line_is_named_and_nothing_is_stored(tmp_path, store, line, why):
    good = json.dumps(results([_batch_line(MODEL, PROMPTS[0])])[0])
    file = tmp_path / "out.jsonl"
    file.write_text(f"{good}\n\n{line}\n")
    with pytest.raises(BadRow, match=why) as e:
        read_batch(MODEL, PROMPTS, file, store)
    assert "out.jsonl, row 3" in str(e.value) and len(store) == 0
    with pytest.warns(UserWarning, match="1 lines could not be read.*out.jsonl, row 3"):
        got = read_batch(MODEL, PROMPTS, file, store, on_bad="skip")
    assert (got.answered, got.broken, len(store)) == (1, 1, 1)


def test_strangers_are_not_believed(tmp_path, store):
    (file,) = write_batch(MODEL, PROMPTS, tmp_path / "r.jsonl")
    output = save(tmp_path / "out.jsonl", results(lines(file)))
    for other in (
        ChatRespondent("n", base_url=MODEL.base_url, seed=5),
        ChatRespondent("m", base_url=MODEL.base_url, seed=6),
        ChatRespondent("m", base_url=MODEL.base_url, seed=5, temperature=0.5),
    ):
        result = read_batch(other, PROMPTS, output, store)
        assert result.unknown == len(DIFFERENT) and result.answered == 0 == len(store)
    assert read_batch(MODEL, PROMPTS[:1], output, store).answered == 1


def test_what_is_refused(tmp_path, store):
    with pytest.raises(CoraError, match="needs a ChatRespondent, got SimulatedRespondent"):
        write_batch(SimulatedRespondent(), PROMPTS, tmp_path / "r.jsonl")
    with pytest.raises(CoraError, match="does not fit into a file of 100"):
        write_batch(MODEL, PROMPTS, tmp_path / "r.jsonl", format=BatchFormat(max_bytes=100))
    with pytest.raises(CoraError, match="max_requests must be a whole number of 1 or more"):
        write_batch(MODEL, PROMPTS, tmp_path / "r.jsonl", format=BatchFormat(max_requests=0))
    with pytest.raises(CoraError, match="cannot be written"):
        write_batch(MODEL, PROMPTS, tmp_path / "no" / "r.jsonl")
    assert list(tmp_path.glob("*.jsonl")) == []
    (tmp_path / "r.jsonl").write_text("mine")
    with pytest.raises(CoraError, match="a file of this name already; it is left alone"):
        write_batch(MODEL, PROMPTS, tmp_path / "r.jsonl")
    assert (tmp_path / "r.jsonl").read_text() == "mine"
    with pytest.raises(CoraError, match="there is no such file"):
        read_batch(MODEL, PROMPTS, tmp_path / "out.jsonl", store)
    with pytest.raises(CoraError, match="on_bad must be"):
        read_batch(MODEL, PROMPTS, tmp_path / "r.jsonl", store, on_bad="ignore")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert write_batch(MODEL, [], tmp_path / "none.jsonl") == [] and not (tmp_path / "none.jsonl").exists()


def test_no_key_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    (file,) = write_batch(ChatRespondent("m"), PROMPTS, tmp_path / "r.jsonl")
    assert "secret" not in file.read_text()
