"""Conversions through maps at the sizes of real models, a JSON line each.

  plan     names, shapes and config.json of Kimi-K2 to torch_dist, planned and not written
  learn    the map between 20,000 small tensors and what convert made of them
  large    a Llama of --large-gib to torch_dist under --memory 4G: time, peak of the resident set
  copy     a Llama of --copy-gib to torch_dist and back, next to `cp -r` of the same source; the
           map of the two is learned, next to `hash` of both

`plan` and `large` are holes in sparse files. Times are the best of --runs; those of `copy` take
turns. "of_cp" is the time of cp divided by that of the conversion, which reads back and proves too.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import time

BFLOAT16_BYTES = 2


class Folder:
    """A Hugging Face folder, a safetensors file per layer. Elements are holes, or what `fill` gives."""

    def __init__(self, path, config, fill=None):
        path.mkdir(parents=True)
        self.path, self.fill, self.files = path, fill, {}
        (path / "config.json").write_text(json.dumps(config))

    def add(self, file, name, shape, dtype="BF16"):
        self.files.setdefault(file, []).append((name, list(shape), dtype))

    def close(self):
        weight_map, total = {}, 0
        for number, tensors in enumerate(self.files.values(), 1):
            name = f"model-{number:05}-of-{len(self.files):05}.safetensors"
            header, at = {"__metadata__": {"format": "pt"}}, 0
            for fqn, shape, dtype in tensors:
                size = 4 if dtype == "F32" else BFLOAT16_BYTES
                for extent in shape:
                    size *= extent
                header[fqn] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
                weight_map[fqn] = name
                at += size
            text = json.dumps(header).encode()
            text += b" " * (-len(text) % 8)
            with open(self.path / name, "wb") as file:
                file.write(struct.pack("<Q", len(text)) + text)
                if self.fill:
                    self.fill(file, at)
                file.truncate(8 + len(text) + at)
            total += at
        (self.path / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}))
        return total, len(weight_map)


def random_bytes(file, size, block=1 << 24):
    """No two rows are equal, and no two tensors."""
    for at in range(0, size, block):
        file.write(random.randbytes(min(block, size - at)))


def kimi(path, experts):
    hidden, heads, ranks, vocabulary = 7168, 64, (1536, 512), 163840
    nope, rope, value, width, dense = 128, 64, 128, 2048, 18432
    config = {
        "architectures": ["DeepseekV3ForCausalLM"], "model_type": "kimi_k2", "dtype": "bfloat16",
        "hidden_size": hidden, "num_hidden_layers": 61, "num_attention_heads": heads,
        "num_key_value_heads": heads, "q_lora_rank": ranks[0], "kv_lora_rank": ranks[1],
        "qk_nope_head_dim": nope, "qk_rope_head_dim": rope, "v_head_dim": value,
        "moe_intermediate_size": width, "intermediate_size": dense, "n_routed_experts": experts,
        "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 0, "vocab_size": vocabulary, "tie_word_embeddings": False,
        "n_group": 1, "topk_group": 1, "topk_method": "noaux_tc", "scoring_func": "sigmoid"}
    folder = Folder(path, config)
    folder.add("ends", "model.embed_tokens.weight", (vocabulary, hidden))
    folder.add("ends", "model.norm.weight", (hidden,))
    folder.add("ends", "lm_head.weight", (vocabulary, hidden))
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        attention = at + "self_attn."
        for name, shape in (
                (at + "input_layernorm", (hidden,)), (at + "post_attention_layernorm", (hidden,)),
                (attention + "q_a_proj", (ranks[0], hidden)),
                (attention + "q_a_layernorm", (ranks[0],)),
                (attention + "q_b_proj", (heads * (nope + rope), ranks[0])),
                (attention + "kv_a_proj_with_mqa", (ranks[1] + rope, hidden)),
                (attention + "kv_a_layernorm", (ranks[1],)),
                (attention + "kv_b_proj", (heads * (nope + value), ranks[1])),
                (attention + "o_proj", (hidden, heads * value))):
            folder.add(layer, name + ".weight", shape)

        def gated(prefix, inner):
            folder.add(layer, prefix + "gate_proj.weight", (inner, hidden))
            folder.add(layer, prefix + "up_proj.weight", (inner, hidden))
            folder.add(layer, prefix + "down_proj.weight", (hidden, inner))
        if layer < config["first_k_dense_replace"]:
            gated(at + "mlp.", dense)
            continue
        folder.add(layer, at + "mlp.gate.weight", (experts, hidden))
        folder.add(layer, at + "mlp.gate.e_score_correction_bias", (experts,), "F32")
        gated(at + "mlp.shared_experts.", width)
        for expert in range(experts):
            gated(at + f"mlp.experts.{expert}.", width)
    return folder.close()


def llama(path, layers, hidden, width, heads, groups, vocabulary, fill=None):
    head = hidden // heads
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16",
        "hidden_size": hidden, "intermediate_size": width, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": head,
        "vocab_size": vocabulary, "tie_word_embeddings": False, "rms_norm_eps": 1e-5}
    folder = Folder(path, config, fill)
    folder.add("ends", "model.embed_tokens.weight", (vocabulary, hidden))
    folder.add("ends", "model.norm.weight", (hidden,))
    folder.add("ends", "lm_head.weight", (vocabulary, hidden))
    for layer in range(layers):
        at = f"model.layers.{layer}."
        for name, shape in (
                ("input_layernorm", (hidden,)), ("post_attention_layernorm", (hidden,)),
                ("self_attn.q_proj", (heads * head, hidden)),
                ("self_attn.k_proj", (groups * head, hidden)),
                ("self_attn.v_proj", (groups * head, hidden)),
                ("self_attn.o_proj", (hidden, heads * head)),
                ("mlp.gate_proj", (width, hidden)), ("mlp.up_proj", (width, hidden)),
                ("mlp.down_proj", (hidden, width))):
            folder.add(layer, at + name + ".weight", shape)
    return folder.close()


def run(*command, may_find=False):
    """Seconds, and the peak of the resident set in bytes. An error ends the bench."""
    started = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    code = status >> 8 if status & 0x7F == 0 else -(status & 0x7F)
    if code not in ((0, 1) if may_find else (0,)):
        sys.exit(f"maps.py: {command[1]} ended with {code}: {output[-2000:]}")
    return seconds, usage.ru_maxrss * 1024


def best(runs, *command, between=None, may_find=False):
    fastest = None
    for _ in range(runs):
        if between:
            between()
        taken = run(*command, may_find=may_find)
        fastest = min(fastest, taken) if fastest else taken
    return fastest


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--shardwright", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder to write in")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--large-gib", type=float, default=280, help="280 GiB are 300 GB")
    parser.add_argument("--copy-gib", type=float, default=4)
    parser.add_argument("--only", choices=("plan", "learn", "large", "copy"))
    options = parser.parse_args()
    program, work = options.shardwright, options.work

    def say(case, **figures):
        print(json.dumps({"case": case} | figures), flush=True)

    def forget(path):
        shutil.rmtree(path, ignore_errors=True)

    def wanted(case):
        return options.only in (None, case)

    if wanted("plan"):
        for experts in (100, 384):
            source = work / f"kimi-{experts}"
            size, tensors = kimi(source, experts)
            seconds, peak = best(options.runs, program, "plan", f"{source}/@as:torch_dist",
                                 "--then", "convert:megatron-dist")
            say("plan", tensors=tensors, gib=round(size / 2**30), seconds=round(seconds, 2),
                peak_mib=peak >> 20)
            forget(source)
    if wanted("learn"):
        source, other = work / "many", work / "many-megatron"
        _, tensors = llama(source, layers=2222, hidden=16, width=24, heads=2, groups=1,
                           vocabulary=128, fill=random_bytes)
        run(program, "convert", source, "--to", "torch_dist", "--out", other, "--yes")
        seconds, peak = best(options.runs, program, "learn", source, other, "--out",
                             work / "map.json", between=lambda: (work / "map.json").unlink(True))
        say("learn", tensors=tensors, seconds=round(seconds, 2), peak_mib=peak >> 20)
        forget(source)
        forget(other)
    if wanted("large"):
        source, other = work / "large", work / "large-megatron"
        # 855,654,400 elements a layer: Llama 3 with 70 billion has these sizes.
        layers = max(1, round(options.large_gib * 2**30 / BFLOAT16_BYTES / 855_654_400))
        size, _ = llama(source, layers, 8192, 28672, 64, 8, 128256)
        seconds, peak = run(program, "convert", source, "--to", "torch_dist", "--out", other,
                            "--memory", "4G", "--yes")
        say("large", gib=round(size / 2**30), seconds=round(seconds), peak_mib=peak >> 20,
            gib_per_second=round(size / 2**30 / seconds, 2))
        forget(source)
        forget(other)
    if wanted("copy"):
        source = work / "real"
        layers = max(1, round(options.copy_gib * 2**30 / BFLOAT16_BYTES / 218_112_000))
        size, _ = llama(source, layers, 4096, 14336, 32, 8, 32000, fill=random_bytes)
        copied, there, back = work / "copied", work / "there", work / "back"
        times = {"cp": [], "torch_dist": [], "hf": [], "hash": [], "learn": []}
        for _ in range(options.runs):
            forget(copied)
            times["cp"].append(run("cp", "-r", source, copied)[0])
            forget(copied)
            forget(there)
            times["torch_dist"].append(run(program, "convert", source, "--to", "torch_dist", "--out",
                                           there, "--yes")[0])
            times["hf"].append(run(program, "convert", there, "--to", "hf", "--config", source,
                                   "--out", back, "--yes")[0])
            forget(back)
            hashed = sum(run(program, "hash", path)[0] for path in (source, there))
            learned = run(program, "learn", source, there, "--out", work / "map.json")[0]
            (work / "map.json").unlink()
            times["hash"].append(hashed)
            times["learn"].append(learned)
        say("learn", gib=round(2 * size / 2**30, 2), seconds=round(min(times["learn"]), 2),
            of_hash=round(min(times["hash"]) / min(times["learn"]), 2))
        for form in ("torch_dist", "hf"):
            say("copy", to=form, gib=round(size / 2**30, 2), seconds=round(min(times[form]), 2),
                of_cp=round(min(times["cp"]) / min(times[form]), 2))
        for path in (source, there):
            forget(path)


if __name__ == "__main__":
    main()
