"""What convert wrote loads in the library of the model: transformers, PEFT, diffusers and
sentence-transformers, with the values that the library saved. A library that is not installed is
left out.
"""

import importlib
import json
import warnings

import torch
import torch.distributed.checkpoint as dcp
import transformers

import judge
import program
from checks import LeftOut, expect_equal

transformers.utils.logging.disable_progress_bar()
TEXT = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4}
DECODER = {**TEXT, "num_key_value_heads": 2, "max_position_embeddings": 64}
VISION = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
          "num_attention_heads": 4, "image_size": 32, "patch_size": 16}
BLOCKS = {"layers_per_block": 1, "block_out_channels": (32, 32), "norm_num_groups": 8}


def library(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise LeftOut(f"{name} is not installed") from None


def converted(source, out, *arguments):
    program.shardwright("convert", source, "--json", "--out", out, "--yes",
                        *arguments).must_exit(0)
    return out


def models_of_transformers():
    t = transformers
    yield "Llama", t.LlamaForCausalLM(t.LlamaConfig(**DECODER))
    yield "tied Llama", t.LlamaForCausalLM(t.LlamaConfig(**DECODER, tie_word_embeddings=True))
    yield "Qwen3-MoE", t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(
        **DECODER, moe_intermediate_size=24, num_experts=4, num_experts_per_tok=2, head_dim=8))
    yield "Mixtral", t.MixtralForCausalLM(t.MixtralConfig(**DECODER, num_local_experts=4))
    yield "BERT", t.BertForMaskedLM(t.BertConfig(**TEXT))
    yield "T5", t.T5ForConditionalGeneration(t.T5Config(
        vocab_size=96, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4))
    yield "GPT-2", t.GPT2LMHeadModel(t.GPT2Config(
        vocab_size=96, n_embd=32, n_layer=2, n_head=4, n_positions=64))
    yield "CLIP", t.CLIPModel(t.CLIPConfig(
        text_config=TEXT, vision_config=VISION, projection_dim=16))
    yield "ResNet", t.ResNetForImageClassification(t.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]))
    yield "LLaVA", t.LlavaForConditionalGeneration(t.LlavaConfig(
        text_config=t.LlamaConfig(**DECODER), vision_config=t.CLIPVisionConfig(**VISION),
        image_token_index=90))


def loads_as(model, folder, dtype=None):
    loaded, told = type(model).from_pretrained(folder, output_loading_info=True, dtype="auto")
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        expect_equal(sorted(told[kind]), [], kind)
    saved = {name: value.to(dtype) if dtype and value.is_floating_point() else value
             for name, value in model.state_dict().items()}
    expect_equal(judge.differences(loaded.state_dict(), saved), [], "weights")


def try_transformers(checks, scratch):
    for name, model in models_of_transformers():
        folder = scratch / name
        model.save_pretrained(folder, max_shard_size="20KB")
        with checks.that(f"transformers loads {name}: one file, of torch.save, bfloat16, from DCP"):
            program.must_be_clean(folder)
            loads_as(model, converted(folder, scratch / f"{name}-one", "--to", "safetensors"))
            loads_as(model, converted(folder, scratch / f"{name}-pt", "--to", "torch"))
            loads_as(model, converted(folder, scratch / f"{name}-16", "--to", "safetensors",
                                      "--dtype", "bf16"), torch.bfloat16)
            saved = converted(folder, scratch / f"{name}-dcp", "--to", "dcp")
            loads_as(model, converted(saved, scratch / f"{name}-back", "--to", "safetensors",
                                      "--shard-size", "30K"))
        with checks.that(f"transformers loads {name} of a DCP with its optimizer"):
            run = scratch / f"{name}-run"
            state = {"model": model.state_dict(), "step": 7,
                     "optimizer": {"state": {"w": {"exp_avg": torch.zeros(3)}}}}
            dcp.save(state, checkpoint_id=run, no_dist=True)
            out = converted(run, scratch / f"{name}-weights", "--to", "safetensors",
                            "--weights-only", "--strip", "model.")
            model.config.save_pretrained(out)
            loads_as(model, out)


def try_peft(scratch):
    peft = library("peft")
    base = transformers.LlamaForCausalLM(transformers.LlamaConfig(**DECODER))
    base.save_pretrained(scratch / "base")
    for number, more in enumerate(({}, {"use_dora": True}, {"modules_to_save": ["lm_head"]})):
        fresh = transformers.LlamaForCausalLM.from_pretrained
        model = peft.get_peft_model(fresh(scratch / "base"), peft.LoraConfig(
            r=4, target_modules=["q_proj"], init_lora_weights=False, task_type="CAUSAL_LM", **more))
        folder = scratch / f"adapter-{number}"
        model.save_pretrained(folder)
        saved = converted(folder, scratch / f"adapter-{number}-dcp", "--to", "dcp")
        for source, to in ((folder, "torch"), (folder, "safetensors"), (saved, "safetensors")):
            out = converted(source, scratch / f"{source.name}-{to}", "--to", to)
            loaded = peft.PeftModel.from_pretrained(fresh(scratch / "base"), out)
            expect_equal(judge.differences(loaded.state_dict(), model.state_dict()), [], "weights")


def try_diffusers(scratch):
    diffusers = library("diffusers")
    unet = diffusers.UNet2DModel(
        sample_size=8, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"), **BLOCKS)
    pipeline = diffusers.DDPMPipeline(unet=unet, scheduler=diffusers.DDPMScheduler())
    pipeline.save_pretrained(scratch / "pipeline")
    for to in ("safetensors", "torch"):
        out = converted(scratch / "pipeline", scratch / f"pipeline-{to}", "--to", to)
        loaded = diffusers.DDPMPipeline.from_pretrained(out).unet
        expect_equal(judge.differences(loaded.state_dict(), unet.state_dict()), [], "weights")


def try_sentence_transformers(scratch):
    library("sentence_transformers")
    from sentence_transformers import SentenceTransformer, models
    base = scratch / "bert"
    transformers.BertModel(transformers.BertConfig(**{**TEXT, "vocab_size": 6})).save_pretrained(base)
    (base / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n")
    transformers.BertTokenizer(str(base / "vocab.txt")).save_pretrained(base)
    parts = [models.Transformer(str(base)), models.Pooling(32), models.Dense(32, 16)]
    model = SentenceTransformer(modules=parts, device="cpu")
    model.save(str(scratch / "sentences"))
    for to in ("safetensors", "torch"):
        out = converted(scratch / "sentences", scratch / f"sentences-{to}", "--to", to)
        loaded = SentenceTransformer(str(out), device="cpu")
        expect_equal(json.loads((out / "modules.json").read_text())[-1]["path"], "2_Dense", "path")
        expect_equal((loaded.encode(["hello"]) == model.encode(["hello"])).all(), True, "vectors")


def run(checks, other, scratch):
    warnings.simplefilter("ignore")
    torch.manual_seed(7)
    try_transformers(checks, scratch)
    with checks.that("PEFT loads adapters: LoRA, DoRA, with saved modules"):
        try_peft(scratch)
    with checks.that("diffusers loads a pipeline"):
        try_diffusers(scratch)
    with checks.that("sentence-transformers loads a model with a dense module"):
        try_sentence_transformers(scratch)
