"""The neighbours of the five reports, compared with a reference checkpoint (failures.md 8).

torch writes the checkpoint as the mistake leaves it, by several ranks, and the truth as a reference
of another number of ranks. `check --against` must name the rule, `repair --against` must give the
truth back bit for bit where nothing was lost, and a second look must find nothing. What no repair
can know (a collision of stages, a lost output layer) must be said, and left.
"""

import contextlib
import dataclasses
import json

import torch
from safetensors.torch import save_file
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import default_planner
from torch.distributed.tensor import DTensor, Shard

import judge
import program
from checks import expect, expect_equal
from fake_ranks import Piece, dtensor, torch_chunk, write_checkpoint

LATER = 0.05  # what more training changes, beside weights of size 1


def noise(*shape, seed, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def turned(tensor):
    return tensor.transpose(-1, -2).contiguous()


def rows(tensor, rank):
    """torch.chunk along dim 0: uneven and empty shards and all."""
    begin, length = torch_chunk(tensor.shape[0], rank.world, rank.number)
    return tensor[begin:begin + length].clone()


def sharded(tensors, objects=None, views=()):
    """A state dict whose tensors are DTensors, cut along dim 0; `views` are saved column-major."""
    def state_dict_of(rank):
        mesh = rank.device_mesh({"dp": rank.world})
        state = {}
        for fqn, tensor in tensors.items():
            if isinstance(tensor, (Whole, Unsaid)):
                state.update(tensor.of(fqn, rank))
                continue
            local = rows(tensor, rank)
            if fqn in views:
                local = turned(local).transpose(-1, -2)
            state[fqn] = dtensor(local, mesh, ["Shard(0)"], tensor.shape)
        return {**state, **(objects or {})}
    return state_dict_of


@dataclasses.dataclass
class Whole:
    """A tensor in pieces that the framework labels itself: (rank, offset, rows) along dim 0."""
    tensor: torch.Tensor
    pieces: list
    size: tuple = None

    def of(self, fqn, rank):
        mine = [Piece(self.tensor[begin:begin + count].clone(),
                      (offset, *[0] * (self.tensor.dim() - 1)), self.size or self.tensor.shape)
                for owner, offset, begin, count in self.pieces if owner == rank.number]
        return {fqn: mine} if mine else {}


@dataclasses.dataclass
class Unsaid:
    """DTensor.from_local without shape: torch works the global shape out from one rank's rows."""
    tensor: torch.Tensor

    def of(self, fqn, rank):
        mesh = rank.device_mesh({"dp": rank.world})
        return {fqn: DTensor.from_local(rows(self.tensor, rank), mesh, [Shard(0)],
                                        run_check=False)}


@contextlib.contextmanager
def no_validation():
    """As the savers that reach the disk with such a plan have it: the check is a stub."""
    checks_of_torch = default_planner._validate_global_plan
    default_planner._validate_global_plan = lambda *arguments: []
    try:
        yield
    finally:
        default_planner._validate_global_plan = checks_of_torch


@dataclasses.dataclass
class Case:
    name: str
    rule: str
    saved: dict
    truth: dict
    kind: str = None        # of the remedy; None: nothing may be repaired
    reference: dict = None  # where it is not the truth
    repaired: dict = None   # where the repair cannot give all of the truth back
    world: int = 3
    objects: dict = None
    true_objects: dict = None
    severity: str = "error"
    by_spec: bool = False   # --spec instead of --against
    views: tuple = ()
    lossless: bool = True


def transposed():
    square = noise(48, 48, seed=1, dtype=torch.bfloat16)
    oblong = noise(40, 24, seed=2)
    experts = noise(4, 32, 32, seed=3, dtype=torch.float16)
    uneven_experts = noise(5, 20, 28, seed=4, dtype=torch.bfloat16)
    double = noise(33, 7, seed=5, dtype=torch.float64)
    bytes_ = torch.arange(35 * 9, dtype=torch.int64).reshape(35, 9).to(torch.uint8)
    beside = {"model.norm.weight": noise(48, seed=6), "model.embed.weight": noise(50, 24, seed=7)}
    for name, weight in (("square", square), ("oblong", oblong), ("experts", experts),
                         ("uneven experts", uneven_experts), ("float64", double),
                         ("one byte", bytes_)):
        fqn = "model.layers.0.mlp.experts.w1" if weight.dim() == 3 else "model.layers.0.w.weight"
        yield Case(f"N8 {name}", "transposed", {fqn: turned(weight), **beside},
                   {fqn: weight, **beside}, "transpose")
    later = (square.float() + LATER * noise(48, 48, seed=8)).to(torch.bfloat16)
    yield Case("N8 after more training", "transposed", {"model.w.weight": turned(later), **beside},
               {"model.w.weight": later, **beside}, "transpose",
               reference={"model.w.weight": square, **beside})
    moment, second = noise(40, 24, seed=9), noise(40, 24, seed=10).abs()
    states = {"optim.state.w.weight.exp_avg": moment, "optim.state.w.weight.exp_avg_sq": second}
    yield Case("N8 with its states", "transposed",
               {"model.w.weight": turned(oblong), **{k: turned(v) for k, v in states.items()}},
               {"model.w.weight": oblong, **states}, "transpose")
    yield Case("N8 as a view, by the spec alone", "transposed",
               {"model.w.weight": turned(oblong), **beside}, {"model.w.weight": oblong, **beside},
               "transpose", by_spec=True, views=("model.w.weight",))
    yield Case("N8 by the shape alone", "transposed", {"model.w.weight": turned(oblong), **beside},
               {"model.w.weight": oblong, **beside}, by_spec=True)
    yield Case("N8 the bytes under another shape", "transposed",
               {"model.w.weight": oblong.reshape(24, 40), **beside},
               {"model.w.weight": oblong, **beside})


def layer(real, number, with_states=True):
    own, tensors = f"layers.{number}.", {}
    for i, name in enumerate(("attn.q_proj.weight", "mlp.up_proj.weight")):
        tensors[f"model.{own}{name}"] = noise(9, 6, seed=100 * real + i, dtype=torch.bfloat16)
        if with_states:
            for j, kind in enumerate(("exp_avg", "exp_avg_sq")):
                state = noise(9, 6, seed=100 * real + 10 * i + j + 50)
                if kind == "exp_avg_sq":  # moments that can belong to each other
                    state = tensors[f"optim.state.{own}{name}.exp_avg"].square() + state.abs()
                tensors[f"optim.state.{own}{name}.{kind}"] = state
    tensors[f"model.{own}norm.weight"] = noise(6, seed=100 * real + 90)
    return tensors


def settings(real, number):
    return {f"optim.param_groups.layers.{number}.attn.q_proj.weight.lr": 0.5 + real}


def stack(order, **more):
    made = {}
    for number, real in enumerate(order):
        made.update(layer(real, number, **more))
    return made


def renumbered():
    objects = lambda order: {k: v for n, real in enumerate(order)  # noqa: E731
                             for k, v in settings(real, n).items()}
    for order in ((0, 2, 1, 3), (2, 3, 0, 1)):
        yield Case(f"N10 {order}", "layers-renumbered", stack(order), stack(range(4)), "rename",
                   objects=objects(order), true_objects=objects(range(4)))
        yield Case(f"N10 {order} against an export", "layers-renumbered", stack(order),
                   stack(range(4)), "rename", reference=stack(range(4), with_states=False))
    second = {**layer(2, 2), **layer(3, 3)}
    yield Case("N10 the later stage alone", "layers-renumbered", stack((2, 3)), stack(range(4)),
               "rename", repaired=second)
    mixed = stack((0, 1))
    mixed.update({k: v for k, v in stack((2, 3)).items() if "mlp" in k})
    yield Case("N10 stages mixed", "layers-renumbered", mixed, stack(range(4)))


def reordered():
    fc1 = "model.layers.0.mlp.fc1.weight"
    truth, ranks = noise(32, 6, seed=20, dtype=torch.bfloat16), 4
    # N1: rank r labels the halves of its own rows [8r, 8r+8) as r and r + ranks.
    swizzled = Whole(truth, [(r, 4 * (r + half * ranks), 8 * r + 4 * half, 4)
                             for r in range(ranks) for half in (0, 1)])
    yield Case("N1 swizzle", "blocks-permuted", {fc1: swizzled}, {fc1: truth}, "permute-blocks",
               world=ranks)
    heads = noise(8 * 4, 10, seed=21)
    block = lambda i: heads[4 * i:4 * i + 4]  # noqa: E731
    grouped = torch.cat([block(i) for i in (0, 1, 4, 6, 2, 3, 5, 7)])
    qkv = "model.layers.0.attn.qkv.weight"
    yield Case("N2 grouped heads", "blocks-permuted", {qkv: grouped}, {qkv: heads},
               "permute-blocks")
    yield Case("N2 stacked heads", "blocks-permuted", {qkv: heads}, {qkv: grouped},
               "permute-blocks")
    gate, up = truth.chunk(2)
    yield Case("N3 up before gate", "blocks-permuted", {fc1: torch.cat([up, gate])}, {fc1: truth},
               "permute-blocks")
    interleaved = torch.stack([gate, up], 1).reshape(truth.shape)
    yield Case("N3 row by row", "blocks-permuted", {fc1: interleaved}, {fc1: truth},
               "permute-blocks")
    experts = noise(3, 8, 5, seed=22)
    yield Case("N3 in every expert", "blocks-permuted",
               {"model.experts.gate_up_proj": experts.roll(4, 1)},
               {"model.experts.gate_up_proj": experts}, "permute-blocks")


def others():
    embedding, norm = noise(20, 6, seed=30), noise(6, seed=31)
    model = {"model.embed_tokens.weight": embedding, "model.norm.weight": norm}
    yield Case("N6 tied, the head left out", "tied-weights", model,
               {**model, "lm_head.weight": embedding}, severity="info", repaired=model)
    yield Case("N6 untied, the head lost", "tied-weights", model,
               {**model, "lm_head.weight": noise(20, 6, seed=32)})
    padded = torch.cat([embedding, torch.zeros(12, 6)])
    yield Case("N7 padded more", "vocabulary-padding", {**model, "lm_head.weight": padded},
               {**model, "lm_head.weight": embedding}, "retile", world=4)
    # Rows that were never saved count as lost, though zeros are what they were.
    yield Case("N7 padded less", "vocabulary-padding", {**model, "lm_head.weight": embedding},
               {**model, "lm_head.weight": padded}, "fill", world=4, lossless=False)
    eight = noise(8, 5, seed=33)  # 3 + 3 + 2 rows; each rank takes the others for as long as itself
    yield Case("N12 uneven", "uneven-shards", {"w": Unsaid(eight), **model}, {"w": eight, **model},
               "relabel")


def must_name(case, answer):
    named = [finding for finding in answer.json["findings"] if finding["rule"] == case.rule]
    expect(named, f"{case.rule} is not among {[f['rule'] for f in answer.json['findings']]}")
    finding = named[0]
    expect_equal(finding["severity"], case.severity, "severity")
    expect(finding["cause"].strip() and finding["subjects"], f"bare finding {finding}")
    if case.kind is None:
        expect(finding["remedy"] is None or not finding["remedy"]["lossless"] or
               case.severity == "info", f"a remedy for what cannot be known: {finding}")
    else:
        expect_equal(finding["remedy"]["kind"], case.kind, "kind of remedy")


def must_hold(checkpoint, tensors, spec, truth, other):
    spec.write_text(json.dumps({fqn: {"shape": list(tensor.shape), "dtype": str(tensor.dtype)}
                                for fqn, tensor in tensors.items()}))
    save_file({fqn: tensor.contiguous().clone() for fqn, tensor in tensors.items()}, truth)
    arguments = dict(checkpoint=str(checkpoint), spec=str(spec), truth=str(truth))
    expect_equal(judge.load_and_compare(**arguments), [], f"torch {judge.version()}")
    expect_equal(other.ask("load_and_compare", **arguments), [], f"torch {other.version}")


def run_case(checks, case, scratch, other):
    folder = scratch / case.name.replace(" ", "_").replace(",", "")
    folder.mkdir()
    bad, good, out = folder / "bad", folder / "good", folder / "out"
    with no_validation():
        write_checkpoint(bad, case.world, sharded(case.saved, case.objects, case.views))
    write_checkpoint(good, 2, sharded(case.reference or case.truth))
    spec = folder / "spec.json"
    spec.write_text(json.dumps({fqn: {"shape": list(tensor.shape), "dtype": str(tensor.dtype)}
                                for fqn, tensor in case.truth.items()}))
    how = ("--spec", spec) if case.by_spec else ("--against", good)
    before = judge.tree_hash(bad)
    with checks.that(f"{case.name}: {case.rule} is named, with and without --data"):
        for depth in ((), ("--data",)):
            answer = program.check(bad, *how, *depth)
            answer.must_exit(1 if answer.above_info() else 0)
            must_name(case, answer)
    if case.kind is None:
        with checks.that(f"{case.name}: nothing is planned for it"):
            rules = [one["rule"] for one in program.plan_operations(bad, *how)]
            expect(case.rule not in rules, f"operations of {rules}")
        return
    with checks.that(f"{case.name}: repaired, and every torch loads the truth"):
        # Of a stage alone the other stages stay missing.
        codes = (0, 1) if "alone" in case.name else (0,)
        answer = program.repair(bad, *how, "--out", out, codes=codes)
        certificate = json.loads((out / "certificate.json").read_text())
        expect_equal(certificate["lossless"], case.lossless, "lossless")
        truth = case.repaired or case.truth
        must_hold(out, truth, folder / "loaded.json", folder / "truth.safetensors", other)
        expect(answer["output"], "no output named")
    with checks.that(f"{case.name}: verify proves it, a second repair plans nothing"):
        program.must_be_proved(out, "--against", bad)
        expect_equal(program.plan_operations(out, *how), [], "operations")
        if case.repaired is None:
            program.must_be_mended(out, *how)
    with checks.that(f"{case.name}: the source is untouched"):
        expect_equal(judge.tree_hash(bad), before, "hashes")
    if case.true_objects:
        with checks.that(f"{case.name}: entries that are not tensors have their names too"):
            state = {name: None for name in case.true_objects}
            state.update({name: -1.0 for name in case.true_objects})
            dcp.load(state, checkpoint_id=str(out))
            expect_equal(state, case.true_objects, "settings")


def in_place(checks, scratch):
    """A rename changes metadata alone and can be taken back; a transpose moves bytes."""
    case = next(iter(renumbered()))
    bad, good = scratch / "in_place", scratch / "in_place_reference"
    write_checkpoint(bad, 3, sharded(case.saved, case.objects))
    write_checkpoint(good, 2, sharded(case.truth))
    before = judge.tree_hash(bad)
    with checks.that("N10 on one page: what a repair does is a rename, old name and new"):
        page = program.shardwright("report", bad, "--against", good).must_exit(1).stdout
        line = next(line for line in page.splitlines() if line.startswith("| `rename`"))
        expect("model.layers.1.attn" in line and "model.layers.2.attn" in line, line)
    with checks.that("N10 in place: renamed, proved, and taken back byte for byte"):
        program.repair(bad, "--against", good, "--in-place")
        program.must_be_proved(bad)
        program.must_be_clean(bad, "--against", good)
        program.shardwright("undo", bad).must_exit(0)
        expect_equal(judge.tree_hash(bad), before, "hashes")
    case = next(iter(transposed()))
    bad, good = scratch / "in_place_n8", scratch / "in_place_n8_reference"
    write_checkpoint(bad, 3, sharded(case.saved))
    write_checkpoint(good, 2, sharded(case.truth))
    before = judge.tree_hash(bad)
    with checks.that("N8 in place: refused with a reason, nothing is written"):
        answer = program.shardwright("repair", bad, "--against", good, "--in-place", "--yes",
                                     "--json")
        expect(answer.code != 0 and "new directory" in answer.stdout + answer.stderr, str(answer))
        expect_equal(judge.tree_hash(bad), before, "hashes")


def healthy(checks, scratch):
    """Symmetric, tied and equal things against themselves, another cut and another step."""
    square = noise(40, 40, seed=40)
    tensors = {"identity": torch.eye(40), "symmetric": square + square.T, "ones": torch.ones(9, 9),
               "model.embed_tokens.weight": square, "lm_head.weight": square,
               "model.norm.weight": torch.ones(40), **stack(range(3))}
    later = {fqn: (tensor.float() + LATER * noise(*tensor.shape, seed=41)).to(tensor.dtype)
             for fqn, tensor in tensors.items()}
    write_checkpoint(scratch / "healthy", 4, sharded(tensors))
    write_checkpoint(scratch / "recut", 3, sharded(tensors))
    write_checkpoint(scratch / "later", 4, sharded(later))
    for other in ("healthy", "recut", "later"):
        for depth in ((), ("--data",)):
            with checks.that(f"healthy against {other} {' '.join(depth)}: nothing above info"):
                program.must_be_clean(scratch / "healthy", "--against", scratch / other, *depth)


def run(checks, other, scratch):
    for cases in (transposed, renumbered, reordered, others):
        for case in cases():
            with checks.that(f"{case.name} can be written and checked"):
                run_case(checks, case, scratch, other)
    in_place(checks, scratch)
    healthy(checks, scratch)
