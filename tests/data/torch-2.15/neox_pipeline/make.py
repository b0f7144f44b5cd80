"""A pipeline of GPT-NeoX with two tensor-parallel ranks, cut as its layers are (megatron/mpu/layers.py).

    python3 make.py FOLDER     writes FOLDER/ckpt and FOLDER/truth.safetensors; needs torch and safetensors
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file

RANKS, HIDDEN, VOCABULARY = 2, 4, 6
torch.manual_seed(1)


def cut(name, whole, rank):
    if name.endswith(("norm.weight", "norm.bias", "inv_freq")) or name.endswith(("attention.dense.bias", "4h_to_h.bias")):
        return whole
    if name.endswith(("attention.dense.weight", "4h_to_h.weight")):
        return whole.chunk(RANKS, 1)[rank]
    if name.startswith("gated.") and "h_to_4h" in name:  # each rank holds a part of both halves
        return torch.cat([half.chunk(RANKS, 0)[rank] for half in whole.chunk(2, 0)])
    return whole.chunk(RANKS, 0)[rank]


def block(width, gated):
    half = torch.float16
    return {
        "input_layernorm.weight": torch.randn(HIDDEN, dtype=half),
        "attention.query_key_value.weight": torch.randn(3 * HIDDEN, HIDDEN).to(half),
        "attention.query_key_value.bias": torch.randn(3 * HIDDEN).to(half),
        "attention.rotary_emb.inv_freq": torch.randn(2),
        "attention.dense.weight": torch.randn(HIDDEN, HIDDEN).to(half),
        "attention.dense.bias": torch.randn(HIDDEN).to(half),
        "mlp.dense_h_to_4h.weight": torch.randn(width * (2 if gated else 1), HIDDEN).to(half),
        "mlp.dense_4h_to_h.weight": torch.randn(HIDDEN, width).to(half),
        "mlp.dense_4h_to_h.bias": torch.randn(HIDDEN).to(half),
    }


layers = {
    "layer_00": {"word_embeddings.weight": torch.randn(VOCABULARY, HIDDEN).half()},
    "layer_02": block(16, False),
    "layer_03": block(8, True),
    "layer_05": {"norm.weight": torch.randn(HIDDEN).half()},
    "layer_06": {"final_linear.weight": torch.randn(VOCABULARY, HIDDEN).half()},
}
folder = pathlib.Path(sys.argv[1])
step = folder / "ckpt"
step.mkdir(parents=True, exist_ok=True)
for layer, tensors in layers.items():
    gated = "gated." if layer == "layer_03" else ""
    for rank in range(RANKS):
        torch.save({name: cut(gated + name, whole, rank).clone() for name, whole in tensors.items()},
                   step / f"{layer}-model_{rank:02}-model_states.pt")
for rank in range(RANKS):
    torch.save({"module": None, "global_steps": 20, "dp_world_size": 1, "mp_world_size": RANKS},
               step / f"mp_rank_{rank:02}_model_states.pt")
save_file({f"{layer}.{name}": whole for layer, tensors in layers.items() for name, whole in tensors.items()},
          folder / "truth.safetensors")
