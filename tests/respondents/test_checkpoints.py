"""What stands in a folder is the model that is asked: its own scores, or an error in one line; never another score."""

import json
import warnings
from importlib.util import find_spec

import pytest
from architectures import save_architecture
from checkpoints import CHECKPOINTS, adapter, adding, copy_of_steady, lora, made, mtp_head, vision_tower
from safetensors.torch import load_file, save_file
from tiny_models import torch, transformers
from tokenizers import Tokenizer

import cora_nb as cn
from cora_nb.core import CoraError
from cora_nb.respondents.causal import CausalRespondent
from cora_nb.respondents.likelihood import LikelihoodRespondent
from cora_nb.respondents.checkpoints import ModelWarning
from cora_nb.respondents.local import LocalModel, organism

WAYS = {"causal": CausalRespondent, "likelihood": LikelihoodRespondent}
VARIANTS = cn.make_variants(cn.load_benchmark("math")[:3])


@pytest.fixture(scope="module", autouse=True)
def quiet():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    yield
    torch.set_num_threads(before)


def asked(folder, way="causal"):
    "A run, or the error instead; and what was warned of the model."
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = cn.evaluate(WAYS[way](str(folder), device="cpu"), VARIANTS, progress=False)
        except CoraError as e:
            found = e
    return found, [str(w.message) for w in heard if issubclass(w.category, ModelWarning)]


def share(run):
    return float(run.table.correct.mean())


def refuses_in_one_line(error, folder, names):
    said = str(error)
    about = said.replace(str(folder), "")  # the folder's own name holds such words too
    assert isinstance(error, CoraError), error
    assert len(said.splitlines()) == 1 and str(folder) in said, said
    assert any(name.lower() in about.lower() for name in names), f"{said!r} names none of {names[:5]}"


def flat(value, at=""):
    "Every value of nested facts with its place."
    if isinstance(value, dict):
        return {k: v for name, inner in value.items() for k, v in flat(inner, f"{at}/{name}").items()}
    if isinstance(value, list):
        return {k: v for i, inner in enumerate(value) for k, v in flat(inner, f"{at}/{i}").items()}
    return {at: value}


@pytest.fixture(scope="module")
def usual(quiet):
    "The facts of the organism as it is, by respondent."
    return {way: flat(asked(organism("steady"), way)[0].facts.plain()) for way in WAYS}


def told(run, usual, n):
    "Whether the facts say a number that those of the organism do not say in this place."
    found = flat(json.loads(json.dumps(run.facts.plain())))
    return any(v == n and not isinstance(v, (bool, str)) and usual.get(k) != n for k, v in found.items())


@pytest.mark.parametrize("name", CHECKPOINTS)
@pytest.mark.parametrize("way", ["causal", pytest.param("likelihood", marks=pytest.mark.slow)])
def test_its_own_scores_or_an_error(name, way, tmp_path, usual):
    folder, left = made(name, tmp_path / "m")
    found, heard = asked(folder, way)
    may = CHECKPOINTS[name].may
    if isinstance(found, CoraError):
        assert "refused" in may, found
        refuses_in_one_line(found, folder, (*left.tensors, *left.words))
        return
    assert may != ("refused",), f"answered, {share(found):.2f} right"
    assert share(found) == 1.0
    if may == ("warned",):
        assert any(t in said for said in heard for t in left.tensors), heard
        assert all(len(said.splitlines()) == 1 and str(folder) in said for said in heard)
        assert told(found, usual[way], len(left.tensors))
    if may == ("right",):
        assert not heard


def test_a_warning_is_short_however_much_is_left_out(tmp_path):
    "Some names of many."
    folder = copy_of_steady(tmp_path / "m")
    many = adding(lambda t: {f"audio_tower.layers.{i}.weight": torch.ones(1) for i in range(500)})
    left = many(folder)
    found, heard = asked(folder)
    assert share(found) == 1.0
    about = [said for said in heard if "audio_tower" in said]
    assert about and all(len(said) < 600 + len(str(folder)) and "500" in said for said in about)
    assert len(left.tensors) == 500


def test_the_number_stands_in_the_facts_of_whoever_is_asked_second(tmp_path, usual):
    "Both ways share the weights, so the second does not load them."
    folder = copy_of_steady(tmp_path / "m")
    n = len(adding(vision_tower)(folder).tensors)
    first = CausalRespondent(str(folder), device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert told(cn.evaluate(first, VARIANTS, progress=False), usual["causal"], n)
        second = LikelihoodRespondent(str(folder), device="cpu")
        run = cn.evaluate(second, VARIANTS, progress=False)
    assert second.model is first.model and told(run, usual["likelihood"], n)


def test_one_tensor_that_decides_is_enough(tmp_path):
    "Among many that decide nothing."
    folder = copy_of_steady(tmp_path / "m")
    adding(mtp_head)(folder)
    left = adding(lora)(folder)
    refuses_in_one_line(asked(folder)[0], folder, (*left.tensors, "lora"))


def test_a_refused_folder_is_refused_again(tmp_path):
    "Nothing of it stays in memory for a second respondent."
    folder, left = made("LoRA in the weights file", tmp_path / "m")
    for way in ("causal", "likelihood", "causal"):
        refuses_in_one_line(asked(folder, way)[0], folder, (*left.tensors, "lora"))


def test_what_is_left_out_is_not_printed_as_well(tmp_path, capfd):
    "transformers has a table of its own; one line of ours says the same."
    folder, _ = made("a vision tower", tmp_path / "m")
    asked(folder)
    said = "".join(capfd.readouterr())
    assert "UNEXPECTED" not in said and len(said.splitlines()) <= 2, said


# adapters


@pytest.mark.skipif(bool(find_spec("peft")), reason="peft is installed")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lacking", ["", "layers.1."])
def test_an_adapter_is_refused_without_peft(tmp_path, way, lacking):
    folder = copy_of_steady(tmp_path / "m")
    left = adapter(folder, lacking)
    refuses_in_one_line(asked(folder, way)[0], folder, left.words)


@pytest.mark.skipif(not find_spec("peft"), reason="peft is not installed")
@pytest.mark.parametrize("way", WAYS)
def test_an_adapter_is_used_and_recorded_with_peft(tmp_path, way):
    folder = copy_of_steady(tmp_path / "m")
    adapter(folder)
    run, _ = asked(folder, way)
    assert share(run) < 0.9  # the adapter's numbers are random and large
    assert "adapter" in json.dumps(run.facts.plain()) or "peft" in json.dumps(run.facts.plain())


@pytest.mark.skipif(not find_spec("peft"), reason="peft is not installed")
def test_a_base_that_lacks_a_layer_is_refused_with_peft(tmp_path):
    folder = copy_of_steady(tmp_path / "m")
    left = adapter(folder, "layers.1.")
    refuses_in_one_line(asked(folder)[0], folder, left.words)


def test_an_adapter_that_came_without_its_configuration_is_refused(tmp_path):
    folder = copy_of_steady(tmp_path / "m")
    adapter(folder)
    (folder / "adapter_config.json").unlink()
    refuses_in_one_line(asked(folder)[0], folder, ("adapter_config.json",))


@pytest.mark.parametrize("text", ["", "[]", "{", "{}"])
def test_a_damaged_configuration_of_an_adapter_is_named(tmp_path, text):
    folder = copy_of_steady(tmp_path / "m")
    adapter(folder)
    (folder / "adapter_config.json").write_text(text)
    refuses_in_one_line(asked(folder)[0], folder, ("adapter_config.json",))


@pytest.mark.skipif(not find_spec("peft"), reason="peft is not installed")
def test_adapters_that_add_tokens_are_refused_with_peft(tmp_path):
    from peft import PromptTuningConfig, get_peft_model

    folder = copy_of_steady(tmp_path / "m")
    base = transformers.AutoModelForCausalLM.from_pretrained(folder)
    get_peft_model(base, PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)).save_pretrained(folder)
    refuses_in_one_line(asked(folder)[0], folder, ("PROMPT_TUNING",))


@pytest.mark.skipif(not find_spec("peft"), reason="peft is not installed")
@pytest.mark.parametrize("options", [{"use_dora": True}, {"trainable_token_indices": [5, 6]}, {"use_rslora": True}])
def test_adapters_of_many_kinds_are_those_of_peft(tmp_path, options):
    from peft import LoraConfig, PeftModel, get_peft_model

    folder = copy_of_steady(tmp_path / "m")
    base = transformers.AutoModelForCausalLM.from_pretrained(folder)
    torch.manual_seed(0)
    config = LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], init_lora_weights=False, **options)
    get_peft_model(base, config).save_pretrained(folder)
    plain = PeftModel.from_pretrained(transformers.AutoModelForCausalLM.from_pretrained(organism("steady")), folder)
    ids = torch.arange(9)[None]
    with torch.no_grad():
        assert torch.equal(LocalModel(folder, device="cpu").model(ids).logits, plain.eval()(ids).logits)


def test_masks_in_bytes_that_an_architecture_ignores(tmp_path):
    "As Pythia's checkpoints have them: they are in no report of transformers."
    folder = save_architecture(tmp_path / "m", "gpt_neox")
    tensors = load_file(folder / "model.safetensors")
    mask = {"gpt_neox.layers.0.attention.bias": torch.ones(1, 1, 8, 8, dtype=torch.uint8)}
    save_file(tensors | mask, folder / "model.safetensors", metadata={"format": "pt"})
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        assert LocalModel(folder, device="cpu").model is not None


@pytest.mark.parametrize("padded", [None, -1e4, -1e9, float("-inf")])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_later_words_are_found_beside_tokens_that_are_impossible(tmp_path, padded, dtype):
    "As in a vocabulary that was made longer, where the last tokens are never said."
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    config = transformers.BertConfig(vocab_size=338, initializer_range=0.2, **sizes)
    model = transformers.BertLMHeadModel(config)
    if padded is not None:
        model.cls.predictions.bias.data[-4:] = padded
    folder = copy_of_steady(tmp_path / "m")
    model.save_pretrained(folder)
    with pytest.raises(CoraError, match="later words"):
        LocalModel(folder, device="cpu", dtype=dtype).model


@pytest.mark.parametrize("kind,name", [("llama", "GPT2Tokenizer"), ("qwen2", None), ("qwen2", "Qwen2TokenizerFast")])
def test_the_tokenizer_file_is_followed_whatever_the_class_is_called(tmp_path, kind, name):
    "Digits alone, as some models have them, where the class would take them together; and the other way round."
    folder = save_architecture(tmp_path / "m", kind)
    about = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    digits = {"type": "Digits", "individual_digits": True}
    if kind == "llama":
        about["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, about["pre_tokenizer"]]}
    (folder / "tokenizer.json").write_text(json.dumps(about), "utf-8")
    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8")) | {"tokenizer_class": name}
    config = {k: v for k, v in config.items() if v is not None}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    who = LocalModel(folder, device="cpu")
    with pytest.warns(ModelWarning, match="tokenizer.json"):
        ids = who.tokenizer("12 + 345", add_special_tokens=False)["input_ids"]
    raw = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert ids == raw.encode("12 + 345", add_special_tokens=False).ids


def test_a_tokenizer_that_was_saved_while_it_padded(tmp_path):
    "It divides texts as ever: no warning, and the same tokens."
    folder = copy_of_steady(tmp_path / "m")
    tokens = LocalModel(folder, device="cpu").identity()["words"]
    about = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    about["padding"] = {"strategy": {"Fixed": 512}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
    about["padding"] |= {"pad_type_id": 0, "pad_token": "<unk>"}
    (folder / "tokenizer.json").write_text(json.dumps(about), "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ModelWarning)
        assert LocalModel(folder, device="cpu").identity()["words"] == tokens


# models that are not causal


@pytest.mark.parametrize("kind", ["Bert", "Roberta"])
@pytest.mark.parametrize("way", WAYS)
def test_models_that_see_later_words_are_refused(tmp_path, kind, way):
    folder = copy_of_steady(tmp_path / "m")
    sizes = dict(vocab_size=338, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    config = getattr(transformers, f"{kind}Config")(max_position_embeddings=600, pad_token_id=2, **sizes)
    torch.manual_seed(0)
    getattr(transformers, f"{kind}ForMaskedLM")(config).save_pretrained(folder)
    refuses_in_one_line(asked(folder, way)[0], folder, ("causal", "later", "ahead", kind.lower(), kind, "continue"))
