"""Chat templates: rendered as Hugging Face's library does, and a template that does harm is ended."""

import json
import os
import shutil
from itertools import product
from pathlib import Path

import pytest
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import render_jinja_template

from model.download.wheel import cache_folder
from model.hub import template_process
from model.hub.tokenizer import (
    LONGEST,
    HubTokenizer,
    chat_template,
    load_tokenizer,
    wrapped,
)
from model.system import processes
from tests.cases import cases
from tests.model.hub_models import saved, smollm2s_tokenizer

TEXTS = (
    "Why is the sky blue?",
    "<b>x</b> {{ 7*7 }} {% raw %} <|im_end|>",
    "👩‍👩‍👧 \u202e e\u0301\n\n x",
)
TEMPLATES = (
    "{% for m in messages %}\n  {{- m['role'] | upper }}: {{ m.content | trim | tojson }}\n{% endfor %}",
    "{% for m in messages %}{% if loop.last %}{% break %}{% endif %}x{% endfor %}{{ add_generation_prompt }}",
    "{% for m in messages %}\n  {% generation %}\n {{ m.content }} {% endgeneration %}\n-{% endfor %}",
)
HARMFUL = {
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}": "more than 3 seconds",
    "{% set x = 'a' * 10**10 %}": "cannot be rendered",
    "{% for a in range(99999) %}aaaaaaaaaaaaa{% endfor %}": "more than 100,000 characters",
    "{{ ''.__class__.__mro__ }}{{ messages.__class__.__base__.__subclasses__() }}": "cannot be rendered",
    "{% set _ = messages.append(1) %}": "cannot be rendered",
    "{{ raise_exception('no system role') }}": r"no system role",
    "{% for %}": "cannot be rendered",
    "{% generation %}{{ messages }}": "cannot be rendered",
    "{% include '/etc/passwd' %}": "cannot be rendered",
}


@cases("text", TEXTS)
def test_a_sentence_is_wrapped_as_the_library_wraps_it(text) -> None:
    smollm = smollm2s_tokenizer()
    library = AutoTokenizer.from_pretrained(
        cache_folder("smollm2-135m-instruct"), trust_remote_code=False
    )
    message = [{"role": "user", "content": text}]
    expected = library.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
    assert smollm.wrapped(text) == expected
    ids = library(expected, add_special_tokens=False)["input_ids"]
    assert [token.id for token in smollm.tokens(expected)] == ids
    marked = [token.text for token in smollm.marked(smollm.tokens(expected)) if token.special]
    assert marked[:2] == ["<|im_start|>", "<|im_end|>"]
    for template in TEMPLATES:
        (rendered,), _ = render_jinja_template(
            [message], chat_template=template, add_generation_prompt=True
        )
        assert wrapped(template, text) == rendered


@cases("template", HARMFUL)
def test_a_harmful_template_is_ended_with_a_sentence(template) -> None:
    with pytest.raises(ValueError, match=HARMFUL[template]) as refused:
        wrapped(template, "hello")
    assert str(refused.value).endswith(".")


def test_a_process_that_stands_still_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = tmp_path / "still.py"
    still.write_text("import signal\nsignal.pause()")
    monkeypatch.setattr(template_process, "__file__", str(still))
    for clock in ("LOADING", "TO_END"):
        monkeypatch.setattr(processes, clock, 0)
    monkeypatch.setattr("model.hub.tokenizer.SECONDS", 0)
    with pytest.raises(ValueError, match="takes more than 0 seconds"):
        wrapped("{{ messages }}", "a text of this test's own")


def test_a_template_is_read_from_an_ordinary_file_of_some_length(tmp_path: Path) -> None:
    assert chat_template(tmp_path) is None
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    assert chat_template(tmp_path) == "{{ messages }}"
    several = [
        {"name": "tool_use", "template": "x"},
        {"name": "default", "template": "{{ messages }}"},
    ]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": several}))
    assert chat_template(tmp_path) == "{{ messages }}"
    for odd in (
        '{"chat_template": ["a"]}',
        '{"chat_template": [{"name": "rag", "template": "x"}]}',
        "{",
        '{"chat_template": ""}',
    ):
        (tmp_path / "tokenizer_config.json").write_text(odd)
        assert chat_template(tmp_path) is None
    file = tmp_path / "chat_template.jinja"
    file.write_text("x" * LONGEST)
    assert chat_template(tmp_path) == "x" * LONGEST
    file.write_text("x" * (LONGEST + 1))
    assert chat_template(tmp_path) is None
    file.unlink()
    os.mkfifo(file)
    assert chat_template(tmp_path) is None


AROUND = {"": "$A", "begins": "<s> $A", "ends": "$A </s>", "both": "<s> $A </s>"}
CHATS = (
    "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}",
    "{{ bos_token }}{% for m in messages %}the {{ m.content }} saw {% endfor %}",
    "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{% endfor %}",
)  # fmt: skip


def test_a_chat_has_the_librarys_ids_whatever_the_tokenizer_adds_to_other_texts(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    refused = []
    for (added, around), template in product(AROUND.items(), CHATS):
        with subtests.test(added=added, template=template):
            folder = shutil.copytree(saved("llama"), tmp_path_factory.mktemp("case") / "model")
            library = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            ids = [("<s>", library.bos_token_id), ("</s>", library.eos_token_id)]
            library.backend_tokenizer.post_processor = TemplateProcessing(
                single=around, special_tokens=[one for one in ids if one[0] in around]
            )
            library.chat_template = template
            library.save_pretrained(folder)
            message = [{"role": "user", "content": "the cat saw"}]
            expected = library.apply_chat_template(message, return_dict=False)
            tokenizer = HubTokenizer(
                load_tokenizer(folder), start=None, end=None, rows=10**6, template=template
            )
            typed = "the cat saw the cat"
            assert [token.id for token in tokenizer.tokens(typed)] == library(typed)["input_ids"]
            try:
                text = tokenizer.wrapped("the cat saw")
            except ValueError:
                refused.append((added, CHATS.index(template)))
                continue
            assert text is not None
            assert [token.id for token in tokenizer.tokens(text)] == expected
    assert refused == [("begins", 4), ("ends", 0), ("ends", 4), ("both", 0), ("both", 4)]
