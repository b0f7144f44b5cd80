"""Real Trainer goes on from an optimizer.pt that convert wrote, as if nothing had happened.

A tiny Llama is trained for six steps and saved after the third. That checkpoint goes to another
format and back, and Trainer resumes from it: the losses of the last three steps and the weights
after them are equal to the bit.
"""

import json
import shutil

import torch
import torch.distributed.checkpoint as dcp
import transformers
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict

import program
from checks import expect, expect_equal

transformers.utils.logging.set_verbosity_error()

STEPS, SAVED = 6, 3
CARRIED = ("trainer_state.json", "scheduler.pt", "rng_state.pth", "training_args.bin")


def tiny_llama():
    config = transformers.LlamaConfig(
        vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        tie_word_embeddings=False)
    torch.manual_seed(7)
    return transformers.LlamaForCausalLM(config)


def train(folder, resume=None, optim="adamw_torch"):
    """Losses by step, and the trainer."""
    words = torch.randint(0, 96, (64, 16), generator=torch.Generator().manual_seed(5))
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), max_steps=STEPS, save_strategy="steps", save_steps=SAVED, logging_steps=1,
        per_device_train_batch_size=2, learning_rate=1e-2, weight_decay=0.1, warmup_steps=2,
        lr_scheduler_type="cosine", use_cpu=True, seed=3, report_to=[], disable_tqdm=True, optim=optim)
    trainer = transformers.Trainer(
        model=tiny_llama(), args=arguments,
        train_dataset=[{"input_ids": row, "labels": row} for row in words])
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    losses = {entry["step"]: entry["loss"] for entry in trainer.state.log_history if "loss" in entry}
    return losses, trainer


def convert(source, to, out, *arguments):
    return program.shardwright("convert", source, "--to", to, "--out", out, "--json", "--yes",
                               *arguments).must_exit(0).json


def must_go_on(saved, weights, optimizer, folder, whole, optim="adamw_torch"):
    """Trainer resumes from these weights and this optimizer; `whole` ran through."""
    resumed = folder / f"checkpoint-{SAVED}"
    resumed.mkdir(parents=True)
    for name in CARRIED + ("config.json",):
        shutil.copy(saved / name, resumed)
    for file in weights.glob("*.safetensors*"):
        shutil.copy(file, resumed)
    shutil.copy(optimizer / "optimizer.pt", resumed)
    losses, trainer = train(folder, resumed, optim)
    wanted, done = whole
    later = range(SAVED + 1, STEPS + 1)
    expect_equal([losses[step] for step in later], [wanted[step] for step in later], "losses")
    for (name, one), other in zip(trainer.model.named_parameters(), done.model.parameters()):
        expect(torch.equal(one, other), f"{name} differs after {STEPS} steps")


def same_states(written, saved):
    one, other = (torch.load(path / "optimizer.pt", weights_only=True) for path in (written, saved))
    expect_equal(list(sorted(one["state"])), list(sorted(other["state"])), "numbers")
    for number, states in other["state"].items():
        for kind, value in states.items():
            found = one["state"][number][kind]
            expect(torch.equal(found, value) and found.dtype == value.dtype, f"{number}.{kind}")
    expect_equal([group["params"] for group in one["param_groups"]],
                 [group["params"] for group in other["param_groups"]], "numbers of groups")
    return one["param_groups"], other["param_groups"]


def run(checks, other, scratch):
    names = scratch / "names.txt"
    names.write_text("\n".join(name for name, _ in tiny_llama().named_parameters()) + "\n")
    for optim in ("adamw_torch", "adamw_torch_fused"):
        whole = train(scratch / optim, optim=optim)
        saved = scratch / optim / f"checkpoint-{SAVED}"
        weights, optimizer = scratch / f"{optim}-weights", scratch / f"{optim}-optimizer"
        with checks.that(f"Trainer goes on after a way through DCP ({optim})"):
            back = convert(f"{saved}/@optimizer={names}", "dcp", scratch / f"{optim}-dcp",
                           "--round-trip")["way_back"]
            expect_equal((back["differ"], back["without"]), ([], []), "way back")
            convert(scratch / f"{optim}-dcp", "safetensors", weights, "--weights-only")
            convert(scratch / f"{optim}-dcp", "optimizer", optimizer)
            expect_equal(*same_states(optimizer, saved), "groups")
            must_go_on(saved, weights, optimizer, scratch / f"{optim}-resumed", whole, optim)

    whole = train(scratch / "plain")
    saved = scratch / "plain" / f"checkpoint-{SAVED}"
    with checks.that("what Trainer saved goes to Megatron and back"):
        megatron = scratch / "megatron"
        back = convert(f"{saved}/@optimizer={names}", "torch_dist", megatron, "--round-trip")["way_back"]
        expect_equal((back["differ"], back["without"]), ([], []), "way back")
        parameters = len(names.read_text().split())
        expect_equal(back["as_settings"], parameters, "steps that are a setting")
        expect_equal(back["equal"], 3 * parameters, "tensors that are equal")
        refused = program.shardwright("convert", megatron, "--to", "optimizer", "--out",
                                      scratch / "refused", "--yes").must_exit(3)
        expect("--order" in refused.stderr, refused)
        convert(megatron, "hf", scratch / "megatron-hf", "--config", saved)
        convert(megatron, "optimizer", scratch / "megatron-optimizer", "--order", names)
        same_states(scratch / "megatron-optimizer", saved)
        must_go_on(saved, scratch / "megatron-hf", scratch / "megatron-optimizer",
                   scratch / "megatron-resumed", whole)

    with checks.that("Trainer goes on from what torch's own DCP saved"):
        _, trainer = train(scratch / "again", saved)
        model, adam = tiny_llama(), None
        del trainer
        model.load_state_dict(transformers.LlamaForCausalLM.from_pretrained(saved).state_dict())
        groups = torch.load(saved / "optimizer.pt", weights_only=True)
        by_name = dict(model.named_parameters())
        plain = [name for name in by_name if "norm" not in name]
        adam = torch.optim.AdamW([{"params": [by_name[name] for name in plain]},
                                  {"params": [by_name[name] for name in by_name
                                              if name not in plain], "weight_decay": 0.0}])
        adam.load_state_dict(groups)
        dcp.save({"model": get_model_state_dict(model),
                  "optimizer": get_optimizer_state_dict(model, adam)},
                 checkpoint_id=scratch / "torch-dcp", no_dist=True)
        convert(scratch / "torch-dcp", "optimizer", scratch / "dcp-optimizer")
        same_states(scratch / "dcp-optimizer", saved)
        convert(scratch / "torch-dcp", "safetensors", scratch / "dcp-weights", "--weights-only",
                "--strip", "model.")
        must_go_on(saved, scratch / "dcp-weights", scratch / "dcp-optimizer",
                   scratch / "dcp-resumed", whole)

    with checks.that("an order that does not fit is refused"):
        turned = scratch / "turned.txt"
        turned.write_text("\n".join(reversed(names.read_text().split())))
        answer = program.shardwright("info", f"{saved}/@optimizer={turned}").must_exit(2, 3)
        expect("but its parameter by this order" in answer.stderr, answer)
        answer = program.shardwright("info", f"{saved}/@optimizer").must_exit(2, 3)
        expect("names.txt" in answer.stderr, answer)
