// Of the rules that compare with another checkpoint.
#include <array>

#include "core/explain/lessons.h"

namespace shw {
namespace {

constexpr std::array<Lesson, 10> kReferenceLessons = {{
    {"blocks-permuted", R"(
  query, key, value of 2 groups in one weight

  reference    │ q0 │ q1 │ q2 │ q3 │ k0 │ k1 │ v0 │ v1 │
  saved        │ q0 │ q1 │ k0 │ v0 │ q2 │ q3 │ k1 │ v1 │
  the same eight blocks, in the order of the trainer
)",
     "`shardwright repair --against REFERENCE` moves the blocks into the reference's order: "
     "lossless. Where two blocks are equal the order stays undecided.",
     "https://github.com/NVIDIA/Megatron-LM/issues/2769"},
    {"tiles-exchanged", R"(
  a matrix in 2 x 2 tiles

  reference               saved
  ┌────────┬────────┐     ┌────────┬────────┐
  │   A    │   B    │     │   A    │   C    │
  ├────────┼────────┤     ├────────┼────────┤
  │   C    │   D    │     │   B    │   D    │
  └────────┴────────┘     └────────┴────────┘
  every tile is there, two of them under each other's box
)",
     "`shardwright repair --against REFERENCE` gives each tile the box where the reference has its "
     "bytes: lossless, no byte moves. Where a tile is found nowhere, only an earlier step helps.",
     ""},
    {"transposed", R"(
  reference [3, 3]      saved [3, 3]
  ┌─────────────┐       ┌─────────────┐
  │  0   1   2  │       │  0   3   6  │
  │  3   4   5  │       │  1   4   7  │
  │  6   7   8  │       │  2   5   8  │
  └─────────────┘       └─────────────┘
  equal shapes: no loader can tell
)",
     "`shardwright repair --against REFERENCE` transposes every tile: lossless. Mend the converter "
     "that wrote it too.",
     "https://github.com/huggingface/transformers/issues/47031"},
    {"differs-from-reference", R"(
  reference, step 8000     │ 0.125 │ -0.500 │ 0.250 │
  saved,     step 9000     │ 0.127 │ -0.498 │ 0.246 │   trained on
)",
     "Nothing has to be done. To find reordered blocks, compare with a reference that has the "
     "same numbers: an export, a conversion, the same step.",
     ""},
    {"vocabulary-padding", R"(
  tokens                  ├─ 0 ... 50256 ─┤
  padded to 128 x 1       ├─ 0 ... 50256 ─┼─ 47 rows ──┤   [50304, ...]
  padded to 128 x 8       ├─ 0 ... 50256 ─┼─ 943 rows ───────┤   [51200, ...]
                                           no token uses these
)",
     "Load with the padding that saved, or compare with --against. Only rows whose bytes show that "
     "they are padding may be dropped.",
     "https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5353"},
    {"tied-weights", R"(
  reference                saved
  embed_tokens.weight      embed_tokens.weight
  lm_head.weight           -                     the same matrix, or another?
)",
     "Where the bytes are equal nothing is lost: the loader ties them. Where they are not, take "
     "the missing one from another step.",
     "https://github.com/NVIDIA-NeMo/Automodel/pull/2511"},
    {"layers-renumbered", R"(
  pipeline of 2 stages, 2 layers each

  layer           stage 0: 0  1        stage 1: 2  3
  saved as        layers.0  layers.1   layers.0  layers.1
  on disk         one layers.0 and one layers.1, of whichever stage was kept
)",
     "`shardwright repair --against REFERENCE` gives every layer the name that its bytes prove, "
     "states along with it; no byte moves. Layers that were dropped have to come from another "
     "step.",
     "https://github.com/NVIDIA/Megatron-LM/issues/7452"},
    {"uneven-shards", R"(
  7 rows over 3 ranks, cut into 3, 3, 1

  row              0   1   2   3   4   5   6
  held           │ rank 0    │ rank 1    │ 2 │
  recorded at    │ 0         │ 3         │       ranks 0 and 1
                         │ 2 │                   rank 2: 2 x its own one row
)",
     "`shardwright repair` puts each shard where torch.chunk puts it. Shards that landed on the "
     "very offset of another one were dropped at save and are lost.",
     "https://github.com/pytorch/pytorch/issues/110762"},
    {"other-model", R"(
  expected                        saved
  model.layers.0.mlp.up.weight    transformer.h.0.mlp.c_fc.weight
  model.layers.0.mlp.down.weight  transformer.h.0.mlp.c_proj.weight
  ...                             ...
  3 of 1,142 names agree
)",
     "Nothing has to be done to the checkpoint. Name the spec or the checkpoint of the same model, "
     "or check without one.",
     ""},
    {"mesh-contradicted", R"(
  --mesh dp=4              │ 0 │ 1 │ 2 │ 3 │
  files                    │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ ... │ 63 │
)",
     "Nothing has to be done to the checkpoint. Name the mesh of the run that saved it, or leave "
     "--mesh out.",
     ""},
}};

}  // namespace

std::span<const Lesson> reference_lessons() {
  return kReferenceLessons;
}

}  // namespace shw
