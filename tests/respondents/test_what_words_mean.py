"""What servers say of a request that they do not answer: what it is about, and what would be taken.

Each row is a public report or a server's documented words; the right reading is ours.
"""

import pytest

from cora_nb.respondents.chat import ChatRespondent, _same_model
from cora_nb.respondents.chat_replies import fitting_room, judge_status, read_answer

SAID = [  # status, body, kind, what it is about
    (
        422,
        {"detail": [{"loc": ["body", "temperature"], "msg": "Input should be less than or equal to 2"}]},
        "failed",
        "temperature",
    ),
    (
        400,
        {"error": {"message": "top_logprobs is too large: at most 5", "param": "top_logprobs"}},
        "failed",
        "top_logprobs",
    ),
    (400, {"error": {"message": "The output of the model would exceed the max context window"}}, "failed", "room"),
    (
        403,
        {
            "code": "The caller does not have permission",
            "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
        },
        "refused",
        "",
    ),
    (400, {"error": {"code": "1301", "message": "包含敏感内容"}}, "refused", ""),
    (400, {"error": {"message": "Input is too long for requested model."}}, "refused", ""),
    (
        413,
        {
            "error": {
                "message": "Request body too large for gpt-4o model. Max size: 8000 tokens.",
                "code": "tokens_limit_reached",
            }
        },
        "refused",
        "",
    ),
    (413, "<h1>Payload Too Large</h1>", "failed", ""),
    (498, {"error": {"message": "Flex tier capacity exceeded", "code": "capacity_exceeded"}}, "limited", ""),
    (429, {"error": {"message": "60 requests per minute, 1000 per day. Try again in 8.64s"}}, "limited", ""),
    (429, {"error": {"message": "Limit 10,000, Requested 12,000 tokens per min"}}, "failed", "room"),
    (
        429,
        [
            {
                "error": {
                    "message": "quota",
                    "details": [{"quotaId": "GenerateRequestsPerDayPerProject"}, {"retryDelay": "34s"}],
                }
            }
        ],
        "stop",
        "quota",
    ),
    (503, {"error": {"message": "Deployment was scaled to zero and is scaling up"}}, "loading", ""),
    (401, {"error": {"message": "Incorrect API key provided"}}, "stop", "key"),
    (404, {"error": {"message": "The model 'x' does not exist"}}, "failed", "model"),
]


@pytest.mark.parametrize("status, body, kind, about", SAID)
def test_what_a_failure_means(status, body, kind, about):
    found = judge_status(status, body, {})
    assert (found.kind, found.about) == (kind, about), found


ROOMS = [  # words, the room asked for, what the server would take
    (
        "'max_tokens' is too large: 32768. This model's maximum context length is 4096 "
        "tokens and your request has 120 input tokens",
        32768,
        3976,
    ),
    (
        "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3000 `inputs` tokens and 2000 `max_new_tokens`",
        2000,
        1096,
    ),
    ("max_tokens is too large: 32768. This model supports at most 16384 completion tokens", 32768, 16384),
    ("Range of max_tokens should be [1, 8192]", 32768, 8192),
    ("tokens per minute (TPM): Limit 6,000, Requested 8,271", 8192, 5921),
    ("max_tokens is too large", 4096, 4096),
]


@pytest.mark.parametrize("words, room, most", ROOMS)
def test_a_room_that_is_named_would_be_taken(words, room, most):
    assert 16 <= fitting_room(words, room) <= most and fitting_room(words, room) < room


@pytest.mark.parametrize("told", ["content_filter: RECITATION", "SPII", "content_filtered", "SAFETY"])
def test_endings_of_filters(told):
    answer = {"choices": [{"message": {"content": None}, "finish_reason": told}]}
    assert read_answer(answer, "AB").meta["finish_reason"] == "content_filter"


@pytest.mark.parametrize("told", ["abort", "insufficient_system_resource", "error", None, {"type": "abort"}])
def test_what_is_no_ending_is_no_reply(told):
    with pytest.raises(ValueError):
        read_answer({"choices": [{"message": {"content": ""}, "finish_reason": told}]}, "AB")


@pytest.mark.parametrize("served", ["gpt-4o-2024-08-06", "openai/gpt-4o", "gpt-4o:free", "gpt-4o-latest"])
def test_versions_of_a_name_are_the_same_model(served):
    assert _same_model("gpt-4o", served) and _same_model(served, "gpt-4o")


@pytest.mark.parametrize("served", ["gpt-4o-mini", "gpt-4", "gpt-4o-mini-2024-07-18", "o3", "gpt-4o-nano"])
def test_other_names_are_other_models(served):
    assert not _same_model("gpt-4o", served) and not _same_model(served, "gpt-4o")


@pytest.mark.parametrize(
    "typed, meant",
    [
        ("http://127.0.0.1:11434/api/chat", "http://127.0.0.1:11434/v1"),
        ("http://gpu.example/v1/messages", "http://gpu.example/v1"),
        ("http://gpu.example/v1/chat/completions/", "http://gpu.example/v1"),
    ],
)
def test_addresses_as_people_paste_them(typed, meant):
    assert ChatRespondent("m", typed).base_url == meant
