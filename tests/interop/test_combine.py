"""merge, extract, average, delta and apply, compared with torch's arithmetic and, where it is
installed, against PEFT.
"""

import importlib.util
import json
import pathlib
import types
import warnings

import torch
import transformers
from safetensors.torch import load_file, save_file

import program
from checks import LeftOut, expect, expect_equal

transformers.utils.logging.disable_progress_bar()
CONFIG = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
TARGETS = ["q_proj", "v_proj", "down_proj"]


def made(verb, *arguments):
    return program.shardwright(verb, *arguments, "--json", "--yes").must_exit(0)


def filled(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            values = torch.randn(parameter.shape, generator=generator) * 0.05
            parameter.copy_(values + ("norm" in name or "magnitude" in name))
    return model


def llama(**more):
    return filled(transformers.LlamaForCausalLM(transformers.LlamaConfig(**CONFIG, **more)), 1)


def gpt2():
    return filled(transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=96, n_embd=32, n_layer=2, n_head=4, n_positions=64)), 1)


def weights(folder):
    return load_file(pathlib.Path(folder) / "model.safetensors")


def expect_near(is_there, expected, what, tolerance=1e-6):
    expect_equal(sorted(is_there), sorted(expected), f"names of {what}")
    for name, tensor in expected.items():
        expect(torch.allclose(is_there[name].float(), tensor.float(), rtol=tolerance,
                              atol=tolerance), f"{what}: {name}")


def saved_adapter(folder, base, rank, alpha, dtype):
    """Matrices for every target, and the weights that they make of the base in float32."""
    generator = torch.Generator().manual_seed(5)
    folder.mkdir(parents=True)
    tensors, sums = {}, dict(base)
    for name, weight in base.items():
        module = name.removesuffix(".weight")
        if module.rpartition(".")[2] not in TARGETS:
            continue
        a = torch.randn(rank, weight.shape[1], generator=generator).to(dtype)
        b = torch.randn(weight.shape[0], rank, generator=generator).to(dtype)
        tensors[f"base_model.model.{module}.lora_A.weight"] = a
        tensors[f"base_model.model.{module}.lora_B.weight"] = b
        product = weight.float() + alpha / rank * (b.float() @ a.float())
        sums[name] = product.to(weight.dtype)
    save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": TARGETS}))
    return sums


def try_merge_rounds_once(folder):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        place = folder / str(dtype)
        llama().to(dtype).save_pretrained(place / "base")
        sums = saved_adapter(place / "adapter", weights(place / "base"), 4, 8, dtype)
        made("merge", place / "base", place / "adapter", "--out", place / "out")
        out = weights(place / "out")
        if dtype == torch.float32:
            expect_near(out, sums, "merged float32")
            continue
        # Sums in another order may fall on the other side of the middle between two numbers.
        differing = sum(int((out[name] != sums[name]).sum()) for name in sums)
        elements = sum(tensor.numel() for tensor in sums.values())
        expect(differing < elements / 1000, f"merged {dtype}: {differing} of {elements} differ")


def try_merge_in_any_format(folder):
    llama().save_pretrained(folder / "base")
    sums = saved_adapter(folder / "adapter", weights(folder / "base"), 4, 8, torch.float32)
    for target in ("dcp", "torch", "safetensors"):
        made("convert", folder / "base", "--to", target, "--out", folder / target)
        made("merge", folder / target, folder / "adapter", "--out", folder / f"{target}-merged")
        made("convert", folder / f"{target}-merged", "--to", "safetensors", "--out",
             folder / f"{target}-back")
        expect_near(weights(folder / f"{target}-back"), sums, f"merged in {target}")
    transformers.AutoModelForCausalLM.from_pretrained(folder / "safetensors-merged")


def peft_cases(peft):
    config = peft.LoraConfig
    yield "plain", llama, config(r=4, lora_alpha=8, target_modules=TARGETS)
    yield "patterns", llama, config(r=4, lora_alpha=8, target_modules=TARGETS, use_rslora=True,
                                    rank_pattern={"q_proj": 2}, alpha_pattern={"v_proj": 3})
    yield "DoRA", llama, config(r=4, lora_alpha=8, target_modules=TARGETS, use_dora=True)
    yield "saved modules", llama, config(r=4, lora_alpha=8, target_modules=TARGETS,
                                         modules_to_save=["lm_head", "embed_tokens"])
    yield "embeddings", llama, config(r=4, lora_alpha=8, target_modules=[*TARGETS, "embed_tokens"])
    yield "GPT-2", gpt2, config(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"])
    yield "GPT-2 with DoRA", gpt2, config(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"],
                                          use_dora=True)
    yield "one layer", llama, config(r=4, lora_alpha=8, target_modules=TARGETS,
                                     layers_to_transform=[1])


def try_merge_as_peft(folder):
    try:
        import peft
    except ImportError:
        raise LeftOut("peft is not installed") from None
    warnings.simplefilter("ignore")
    for number, (what, model, config) in enumerate(peft_cases(peft)):
        place = folder / str(number)
        base = model()
        base.save_pretrained(place / "base")
        filled(peft.get_peft_model(base, config), 2).save_pretrained(place / "adapter")
        # Its own copy of what was saved: the model above has been changed.
        fresh = type(base).from_pretrained(place / "base")
        merged = peft.PeftModel.from_pretrained(fresh, place / "adapter").merge_and_unload()
        merged.save_pretrained(place / "truth")
        saved = weights(place / "base")
        made("merge", place / "base", place / "adapter", "--out", place / "out")
        made_of = type(base).from_pretrained(place / "out")
        expect_near(dict(made_of.state_dict()), dict(merged.state_dict()), what)
        expect(any(not torch.equal(saved[name], weights(place / "out")[name]) for name in saved),
               f"{what}: something changed")
        # And the other way, loaded by PEFT.
        made("extract", place / "out", place / "base", "--rank", "32", "--out", place / "again")
        fresh = type(base).from_pretrained(place / "base")
        back = peft.PeftModel.from_pretrained(fresh, place / "again").merge_and_unload()
        expect_near(dict(back.state_dict()), dict(merged.state_dict()), f"{what}, extracted", 2e-5)


def try_extract_is_the_truncated_decomposition(folder):
    llama().save_pretrained(folder / "base")
    base = weights(folder / "base")
    generator = torch.Generator().manual_seed(9)
    tuned = {name: tensor + 0.01 * torch.randn(tensor.shape, generator=generator)
             if name.endswith("q_proj.weight") else tensor for name, tensor in base.items()}
    (folder / "tuned").mkdir()
    save_file(tuned, folder / "tuned" / "model.safetensors", {"format": "pt"})
    for rank in (1, 4, 16):
        out = folder / f"rank {rank}"
        made("extract", folder / "tuned", folder / "base", "--rank", rank, "--out", out)
        said = json.loads((out / "extraction.json").read_text())["rest"]
        matrices = load_file(out / "adapter_model.safetensors")
        for name, share in said.items():
            change = tuned[name] - base[name]
            singular = torch.linalg.svdvals(change.double())
            best = (singular[rank:].square().sum().sqrt() / singular.square().sum().sqrt()).item()
            stem = "base_model.model." + name.removesuffix(".weight")
            rest = change - matrices[stem + ".lora_B.weight"] @ matrices[stem + ".lora_A.weight"]
            measured = (rest.norm() / change.norm()).item()
            expect(abs(measured - share) < 1e-4, f"rank {rank}: {name} says {share}, is {measured}")
            expect(measured < best * 1.02 + 1e-6, f"rank {rank}: {name} {measured}, best {best}")


def try_average_and_delta(folder):
    generator = torch.Generator().manual_seed(3)
    llama().save_pretrained(folder / "a")
    first = weights(folder / "a")
    others = {}
    for name in ("b", "c"):
        (folder / name).mkdir()
        others[name] = {k: v + 0.1 * torch.randn(v.shape, generator=generator)
                        for k, v in first.items()}
        save_file(others[name], folder / name / "model.safetensors", {"format": "pt"})
    made("average", folder / "a", folder / "b", folder / "c", "--weights", "0.5,0.3,0.2", "--out",
         folder / "average")
    expected = {k: (0.5 * v.double() + 0.3 * others["b"][k].double() + 0.2 * others["c"][k].double()
                    ).float() for k, v in first.items()}
    for name, tensor in weights(folder / "average").items():
        expect(torch.equal(tensor, expected[name]), f"average of {name}")
    changed = {k: torch.where(torch.rand(v.shape, generator=generator) < 0.03, v + 1, v)
               for k, v in first.items()}
    del changed["model.norm.weight"]
    changed["more.weight"] = torch.ones(3)
    (folder / "changed").mkdir()
    save_file(changed, folder / "changed" / "model.safetensors", {"format": "pt"})
    made("convert", folder / "a", "--to", "dcp", "--out", folder / "dcp")
    made("delta", folder / "dcp", folder / "changed", "--out", folder / "delta")
    size = (folder / "delta" / "model.safetensors").stat().st_size
    expect(size < (folder / "a" / "model.safetensors").stat().st_size / 4, f"{size} bytes of a delta")
    for base in ("a", "dcp"):
        out = folder / f"{base}-applied"
        made("apply", folder / base, folder / "delta", "--to", "safetensors", "--out", out)
        there = weights(out)
        expect_equal(sorted(there), sorted(changed), "names")
        for name, tensor in changed.items():
            expect(torch.equal(there[name], tensor), f"applied to {base}: {name}")
    program.shardwright("apply", folder / "b", folder / "delta", "--json", "--yes", "--out",
                        folder / "wrong").must_exit(2)
    expect(not (folder / "wrong").exists(), "nothing is written for another base")


def fp8_of_transformers(name, weight, block, powers):
    """What transformers makes of a weight, by its own operation."""
    try:
        from transformers.integrations.finegrained_fp8 import Fp8Quantize
    except ImportError:
        raise LeftOut("transformers has no Fp8Quantize") from None
    config = types.SimpleNamespace(weight_block_size=block, scale_fmt="ue8m0" if powers else "float")
    return Fp8Quantize(types.SimpleNamespace(quantization_config=config))._quantize_one(name, weight)


def try_quantise(folder):
    llama().to(torch.bfloat16).save_pretrained(folder / "base")
    base = weights(folder / "base")
    kept = {"model.embed_tokens.weight", "lm_head.weight"}
    for scheme, powers in (("fp8-block", False), ("fp8-block-ue8m0", True)):
        out = folder / scheme
        made("convert", folder / "base", "--to", "safetensors", "--quantise", f"{scheme},16x32",
             "--out", out)
        there = weights(out)
        expected = {}
        for name, weight in base.items():
            expected |= ({name: weight} if name in kept
                         else fp8_of_transformers(name, weight, (16, 32), powers))
        expect_equal(sorted(there), sorted(expected), f"names of {scheme}")
        for name, tensor in expected.items():
            expect_equal(there[name].dtype, tensor.dtype, f"{scheme}: dtype of {name}")
            expect(torch.equal(there[name].view(torch.uint8), tensor.view(torch.uint8)),
                   f"{scheme}: {name} to the bit")
        program.must_be_clean(out)
        if importlib.util.find_spec("accelerate") is None:
            continue  # transformers loads FP8 by it
        loaded = transformers.AutoModelForCausalLM.from_pretrained(out)
        for name, tensor in loaded.state_dict().items():
            weight = base[name].float()
            most = weight.abs().max().item() / 16
            expect((tensor.float() - weight).abs().max().item() <= most, f"{scheme}: loaded {name}")


def run(checks, other, scratch):
    tries = {
        "merge adds the product and rounds once": try_merge_rounds_once,
        "merge keeps the format of the base, and transformers loads it": try_merge_in_any_format,
        "merge gives what PEFT gives, and PEFT loads what extract gives": try_merge_as_peft,
        "extract leaves out what the truncated decomposition leaves out":
            try_extract_is_the_truncated_decomposition,
        "average and delta are exact": try_average_and_delta,
        "quantised weights are transformers' own to the bit, and load": try_quantise,
    }
    for number, (sentence, attempt) in enumerate(tries.items()):
        with checks.that(sentence):
            attempt(scratch / str(number))
