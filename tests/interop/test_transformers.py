"""transformers loads what convert wrote: a tiny Llama saved by torch's DCP, in shards by size.

The model that from_pretrained() makes of it computes the same as the one that was saved, and has no
weight that is new, missing or left over.
"""

import json

import torch
import torch.distributed.checkpoint as dcp
import transformers

import judge
import program
from checks import expect_equal


transformers.utils.logging.disable_progress_bar()


def tiny_llama(tied):
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        tie_word_embeddings=tied)
    torch.manual_seed(7)
    return transformers.LlamaForCausalLM(config).eval()


def converted(saved, out, *arguments):
    program.shardwright("convert", saved, "--json", "--to", "safetensors", "--out", out, "--yes",
                        *arguments).must_exit(0)
    answer = program.shardwright("verify", out, "--against", saved, "--json").must_exit(0).json
    expect_equal(answer["verdict"], "proved", "verdict of verify")


def must_be_the_model(model, folder):
    model.config.save_pretrained(folder)
    loaded, told = transformers.LlamaForCausalLM.from_pretrained(folder, output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        expect_equal(sorted(told[kind]), [], kind)
    expect_equal(judge.differences(loaded.state_dict(), model.state_dict()), [], "weights")
    words = torch.arange(24).reshape(2, 12) % 96
    with torch.no_grad():
        expect_equal(torch.equal(loaded.eval()(words).logits, model(words).logits), True, "logits")


def run(checks, other, scratch):
    for name, tied in (("with a head of its own", False), ("with tied embeddings", True)):
        model, saved = tiny_llama(tied), scratch / f"saved-{tied}"
        weights = dict(model.named_parameters())  # a tied head is not there twice
        dcp.save(weights, checkpoint_id=saved, no_dist=True)
        for size in ("20K", "5G"):
            with checks.that(f"transformers loads a Llama {name}, in files of {size}"):
                out = scratch / f"hf-{tied}-{size}"
                converted(saved, out, "--shard-size", size)
                index = out / "model.safetensors.index.json"
                expect_equal(index.exists(), size == "20K", "there is an index")
                if index.exists():
                    expect_equal(set(json.loads(index.read_text())["weight_map"]), set(weights),
                                 "weight_map")
                must_be_the_model(model, out)
        with checks.that(f"transformers loads a Llama {name} that was resharded and converted"):
            cut, out = scratch / f"cut-{tied}", scratch / f"cut-hf-{tied}"
            program.shardwright("reshard", saved, "--mesh", "dp=3,tp=2", "--out", cut,
                                "--yes").must_exit(0)
            converted(cut, out)
            must_be_the_model(model, out)
