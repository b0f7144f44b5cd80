#include <array>

#include "core/explain/lessons.h"

namespace shw {
namespace {

constexpr std::array<Lesson, 13> kLayoutLessons = {{
    {"placement-axis-moved", R"(
  saved as [6, 2]          expected [3, 4]
  ┌────────┐               ┌────────┬────────┐
  │  0   3 │               │  0   3 │  6   9 │
  │  1   4 │ rank 0        │  1   4 │  7  10 │
  │  2   5 │               │  2   5 │  8  11 │
  ├────────┤               └────────┴────────┘
  │  6   9 │                 rank 0   rank 1
  │  7  10 │ rank 1
  │  8  11 │               the same two tiles; only their offsets change
  └────────┘
)",
     "`shardwright repair` relabels the tiles, losing nothing. Where the checkpoint is right and "
     "the loader wrong, update the loader.",
     "https://github.com/NVIDIA-NeMo/Automodel/pull/1691"},
    {"glu-split-local", R"(
  the weight, 8 rows   │ W0 │ W1 │ W2 │ W3 │ V0 │ V1 │ V2 │ V3 │
  owned by             └───── rank 0 ──────┴───── rank 1 ──────┘

  expected   _w        │ W0 │ W1 │ W2 │ W3 │
             _v                            │ V0 │ V1 │ V2 │ V3 │

  saved      _w        │ W0 │ W1 │            cut at half of rank 0's rows
             _v                  │ W2 │ W3 │  rows of W; V is nowhere
)",
     "`shardwright repair` puts the surviving rows back into W and masks the rest: the plan says "
     "how many elements are lost. Only another checkpoint has them.",
     "https://github.com/NVIDIA/Megatron-LM/pull/4423"},
    {"local-saved-as-global", R"(
  parameter [8]           │ 0 1 │ 2 3 │ 4 5 │ 6 7 │
  held by rank               0     1     2     3

  any state, expected     │ 0 1 │ 2 3 │ 4 5 │ 6 7 │   [8]
  exp_avg, saved                │ 2 3 │               [2] of rank 1
  exp_avg_sq, saved                   │ 4 5 │         [2] of rank 2
  master_param, saved                       │ 6 7 │   [2] of rank 3
)",
     "`shardwright repair` puts each survivor where its writer's rows lie, keeps moments only "
     "where both are known, and refills masters from the model. The rest is masked.",
     "https://github.com/NVIDIA/TransformerEngine/pull/2795"},
    {"axis-dropped", R"(
  two experts of 2 rows, one on each of 2 expert-parallel ranks

  expected [4]     │ A0 │ A1 │ B0 │ B1 │
  rank                ep 0   │   ep 1

  saved    [2]     │ A0 │ A1 │            both ranks wrote offset 0;
                   │ B0 │ B1 │  dropped   one box of two is kept
)",
     "`shardwright repair`, with --spec or --mesh, puts the survivors in place and masks the rest. "
     "With optimizer_rank_R.pt beside the checkpoint everything comes back.",
     "https://github.com/ISEEKYAN/Megatron-LM/pull/61"},
    {"writer-mosaic", R"(
  rows held by tp 0     │ 0 1 │ 2 3 │
  rows held by tp 1     │ 4 5 │ 6 7 │

  saved                 │ 4 5 │ 2 3 │   a tensor that no rank ever had
  written by              tp 1  tp 0
)",
     "Read the finding beside it (axis-dropped): its repair takes the mixture apart, each tile to "
     "the place of its writer. Where there is none, `shardwright check --mesh dp=..,tp=..` "
     "decides.",
     "https://github.com/NVIDIA/TransformerEngine/pull/2713"},
    {"uneven-strided", R"(
  10 rows over tp 2, then dp 2

  row             0   1   2   3   4   5   6   7   8   9
  held          │dp0 tp0    │dp1 tp0│dp0 tp1    │dp1 tp1│
  recorded      │           │           │
                                │       │
                                        │       │
  rows 4 and 5 are claimed twice, rows 8 and 9 by nobody
)",
     "`shardwright repair` gives the tiles the offsets and sizes that their bytes have, and masks "
     "rows whose offset another rank took. Where it "
     "only warns, nothing is wrong yet: save with a torch that has pytorch #150490.",
     "https://github.com/pytorch/pytorch/pull/150490"},
    {"strided-recorded-plain", R"(
  8 rows over tp 2, then dp 4

  row                0     1     2     3     4     5     6     7
  held by dp,tp     0,0   1,0   2,0   3,0   0,1   1,1   2,1   3,1
  recorded at row    0     2     4     6     1     3     5     7

  expected        │  0  │  1  │  2  │  3  │  4  │  5  │  6  │  7  │
  as it loads     │  0  │  4  │  1  │  5  │  2  │  6  │  3  │  7  │
)",
     "`shardwright repair --spec ... --mesh ...` relabels the tiles; no byte moves, nothing is "
     "lost.",
     "https://github.com/NVIDIA/TransformerEngine/pull/2713"},
    {"topology-locked", R"(
  experts A and B (expert parallel 2), each cut in two by FSDP

  expected by the spec    │ A0 │ A1 │ B0 │ B1 │   expert first
  saved                   │ A0 │ B0 │ A1 │ B1 │   FSDP first

  the same shape: another topology loads B0 as the second half of A
)",
     "Load with the topology that saved, or let `shardwright repair --spec ...` permute the blocks "
     "into the order of the spec: lossless. Saved on another mesh than the spec's, add --mesh with "
     "the one that saved.",
     "https://github.com/ISEEKYAN/Megatron-LM/pull/61"},
    {"fused-per-rank", R"(
  gate and up of 2 rows each, over tp 2

  expected     │ gate 0 │ gate 1 │ up 0   │ up 1   │
  saved        │ gate 0 │ up 0   │ gate 1 │ up 1   │
  written by         tp 0        │       tp 1
)",
     "`shardwright repair --spec ...` puts all gate rows before all up rows: lossless. Loading "
     "with the tensor-parallel size that saved is right as it is.",
     "https://github.com/NVIDIA/TransformerEngine/pull/2713"},
    {"chunk-rank", R"(
  tensor    shape   [2, 4, 3]      three numbers
  tile      offsets [0, 0]         two: of which dimensions?
            sizes   [4, 3]
)",
     "No safe repair: which dimension is missing is not written anywhere. Save again, with code "
     "that puts the new axis into offsets and shape alike.",
     "https://github.com/NVIDIA/Megatron-LM/pull/7162"},
    {"chunk-out-of-bounds", R"(
  tensor [6]   ├───────────────────────┤
  tiles        │ 0   1   2 │ 3   4   5 │ 6   7   8 │
                                       └── outside ┘
)",
     "Give the model's spec (--spec): it says whether the tile or the global size is wrong. Uneven "
     "strided shards are repaired (uneven-strided); otherwise save again.",
     "https://github.com/pytorch/pytorch/issues/150393"},
    {"chunk-overlap", R"(
  tensor [8]   │ 0   1   2   3   4   5   6   7 │
  rank 0       │ 0   1   2   3   4 │
  rank 1                   │ 3   4   5   6   7 │
                           └── 2 ──┘ rows twice: who is read last stays
)",
     "Look at the mesh that the ranks believed in (--mesh). Overlaps of uneven strided shards can "
     "be repaired (uneven-strided); others need a new save.",
     "https://github.com/pytorch/pytorch/issues/161368"},
    {"coverage-gap", R"(
  tensor [8]   │ 0   1   2   3   4   5   6   7 │
  saved        │ 0   1   2 │░░░░░░░│ 5   6   7 │
                           └ hole: keeps what the model had before
)",
     "Look for the file of the rank that should have written the hole, and for an earlier step. Do "
     "not train on it: the hole holds whatever the model had before the load.",
     "https://github.com/pytorch/pytorch/issues/168134"},
}};

}  // namespace

std::span<const Lesson> layout_lessons() {
  return kLayoutLessons;
}

}  // namespace shw
