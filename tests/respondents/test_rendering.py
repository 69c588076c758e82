"Chat templates that do not end, that fill the memory, and that do as they should."

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from tiny_models import byte_level, save

from cora_nb.benchmarks.arithmetic import math_benchmark
from cora_nb.core import CoraError
from cora_nb.prompts.templates import make_prompts
from cora_nb.respondents import rendering
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.rendering import _RENDERER, render_chat
from cora_nb.variants.families import make_variants
from helpers import slow_after

MESSAGES = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "What is grün, \ud83d or 8 < 7?\n"}]
USUAL = [
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}",
    "{{ bos_token }}{{ messages | tojson }}{{ eos_token }}{{ thinking | default('none') }}",
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endfor %}",
    "{% for m in messages %}{% generation %}{{ m['content'] | trim }}{% endgeneration %}{% endfor %}",
    "{%- if tools %}{{ tools }}{%- endif %}{{ messages[-1]['content'].strip() }}",
]
ENDLESS = {
    "loops": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "text": "{% for i in range(99999) %}{% for j in range(99999) %}word {% endfor %}{% endfor %}",
    "number": "{{ 7 ** (10 ** 9) }}",
    "recursion": "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "memory": "{{ 'x' * 10 ** 10 }}",
    "doubling": "{% set ns = namespace(t='x') %}{% for i in range(60) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}",
    "list": "{% set ns = namespace(t=[0]) %}{% for i in range(60) %}{% set ns.t = ns.t + ns.t %}{% endfor %}",
    "long": "{% for i in range(99999) %}" + 200 * "x" + "{% endfor %}",
    "when folded": "{{ ('x' * 10 ** 9) ~ ('y' * 10 ** 9) ~ ('z' * 10 ** 9) ~ ('z' * 10 ** 9) }}",
}


@pytest.fixture(scope="module")
def tokenizer():
    return byte_level(bos=True)


def test_the_same_text_as_in_this_process(tokenizer):
    for template in USUAL:
        for options in ({}, {"thinking": True}, {"bos_token": "<other>"}, {"tools": [{"name": "f"}]}):
            tokenizer.chat_template = template
            expected = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True, **options)
            assert render_chat(tokenizer, MESSAGES, options) == expected


def test_templates_by_name(tokenizer):
    tokenizer.chat_template = {"default": "D{{ x }}", "tool_use": "T"}
    assert render_chat(tokenizer, MESSAGES, {"x": 1}) == "D1"
    assert render_chat(tokenizer, MESSAGES, {"chat_template": "tool_use"}) == "T"
    tokenizer.chat_template = None


@pytest.mark.parametrize("kind", slow_after(0, ENDLESS))
def test_what_does_not_end_is_ended(tokenizer, kind):
    start = time.monotonic()
    with pytest.raises(ValueError) as e:
        render_chat(tokenizer, MESSAGES, {"chat_template": ENDLESS[kind]}, seconds=2)
    assert "\n" not in str(e.value) and len(str(e.value)) <= 300 and time.monotonic() - start < 30
    assert render_chat(tokenizer, MESSAGES, {"chat_template": "fine"}) == "fine"  # the next one is not affected


@pytest.mark.parametrize(
    "template,why", [("{{ raise_exception('no such role') }}", "no such role"), ("{% for %}", "xpected")]
)
def test_what_a_template_says_is_said(tokenizer, template, why):
    with pytest.raises(ValueError, match=why):
        render_chat(tokenizer, MESSAGES, {"chat_template": template})


@pytest.mark.slow
def test_a_respondent_says_it_in_one_line(tmp_path, monkeypatch):
    folder = save(tmp_path / "model")
    (folder / "chat_template.jinja").write_text(ENDLESS["loops"])
    who = CausalRespondent(folder, device="cpu")
    monkeypatch.setattr(rendering.render_chat, "__defaults__", (1,))
    prompt = make_prompts(make_variants(math_benchmark(n=1))[:1])[0]
    with pytest.raises(CoraError, match=r"its chat template refuses the prompt \(it does not come to an end in 1 sec"):
        who.sent(prompt)


@pytest.mark.slow
def test_a_process_that_was_killed_is_replaced(tokenizer):
    for text in ("one", "two"):
        assert render_chat(tokenizer, MESSAGES, {"chat_template": text}) == text
        os.kill(_RENDERER.process.pid, signal.SIGKILL)
        _RENDERER.process.wait()


def test_threads_get_their_own_texts(tokenizer):
    wrong = []

    def ask(k):
        for i in range(20):
            text = render_chat(tokenizer, MESSAGES, {"chat_template": f"{k} {{{{ i }}}}", "i": i})
            wrong.extend([] if text == f"{k} {i}" else [text])

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(6)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not wrong


@pytest.mark.skipif(not hasattr(signal, "SIGXCPU"), reason="no limit on the processor's time here")
@pytest.mark.slow
def test_a_killed_program_leaves_no_endless_process():
    code = (
        "import sys, os, threading, time; sys.path[:] = sys.argv[2:]\n"
        "from cora_nb.respondents.rendering import _RENDERER\n"
        "_RENDERER.start(); print(_RENDERER.process.pid, flush=True)\n"
        "_RENDERER.ask({'conversations': [[]], 'chat_template': sys.argv[1]}, 2)"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", code, ENDLESS["loops"], *sys.path], stdout=subprocess.PIPE, text=True
    )
    pid = int(program.stdout.readline())
    time.sleep(0.5)
    program.kill()
    program.wait()

    def running():
        try:
            with open(f"/proc/{pid}/stat") as stat:
                return stat.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    end = time.monotonic() + 60
    while running() and time.monotonic() < end:
        time.sleep(0.2)
    assert not running()


def test_what_is_sent_is_one_line_of_plain_json(tokenizer):
    asked = json.dumps({"conversations": [MESSAGES]}, default=str)
    assert "\n" not in asked and json.loads(asked)["conversations"] == [MESSAGES]
