"""Local servers that behave like providers and servers of models do, each with a model that is always right.

A `Provider` is a list of quirks, asked in order: the first that returns an answer decides. What no quirk objects to is
answered rightly. A fact's source stands beside it: INTEROP is `../shared/INTEROP.md`; `repository N` is an issue or a
pull request on GitHub; "docs" is the provider's own documentation.
"""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from faulty_server import Answer, Asked, FaultyServer

Quirk = Callable[[Asked, dict], Answer | None]  # the dictionary is the server's memory
HOUR = 3600

_SUMS = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__, "/": int.__floordiv__}


def choices_of(prompt: str) -> dict[str, str]:
    "Letter -> choice, as the last question of a prompt shows them."
    last = prompt[prompt.rindex("Question:") :]
    return {letter: text.strip() for letter, text in re.findall(r"(?m)^(?:Choices:\s*)?([A-Z])\. (.+)$", last)}


def right(prompt: str) -> str:
    "The letter of the right choice of a sum of the bundled benchmark, of which None of the above may be one."
    a, sign, b = re.findall(r"What is (\d+) ([-+*/]) (\d+)\?", prompt)[-1]
    value, shown = str(_SUMS[sign](int(a), int(b))), choices_of(prompt)
    exact = [letter for letter, text in shown.items() if text == value]
    return (exact or [letter for letter, text in shown.items() if text.startswith("None of")])[0]


def tokens_of(text: str) -> int:
    "Tokens of a text, four characters each."
    return len(text) // 4


def prompt_tokens(asked: Asked) -> int:
    return sum(tokens_of(str(m["content"])) for m in asked.body["messages"])


def room(asked: Asked) -> int:
    "Tokens that the reply may have."
    return asked.body.get("max_completion_tokens") or asked.body.get("max_tokens") or 16


def reply(asked: Asked, content: Any = None, *, model=None, finish="stop", message=None, read=None, wrote=2, total=None,
          id=None, **choice) -> Answer:  # fmt: skip
    "A completion as OpenAI words it; `content` is the right letter unless given."
    said = {"role": "assistant", "content": right(asked.prompt) if content is None else content, **(message or {})}
    read = prompt_tokens(asked) if read is None else read
    total = read + wrote if total is None else total
    usage = {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": total}
    body = {
        "id": id or f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": 1_760_000_000 + asked.number,
        "model": model or asked.body["model"],
        "choices": [{"index": 0, "message": said, "finish_reason": finish, **choice}],
        "usage": usage,
    }
    return Answer(body=body)


def error(status: int, message: str, headers: dict[str, str] | None = None, **more: Any) -> Answer:
    "An error as OpenAI words it."
    return Answer(status, {"error": {"message": message, "type": "invalid_request_error", **more}}, headers or {})


@dataclass(frozen=True)
class Provider:
    "How one server behaves."

    model: str = "m"  # the name that is asked for
    quirks: tuple[Quirk, ...] = ()
    answer: Callable[[Asked, dict], Answer] = lambda asked, memory: reply(asked)
    path: str = "/v1"  # what `base_url` ends with
    fields: str = ""  # further fields to type, such as ",seed=1"

    def plan(self) -> Callable[[Asked], Answer]:
        "For `FaultyServer`; each plan has a memory of its own."
        memory: dict = {"started": None}

        def choose(asked: Asked) -> Answer:
            if asked.body is None or "messages" not in asked.body:  # nothing here but chat
                return Answer(404, {"detail": "Not Found"})
            memory["started"] = memory["started"] or time.monotonic()
            memory.setdefault("first", asked.prompt)
            memory.setdefault("prompts", {}).setdefault(asked.prompt, len(memory["prompts"]))
            return next(filter(None, (quirk(asked, memory) for quirk in self.quirks)), None) or self.answer(
                asked, memory
            )

        return choose

    def serve(self) -> FaultyServer:
        return FaultyServer(self.plan())

    def spec(self, server: FaultyServer, more: str = "") -> str:
        "What a person types."
        return f"chat:{self.model},base_url={root(server)}{self.path}{self.fields}{more}"


def root(server: FaultyServer) -> str:
    "A server's address without a path."
    return server.url.removesuffix("/v1")


def posts(server: FaultyServer) -> list[Asked]:
    "The requests that asked something."
    return [asked for asked in server.asked if asked.body is not None]


# ---- quirks that several have


def once(answer: Answer | Callable[[Asked], Answer], after: int = 0) -> Quirk:
    "The answer to one request only, the one that comes after so many."
    key = object()

    def quirk(asked, memory):
        seen = memory[key] = memory.get(key, 0) + 1
        return (answer(asked) if callable(answer) else answer) if seen == after + 1 else None

    return quirk


def for_one(answer: Answer | Callable[[Asked], Answer], which: int = 3) -> Quirk:
    "The same answer each time to one prompt: the one that came after so many others. 0: the first."

    def quirk(asked, memory):
        hit = memory["prompts"][asked.prompt] == which
        return (answer(asked) if callable(answer) else answer) if hit else None

    return quirk


def always(answer: Answer) -> Quirk:
    return lambda asked, memory: answer


def only_at(path: str, answer: Answer) -> Quirk:
    "Whatever is asked elsewhere gets this answer."
    return lambda asked, memory: None if asked.path.split("?")[0] == path else answer


def refuses_field(name: str, answer: Callable[[Asked], Answer]) -> Quirk:
    "A field that the body must not have."
    return lambda asked, memory: answer(asked) if name in asked.body else None


def no_system(answer: Answer) -> Quirk:
    return lambda asked, memory: answer if asked.body["messages"][0]["role"] == "system" else None


# ---- OpenAI. Words: sashabaranov/go-openai 1061, LunaTranslator 1842, INTEROP "Providers"


def unsupported(name: str) -> Quirk:
    "A parameter that reasoning models do not take."
    words = f"Unsupported parameter: '{name}' is not supported with this model."
    return refuses_field(name, lambda asked: error(400, words, param=name, code="unsupported_parameter"))


def wants_max_completion_tokens(asked, memory):
    if "max_tokens" not in asked.body:
        return None
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    return error(400, words, param="max_tokens", code="unsupported_parameter")


def temperature_one(asked, memory):
    "o-series and GPT-5: only the default, 1."
    value = asked.body.get("temperature", 1)
    if value == 1:
        return None
    words = f"Unsupported value: 'temperature' does not support {value} with this model. Only the default (1) value is"
    return error(400, f"{words} supported.", param="temperature", code="unsupported_value")


def anthropic_temperature(asked, memory):
    "github/app 2574, fazer-ai/agents 130: 400, and no `param` that would name the field."
    if "temperature" not in asked.body:
        return None
    return Answer(
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "`temperature` is deprecated for this "
                                    "model."}, "request_id": "req_011"},
    )  # fmt: skip


OVERLOADED = Answer(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})  # docs


def gemini_unknown(name: str) -> Quirk:
    "Vali-98/ChatterUI 227: the body is a list, and the field is named in words alone."
    words = f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
    kind = {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"description": words}]}
    told = {"code": 400, "message": words, "status": "INVALID_ARGUMENT", "details": [kind]}
    return refuses_field(name, lambda asked: Answer(400, [{"error": told}]))


def gemini_limited(delay: str, words: str = "You exceeded your current quota, please check your plan.") -> Answer:
    "INTEROP, google-gemini/gemini-cli 2020: a list, and the time is in `details` alone."
    details = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequests"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    ]
    told = {"code": 429, "message": words, "status": "RESOURCE_EXHAUSTED", "details": details}
    return Answer(429, [{"error": told}])


def gemini_thought_too_long(asked, memory):
    "evalstate/fast-agent 184, INTEROP: thinking used the limit up, and the choice has no message."
    body = reply(asked, "", finish="length", wrote=0, total=prompt_tokens(asked) + room(asked)).body
    del body["choices"][0]["message"]
    return Answer(body=body)


def mistral_extra(name: str) -> Quirk:
    "eca 231, php-mistral 76: 422, `detail` is a list of pydantic's complaints."

    def answer(asked):
        detail = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        return Answer(422, {"object": "error", "detail": [detail | {"input": asked.body[name]}]})

    return refuses_field(name, answer)


def mistral_chunks(asked, memory):
    "INTEROP, docs of Magistral: content is a list of chunks, and thoughts are among them."
    wrong = next(letter for letter in choices_of(asked.prompt) if letter != right(asked.prompt))
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": f"The answer is {wrong}? No."}]}
    return reply(asked, [thought, {"type": "text", "text": right(asked.prompt)}], wrote=40)


def moderated(asked) -> Answer:
    "INTEROP, openrouter.ai's docs of errors: 403 with the reasons."
    metadata = {"reasons": ["self-harm"], "flagged_input": asked.prompt[:50], "provider_name": "OpenAI"}
    words = 'openai/gpt-4o requires moderation on OpenAI. Your input was flagged for "self-harm".'
    return Answer(403, {"error": {"code": 403, "message": words, "metadata": metadata}})


def upstream_broke(asked) -> Answer:
    "INTEROP: a failure inside a 200."
    told = {"code": 502, "message": "Upstream provider went away"}
    return reply(asked, "", finish="error", wrote=0, error=told)


def openrouter_day(hours: float = 9) -> Answer:
    "INTEROP, litellm 9035: the time is in milliseconds, and there is no Retry-After."
    reset = str(int((time.time() + hours * HOUR) * 1000))
    headers = {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
    words = "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day"
    return Answer(429, {"error": {"message": words, "code": 429, "metadata": {"headers": headers}}}, headers)


FILTERED = error(  # learn.microsoft.com: content filtering of Azure OpenAI
    400,
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    type=None,
    param="prompt",
    code="content_filter",
    innererror={"code": "ResponsibleAIPolicyViolation"},
)
AZURE = "/openai/deployments/gpt4o/chat/completions"
AZURE_VERSION = "2024-10-21"


def azure_address(asked, memory):
    if asked.path.startswith(f"{AZURE}?") and f"api-version={AZURE_VERSION}" in asked.path:
        return None
    return Answer(404, {"error": {"code": "404", "message": "Resource not found"}})


def groq_words(limit: int, need: int) -> str:
    return (
        "Request too large for model `openai/gpt-oss-20b` in organization `org_01` service tier `on_demand` on tokens "
        f"per minute (TPM): Limit {limit}, Requested {need}, please reduce your message size and try again."
    )


def groq_minute(limit: int = 6000) -> Quirk:
    "INTEROP, koassistant.koplugin 106: the room of the reply counts before it is used."

    def quirk(asked, memory):
        need = prompt_tokens(asked) + room(asked)
        return error(413, groq_words(limit, need), type="tokens", code="rate_limit_exceeded") if need > limit else None

    return quirk


def groq_again(wait: str, what: str = "tokens per minute (TPM)") -> Answer:
    "INTEROP, continuedev/continue 10920: the time is in the words alone."
    words = f"Rate limit reached for model `llama-3.3-70b-versatile` on {what}: Limit 100000, Used 99999, Requested 90."
    return error(429, f"{words} Please try again in {wait}.", type="tokens", code="rate_limit_exceeded")


def window(limit: int, only: Callable[[Asked, dict], bool] = lambda asked, memory: True) -> Quirk:
    "INTEROP, vllm 20409: the room of the reply does not fit, the prompt would."

    def quirk(asked, memory):
        read, write = prompt_tokens(asked), room(asked)
        if read + write <= limit or not only(asked, memory):
            return None
        words = (
            f"This model's maximum context length is {limit} tokens. However, you requested {read + write} tokens "
            f"({read} in the messages, {write} in the completion). Please reduce the length of the messages or "
            "completion."
        )
        return Answer(400, {"object": "error", "message": words, "type": "BadRequestError", "param": None, "code": 400})

    return quirk


VLLM_SYSTEM = Answer(  # INTEROP, chat-ui 1386, lm-evaluation-harness 2069: Gemma's template
    400,
    {"object": "error", "message": "System role not supported", "type": "BadRequestError", "param": None, "code": 400},
)
SGLANG_SYSTEM = Answer(500, b"Internal Server Error", {"Content-Type": "text/plain"})  # INTEROP, sglang 892


def aborted(asked) -> Answer:
    "vllm 57082: an engine that was paused ends what is under way, with status 200."
    return reply(asked, "", finish="abort", wrote=0)


def sglang_aborted(asked) -> Answer:
    "sglang 2956: the scheduler's FINISH_ABORT as it stands; that a server sends the object whole is not documented."
    return reply(asked, "", finish={"type": "abort", "message": "Abort in waiting queue"}, wrote=0)


def only_reasoning(asked, memory):
    "vllm 17349, 17609: a parser of reasoning, and thinking switched off: all stands in the wrong field."
    body = reply(asked, "", message={"reasoning_content": right(asked.prompt), "tool_calls": []}).body
    body["choices"][0]["message"]["content"] = None
    return Answer(body=body)


def logprob(token: str, value: float, *others: tuple[str, float]) -> dict:
    told = [{"token": t, "logprob": x, "bytes": list(t.encode())} for t, x in ((token, value), *others)]
    return told[0] | {"top_logprobs": told}


def reasoned_logprobs(asked, memory):
    "sglang 25055, INTEROP: the tokens of the thought stand before those of the reply; others there are misleading."
    letter = right(asked.prompt)
    others = [(other, -9.0) for other in choices_of(asked.prompt) if other != letter]
    misleading = [(other, -0.5 if other != letter else -20.0) for other in choices_of(asked.prompt)]
    thought = [logprob("<think>", -0.01, *misleading), logprob("hm", -0.3, *misleading), logprob("</think>", -0.1)]
    content = [*thought, logprob(letter, -0.001, *others)]
    return reply(asked, message={"reasoning_content": "hm"}, wrote=4, logprobs={"content": content})


def minus_9999(asked, memory):
    "vllm 11073, 48585: -9999.0 for minus infinity, as OpenAI's docs say of a token that is very unlikely."
    letter = right(asked.prompt)
    others = [(other, -9999.0) for other in choices_of(asked.prompt) if other != letter]
    return reply(asked, wrote=1, logprobs={"content": [logprob(letter, 0.0, *others)]})


OLLAMA_MISSING = error(  # ollama's server/routes.go; INTEROP
    404, 'model "qwen3:8b" not found, try pulling it first', type="api_error", param=None, code=None
)


def cut_at(limit: int = 4096) -> Callable[[Asked, dict], Answer]:
    "INTEROP: Ollama cuts what does not fit, in silence; what it read is then the same for all."
    return lambda asked, memory: reply(asked, read=min(prompt_tokens(asked), limit))


def loading(seconds: float) -> Quirk:
    "INTEROP, llama-swap 146: from the first request on."
    answer = Answer(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
    return lambda asked, memory: answer if time.monotonic() - memory["started"] < seconds else None


def exceeds_context(asked) -> Answer:
    "ggml-org/llama.cpp 15780, textgen 7257: about the prompt's own length."
    words = "the request exceeds the available context size. try increasing the context size or enable context shift"
    told = {"code": 400, "message": words, "type": "exceed_context_size_error"}
    return Answer(400, {"error": told | {"n_prompt_tokens": 14429, "n_ctx": 8192}})


LM_STUDIO = Answer(body={"error": "Unexpected endpoint or method. (POST /chat/completions)"})  # lmstudio tracker 618


def refused_in_words(asked) -> Answer:
    "inspect_ai 1198, INTEROP: content null, and the words in a field of their own."
    body = reply(asked, "", message={"refusal": "I'm sorry, I can't assist with that."}, wrote=9).body
    body["choices"][0]["message"]["content"] = None
    return Answer(body=body)


def cached(asked, memory):
    "A gateway that keeps replies: the very same answer to the same request."
    return reply(asked, id=f"chatcmpl-{memory['prompts'][asked.prompt]}")


# ---- response_format with a JSON schema


def schema_of(asked: Asked) -> dict | None:
    "The schema that a request asks for."
    return (asked.body.get("response_format") or {}).get("json_schema", {}).get("schema")


def takes_schema(asked, memory):
    "OpenAI, vLLM, sglang, Ollama, llama.cpp, Mistral (docs): nothing else is written."
    return reply(asked, json.dumps({"answer": right(asked.prompt)}) if schema_of(asked) else None, wrote=8)


NO_SCHEMA = error(  # OpenAI's words for older models
    400,
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    param="response_format",
    code=None,
)
NO_KEY = error(401, "Incorrect API key provided: sk-test.", code="invalid_api_key")
NO_MODEL = error(404, "The model `m` does not exist or you do not have access to it.", code="model_not_found")
NO_PATH = Answer(404, b"<html><body>404 Not Found</body></html>", {"Content-Type": "text/html"})
NO_PARAMETER = error(400, "Unrecognized request argument supplied: verbosity", param="verbosity", code=None)
NO_QUOTA = error(
    429,
    "You exceeded your current quota, please check your plan and billing details.",
    type="insufficient_quota",
    code="insufficient_quota",
)
NO_BALANCE = error(402, "Insufficient Balance", type="unknown_error", code="invalid_request_error")  # DeepSeek's docs

_REASONING = (wants_max_completion_tokens, unsupported("top_p"), unsupported("logprobs"), temperature_one)

PROVIDERS = {  # name -> how it behaves; where something happens once or to one prompt, the name says it
    "well": Provider(),
    "openai o-series": Provider("o3", _REASONING),
    "openai gpt-5": Provider("gpt-5", _REASONING),
    "openai dated": Provider("gpt-4o", answer=lambda asked, _: reply(asked, model="gpt-4o-2024-08-06")),
    "openai refusal": Provider("gpt-4o", (for_one(refused_in_words),)),
    "anthropic": Provider("claude-opus-5", (anthropic_temperature,)),
    "anthropic overloaded": Provider("claude-haiku-4-5", (once(OVERLOADED, 5),)),  # takes a temperature: agents 130
    "gemini": Provider(
        "gemini-2.5-pro",
        (gemini_unknown("seed"),),
        # INTEROP: reasoning stands in the total alone; docs: the served name has a prefix
        lambda asked, _: reply(asked, model="models/gemini-2.5-pro", wrote=2, total=prompt_tokens(asked) + 402),
        "/v1beta/openai",
    ),
    "gemini thinks": Provider("gemini-2.5-pro", answer=gemini_thought_too_long),
    "mistral": Provider("magistral", (mistral_extra("seed"), mistral_extra("max_completion_tokens")), mistral_chunks),
    "openrouter": Provider("openai/gpt-4o"),
    "openrouter moderates": Provider("openai/gpt-4o", (for_one(moderated),)),
    "openrouter moderates the first": Provider("openai/gpt-4o", (for_one(moderated, 0),)),
    "openrouter breaks once": Provider("openai/gpt-4o", (once(upstream_broke, 5),)),
    "openrouter breaks": Provider("openai/gpt-4o", (for_one(upstream_broke),)),
    "azure": Provider("gpt4o", (azure_address,), path=f"{AZURE}?api-version={AZURE_VERSION}"),
    "azure apart": Provider(
        "gpt4o", (azure_address,), path=AZURE.removesuffix("/chat/completions"), fields=f",api_version={AZURE_VERSION}"
    ),
    "azure filter": Provider("gpt4o", (azure_address, for_one(FILTERED)), path=f"{AZURE}?api-version={AZURE_VERSION}"),
    "groq minute": Provider("openai/gpt-oss-20b", (groq_minute(),), fields=",max_tokens=16384"),
    "groq large": Provider(
        "openai/gpt-oss-20b", (for_one(error(413, groq_words(6000, 6294), type="tokens", code="rate_limit_exceeded")),)
    ),
    "groq again": Provider("llama-3.3-70b-versatile", (once(groq_again("1.2s"), 5),)),
    "vllm window": Provider("m", (window(1000),), fields=",max_tokens=4096"),
    "vllm window for some": Provider(
        "m", (window(1000, lambda asked, memory: memory["prompts"][asked.prompt] % 5 == 3),), fields=",max_tokens=4096"
    ),
    "vllm system": Provider("gemma-3", (no_system(VLLM_SYSTEM),), fields=',system="Answer, with a letter."'),
    "vllm reasoning": Provider("qwen3-32b", answer=only_reasoning),
    "vllm abort once": Provider("qwen3-32b", (once(aborted, 5),)),
    "vllm -9999": Provider("m", answer=minus_9999, fields=",top_logprobs=5"),
    "sglang system": Provider("gemma-3", (no_system(SGLANG_SYSTEM),), fields=",system=Answer with a letter.,retries=2"),
    "sglang abort": Provider("m", (for_one(aborted),), fields=",retries=1"),
    "sglang abort object once": Provider("m", (once(sglang_aborted, 5),)),
    "sglang logprobs": Provider("m", answer=reasoned_logprobs, fields=",top_logprobs=5"),
    "ollama missing": Provider("qwen3:8b", (always(OLLAMA_MISSING),)),
    "ollama cuts": Provider("qwen3:8b", answer=cut_at(4096)),
    "llama.cpp loading": Provider("m", (loading(2),)),
    "llama.cpp context": Provider("m", (for_one(exceeds_context),)),
    "lm studio path": Provider("qwen2.5-7b", (only_at("/v1/chat/completions", LM_STUDIO),), path=""),
    "lm studio": Provider("llama-3.1-8b", answer=lambda asked, _: reply(asked, model="qwen2.5-0.5b-instruct")),
    "lm studio changes": Provider(
        "llama-3.1-8b",
        answer=lambda asked, _: reply(asked, model="qwen2.5-0.5b" if asked.number < 20 else "phi-3-mini"),
    ),
    "deepseek": Provider(
        "deepseek-reasoner",
        answer=lambda asked, _: reply(asked, message={"reasoning_content": "Is it A? B? C? D?"}, wrote=30),
    ),
    "deepseek resource once": Provider(  # docs: finish_reason of a request that was interrupted
        "deepseek-chat", (once(lambda asked: reply(asked, "", finish="insufficient_system_resource"), 5),)
    ),
    "deepseek resource": Provider(
        "deepseek-chat",
        (for_one(lambda asked: reply(asked, "", finish="insufficient_system_resource")),),
        fields=",retries=1",
    ),
    "deepseek balance": Provider("deepseek-chat", (always(NO_BALANCE),)),
    "xai": Provider(  # inspect_ai 5528
        "grok-4", answer=lambda asked, _: reply(asked, read=100, wrote=1, total=2101)
    ),
    "cohere": Provider("command-a", answer=lambda asked, _: reply(asked, finish="COMPLETE")),  # any-llm 1301
    "cohere cut": Provider("command-a", answer=lambda asked, _: reply(asked, "", finish="MAX_TOKENS")),  # aisuite 333
    "together": Provider("meta-llama/Llama-3-8b", answer=lambda asked, _: reply(asked, finish="eos")),  # docs
    "tgi": Provider("m", answer=lambda asked, _: reply(asked, finish="eos_token")),  # spring-ai 4900
    "anthropic ending": Provider("m", answer=lambda asked, _: reply(asked, finish="end_turn")),
    "cache": Provider("m", answer=cached, fields=",temperature=1"),
    "schema taken": Provider("m", answer=takes_schema),
    "schema ignored": Provider("m"),
    "schema refused": Provider("m", (refuses_field("response_format", lambda asked: NO_SCHEMA),)),
    "quota": Provider("m", (always(NO_QUOTA),)),
    "wrong key": Provider("m", (always(NO_KEY),)),
    "wrong model": Provider("m", (always(NO_MODEL),)),
    "wrong address": Provider("m", (always(NO_PATH),)),
    "wrong parameter": Provider("m", (refuses_field("verbosity", lambda asked: NO_PARAMETER),)),
    "lost connections": Provider("m", (always(Answer(cut="before")),)),
}


# ---- limits


@dataclass
class LimitedServer(FaultyServer):
    "A server with a limit, which says no in the given way; `refused` are the requests that got it."

    says: Callable[[], Answer] = lambda: error(429, "Too many requests")
    closed: float = 0.0  # seconds from the second request on in which nothing is answered
    at_once: int = 0  # 0: any number
    rate: float = 0.0  # requests a second, and as many at once as in a tenth of it; 0: any number
    free: int = 0  # requests that are answered before none is any more; 0: any number
    takes: float = 0.0  # seconds that an answer takes
    refused: list[Asked] = field(default_factory=list)

    def __post_init__(self):
        super().__init__(Provider().plan())
        self._bucket, self._since, self._closed_at = self.rate / 10, time.monotonic(), None

    def choose(self, asked: Asked) -> Answer:
        if asked.body is not None and not self._lets(asked):
            self.refused.append(asked)
            return self.says()
        answer = super().choose(asked)
        return Answer(answer.status, answer.body, answer.headers, wait=self.takes)

    def _lets(self, asked: Asked) -> bool:
        now = time.monotonic()
        if self.free and asked.number - len(self.refused) >= self.free:
            return False
        if self.closed and asked.number:
            self._closed_at = self._closed_at or now
            if now - self._closed_at < self.closed:
                return False
        if self.at_once and self.under_way >= self.at_once:
            return False
        if self.rate:
            self._bucket = min(self._bucket + (now - self._since) * self.rate, max(self.rate / 10, 1))
            self._since = now
            if self._bucket < 1:
                return False
            self._bucket -= 1
        return True


def reset_in(seconds: float) -> str:
    "A time in milliseconds, as OpenRouter's `X-RateLimit-Reset` has it."
    return str(int((time.time() + seconds) * 1000))
