"""config.json next to its weights: transformers says what contradicts it, and so does check.

Tiny models as save_pretrained leaves them have no finding; of each number of their config.json that
is changed check says no more than transformers does when it loads the folder.
"""

import json
import shutil

import transformers
from safetensors.torch import load_file, save_file

import program
from checks import expect, expect_equal

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

LLAMA = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
BERT = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
EYES = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
            image_size=16, patch_size=8)
T = transformers
MODELS = {
    "a Llama": lambda: T.LlamaForCausalLM(T.LlamaConfig(**LLAMA)),
    "a Qwen 3 of experts": lambda: T.Qwen3MoeForCausalLM(T.Qwen3MoeConfig(
        **LLAMA, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=20,
        mlp_only_layers=[1])),
    "a GPT-2": lambda: T.GPT2LMHeadModel(T.GPT2Config(
        vocab_size=96, n_embd=32, n_layer=3, n_head=4, n_positions=64)),
    "a T5": lambda: T.T5ForConditionalGeneration(T.T5Config(
        vocab_size=96, d_model=32, d_kv=6, d_ff=48, num_layers=3, num_decoder_layers=2,
        num_heads=4)),
    "a BERT": lambda: T.BertForMaskedLM(T.BertConfig(**BERT)),
    "a LLaVA": lambda: T.LlavaForConditionalGeneration(T.LlavaConfig(
        text_config=T.LlamaConfig(**LLAMA), vision_config=T.CLIPVisionConfig(**EYES))),
}
CHANGED = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "n_embd",
           "n_layer", "d_model", "d_ff", "d_kv", "num_layers", "num_decoder_layers",
           "num_attention_heads", "num_key_value_heads", "head_dim", "num_heads",
           "num_local_experts", "moe_intermediate_size", "tie_word_embeddings")


def loads_whole(folder):
    config = json.loads((folder / "config.json").read_text())
    kind = getattr(transformers, config["architectures"][0])
    try:
        told = kind.from_pretrained(folder, output_loading_info=True,
                                    ignore_mismatched_sizes=True)[1]
    except Exception:  # the config itself is refused
        return False
    return not (told["missing_keys"] or told["unexpected_keys"] or told["mismatched_keys"])


def findings(folder):
    return program.check(folder).must_exit(0, 1).above_info()


def sites_of(config):
    yield from (((), key) for key in config if key in CHANGED)
    for part, inner in config.items():
        if isinstance(inner, dict):
            yield from (((part,), key) for key in inner if key in CHANGED)


def changed_ones(folder):
    text = (folder / "config.json").read_text()
    for path, key in sites_of(json.loads(text)):
        for change in (lambda size: size * 2, lambda size: size // 2):
            config = json.loads(text)
            holder = config[path[0]] if path else config
            was = holder[key]
            holder[key] = not was if isinstance(was, bool) else change(was or 1)
            (folder / "config.json").write_text(json.dumps(config))
            yield ".".join([*path, key]), holder[key]
    (folder / "config.json").write_text(text)


def without(folder, out, part):
    shutil.copytree(folder, out)
    weights = load_file(out / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if part not in name}
    save_file(kept, out / "model.safetensors", {"format": "pt"})
    return out


def run(checks, _, scratch):
    for name, make in MODELS.items():
        folder, shards = scratch / name, scratch / f"{name} in shards"
        model = make()
        model.save_pretrained(folder)
        model.save_pretrained(shards, max_shard_size="20KB")
        with checks.that(f"{name} is as its config.json says, in one file and in shards"):
            for saved in (folder, shards):
                expect_equal(findings(saved), [], "findings")
        with checks.that(f"what transformers loads whole of {name} is reported as nothing else"):
            told = 0
            for key, value in changed_ones(folder):
                found = findings(folder)
                told += bool(found)
                if loads_whole(folder):
                    expect_equal(found, [], f"findings with {key} {value}")
            expect(told >= 6, f"only {told} of the changes were told")
    with checks.that("a layer, an expert and a head that are not there are told"):
        for name, part in (("a Llama", "layers.1."), ("a Llama", "lm_head"),
                           ("a Qwen 3 of experts", "layers.2.mlp.experts.3.")):
            lacking = without(scratch / name, scratch / f"{name} without {part}", part)
            expect_equal({finding["rule"] for finding in findings(lacking)}, {"config-count"},
                         f"rules for {part}")
            expect(not loads_whole(lacking), f"transformers misses nothing without {part}")
