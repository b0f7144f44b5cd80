"""What a small training leaves raises nothing; one thing broken in it raises one rule.

Single process: what is read here are values, steps and groups, not tiles.
"""

import copy

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

import program
from checks import expect, expect_equal

STEPS, BETAS = 12, (0.9, 0.95)
GROUPS = "optimizer-groups"


def trained():
    """A model and AdamW with two groups: weight decay on matrices only."""
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.LayerNorm(32),
                                torch.nn.Linear(32, 16))
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                   {"params": vectors, "weight_decay": 0.0}],
                                  lr=1e-3, betas=BETAS)
    for _ in range(STEPS):
        loss = (model(torch.randn(16, 24)) - torch.randn(16, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, optimizer


def by_name(flat=False):
    model, optimizer = trained()
    options = StateDictOptions(flatten_optimizer_state_dict=flat)
    states = get_state_dict(model, optimizer, options=options)
    return {"model": states[0], "optimizer": states[1]}


def fused():
    """As TransformerEngine's FusedAdam saves it: masters in the state, steps in the groups."""
    model, optimizer = trained()
    names = {id(p): name for name, p in model.named_parameters()}
    state, weights, groups = {}, {}, []
    for group in optimizer.param_groups:
        groups.append({"params": [names[id(p)] for p in group["params"]], "lr": 1e-3,
                       "betas": BETAS, "weight_decay": group["weight_decay"], "step": STEPS})
        for p in group["params"]:
            kept = optimizer.state[p]
            weights[names[id(p)]] = p.detach().bfloat16()
            state[names[id(p)]] = {"exp_avg": kept["exp_avg"], "exp_avg_sq": kept["exp_avg_sq"],
                                   "master_param": p.detach().clone()}
    return {"model": weights, "optimizer": {"state": state, "param_groups": groups}}


def save(states, directory):
    dcp.save(copy.deepcopy(states), checkpoint_id=str(directory))
    return directory


def emptied(states):
    if isinstance(states, dict):
        return {key: emptied(value) for key, value in states.items()}
    if isinstance(states, list) and any(isinstance(value, dict) for value in states):
        return [emptied(value) for value in states]
    return torch.zeros_like(states) if torch.is_tensor(states) else None


def load(states, directory):
    template = emptied(states)
    dcp.load(template, checkpoint_id=str(directory))
    return template


def differences(got, wanted, path=""):
    if isinstance(wanted, dict):
        return [d for key in wanted for d in differences(got[key], wanted[key], f"{path}.{key}")]
    if isinstance(wanted, list) and len(wanted) == len(got):
        return [d for i, value in enumerate(wanted)
                for d in differences(got[i], value, f"{path}.{i}")]
    same = torch.equal(got, wanted) if torch.is_tensor(wanted) else got == wanted
    return [] if same else [path]


def rules_found(directory, *arguments):
    above = program.check(directory, "--data", *arguments).above_info()
    return [finding["rule"] for finding in above]


def healthy(checks, scratch):
    kinds = {"by name": by_name(), "flattened": by_name(flat=True), "fused": fused()}
    for number, (kind, states) in enumerate(kinds.items()):
        with checks.that(f"what a training leaves, {kind}, is clean with every byte read"):
            directory = save(states, scratch / f"healthy{number}")
            program.must_be_clean(directory, "--data")
            program.must_be_clean(directory, "--data", "--against", directory)


def must_be_mended(states, broken, directory, *arguments):
    """The one rule, a repair, and the states that torch then loads."""
    save(broken, directory)
    expect_equal(rules_found(directory, *arguments), [GROUPS], "rules above info")
    made = program.repair(directory, *arguments)
    program.must_be_proved(made["output"], "--against", directory)
    program.must_be_mended(made["output"], "--data", *arguments)
    expect_equal(differences(load(broken, made["output"]), states), [], "unlike what was trained")
    again = program.plan_operations(made["output"], *arguments)
    expect_equal(again, [], "operations of a second repair")


def steps(checks, scratch):
    with checks.that("a step tensor of 1 next to others of 12 is found and mended"):
        states = by_name()
        broken = copy.deepcopy(states)
        broken["optimizer"]["state"]["1.weight"]["step"].fill_(1)
        must_be_mended(states, broken, scratch / "tensor")
    for number, step in enumerate((1, 0, None)):
        with checks.that(f"a group of step {step} next to one of {STEPS} is found and mended"):
            states = fused()
            broken = copy.deepcopy(states)
            broken["optimizer"]["param_groups"][1]["step"] = step
            must_be_mended(states, broken, scratch / f"group{number}")
    with checks.that("a group that was added one step ago is as it should be"):
        states = by_name()
        added = states["optimizer"]["state"]["1.bias"]
        gradient = torch.randn_like(added["exp_avg"])
        added["exp_avg"] = (1 - BETAS[0]) * gradient
        added["exp_avg_sq"] = (1 - BETAS[1]) * gradient.square()
        added["step"].fill_(1)
        program.must_be_clean(save(states, scratch / "added"), "--data")


def groups(checks, scratch):
    with checks.that("groups in another order than the reference's are put into its order"):
        states = fused()
        reference = save(states, scratch / "reference")
        broken = copy.deepcopy(states)
        broken["optimizer"]["param_groups"].reverse()
        must_be_mended(states, broken, scratch / "order", "--against", reference)
    with checks.that("a parameter in two groups is a warning without a remedy"):
        states = fused()
        states["optimizer"]["param_groups"][1]["params"].append("0.weight")
        directory = save(states, scratch / "twice")
        finding, = program.check(directory, "--data").above_info()
        expect_equal((finding["rule"], finding["remedy"]), (GROUPS, None), "finding")


def values(checks, scratch):
    with checks.that("swapped moments of one parameter are found by their bound"):
        states = by_name()
        state = states["optimizer"]["state"]["0.weight"]
        state["exp_avg"], state["exp_avg_sq"] = state["exp_avg_sq"], state["exp_avg"]
        expect("moment-bound" in rules_found(save(states, scratch / "swapped")), "not found")
    with checks.that("a master whose rows were shifted is found, and where its rows are"):
        states = fused()
        state = states["optimizer"]["state"]["0.weight"]
        state["master_param"] = state["master_param"].roll(8, 0)
        directory = save(states, scratch / "shifted")
        finding, = program.check(directory, "--data").above_info()
        expect_equal(finding["rule"], "master-cast", "rule")
        expect("rows [8, 32) are rows [0, 24)" in str(finding["evidence"]), f"{finding}")


def rank_files(directory, placement, astray):
    """Two ranks' optimizer files, as MLite writes them: pickled DTensors."""
    tensors = [torch.arange(64.).reshape(8, 8) / 7, torch.arange(64.).reshape(8, 8) / 7 + astray]
    for rank, local in enumerate(tensors):
        dist.init_process_group("fake", rank=rank, world_size=2, store=FakeStore())
        try:
            mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
            whole = DTensor.from_local(local, mesh, [placement], run_check=False)
            torch.save({"exp_avgs": [whole]}, directory / f"optimizer_rank_{rank}.pt")
        finally:
            dist.destroy_process_group()


def replicas(checks, scratch):
    for placement, astray, wanted in ((Replicate(), 0, []), (Shard(0), 1, []),
                                      (Replicate(), 1, ["replica-diverge"])):
        with checks.that(f"files of two ranks, {placement}, {astray} apart: {wanted}"):
            directory = save(fused(), scratch / f"replicas{placement.is_shard()}{astray}")
            rank_files(directory, placement, astray)
            expect_equal(rules_found(directory), wanted, "rules above info")


def run(checks, other, scratch):
    healthy(checks, scratch)
    steps(checks, scratch)
    groups(checks, scratch)
    values(checks, scratch)
    replicas(checks, scratch)
