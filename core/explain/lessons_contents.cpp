#include <array>

#include "core/explain/lessons.h"

namespace shw {
namespace {

constexpr std::array<Lesson, 19> kContentsLessons = {{
    {"filled-elements", R"(
  optimizer.state.w.exp_avg [16, 4]
  rows of rank 0     never saved: zeros now
  rows of rank 1     saved, kept
)",
     "Mask or reset exactly those elements: lost.json lists every box. Or take them from another "
     "save of the run: repair the damaged checkpoint again, with --fill from:CHECKPOINT.",
     ""},
    {"leftover-metadata", R"(
  __0_0.distcp    10:02
  .metadata       10:03     complete
  .metadata.tmp   11:40     a second save, which did not get to its rename
)",
     "Check with --data. Where all is in order, delete the file; else fetch the folder again.", ""},
    {"leftover-data", R"(
  .metadata says            on disk
  12 tiles in __0_0.distcp  __0_0.distcp
  12 tiles in __1_0.distcp  __1_0.distcp
  -                         __2_0.distcp   of a save that had more ranks
)",
     "It is never read. Delete the files once the checkpoint is known to be whole.", ""},
    {"rank-hole", R"(
  rank        0   1   2   3   4   5
  data file   x   x   -   x   x   x       of rank 2 there is none
)",
     "Nothing points to the missing file. Look for it on the node of that rank if rows are "
     "missing.",
     ""},
    {"data-newer", R"(
  __0_0.distcp    11:40     written anew by a later save
  __1_0.distcp    10:02
  .metadata       10:03     describes the files of 10:02
)",
     "Check with --data: where checksums and ranges fit, only the times were set anew by a copy.",
     ""},
    {"planner-keys", R"(
  name                     path in planner_data
  layers.0.weight          layers / 0 / weight            the same
  layers.1.weight          module / layers / 1 / weight   another place
)",
     "Loading into a model is not touched; a tool that rebuilds the nested dict sees the path.",
     ""},
    {"half-pair", R"(
                     exp_avg   exp_avg_sq
  layers.0.weight      x           x
  layers.1.weight      x           -       lost
  layers.2.weight      x           x
)",
     "Start both moments of that parameter at zero, or take them from the step before.",
     "https://github.com/pytorch/pytorch/issues/143828"},
    {"many-chunks", R"(
  chunks of a tensor     torch 2.9       later
              1,024        0.1 s        at once
             16,384         33 s        at once
            163,840       55 min        at once
)",
     "Load it with a newer torch, or save it with fewer, larger chunks.",
     "https://github.com/pytorch/pytorch/pull/166820"},
    {"axis-grown", R"(
  expected    saved by two ranks that each held all of it
  ┌───────┐   ┌───────┐
  │ rows  │   │ rows  │ rank 0, offset 0
  └───────┘   ├───────┤
              │ rows  │ rank 1, offset 4: the same once more
              └───────┘
)",
     "Compare with --against: where the parts are equal, each one is the tensor. Nothing is cut "
     "without that.",
     "https://github.com/pytorch/pytorch/issues/144109"},
    {"pair-asymmetry", R"(
  gate_proj.weight   [64, 16]
  up_proj.weight     [32, 16]     half of it?
)",
     "A spec or another checkpoint (--against) says which of the two is right.", ""},
    {"extra-state", R"(
  layers.0.fc1._extra_state     tensor of 1,024 bytes
  layers.1.fc1._extra_state     tensor of 0 bytes        another precision?
)",
     "Nothing to do unless a load stops at it; then save again with one version and precision.",
     ""},
    {"keyset-hole", R"(
  layers.0   layers.1   layers.2      -       layers.4
     x          x          x       missing       x
)",
     "Look for its tensors under another name or in the files of the rank that held them.", ""},
    {"moment-bound", R"(
  row    exp_avg   squared   exp_avg_sq   ratio, at most 52.9
   0        0.02    0.0004       0.0010     0.4
   1        0.90      0.81       0.0010     810       from another row
)",
     "Take the optimizer from an earlier step, or start both moments at zero.", ""},
    {"value-statistics", R"(
  layers.0.weight    0.013  -0.207   0.090   0.411
  layers.1.weight      NaN     NaN     NaN     NaN     broken before the save
)",
     "Take the tensor from an earlier checkpoint: the bytes are what was saved.", ""},
    {"master-cast", R"(
  master, float32   rounded to bfloat16   weight
      0.12345          0.1235              0.1235     fits
      0.98765          0.9883             -0.4219     from another row
)",
     "Fill the masters from the weights: the first step would write them over the weights.", ""},
    {"duplicate-content", R"(
  expert       0      1      2      3
  checksum   a31f   77c0   a31f   09be      2 is a copy of 0
)",
     "Take the expert from an earlier checkpoint; what it held is not in this one.", ""},
    {"optimizer-groups", R"(
  group   weight_decay   step   moments of its parameters
    0         0.1         100   those of many steps
    1         0.0           1   those of many steps, too: step 1 cannot be
)",
     "Where all other steps agree, the one that cannot be becomes theirs. Groups that a reference "
     "has in another order are put into its order, by the names of their parameters.",
     "https://github.com/NVIDIA/TransformerEngine/issues/1986"},
    {"moment-correlation", R"(
  row    log |exp_avg|   half log exp_avg_sq
   0          -9.2             -8.1
   1          -4.1             -8.7       large beside small:
   2          -8.8             -3.2       one of them from another row?
)",
     "Only a hint: see whether moment-bound finds the pair too, or compare with --against.", ""},
    {"replica-diverge", R"(
  rank          0        1        2        3       placements say Replicate
  exp_avg    0.0131   0.0131   0.0131   0.0208     rank 3 went its own way
)",
     "Nothing is right by itself: choose one rank's copy, or average them, and say so.",
     "https://github.com/pytorch/torchtitan/issues/2387"},
}};

}  // namespace

std::span<const Lesson> contents_lessons() {
  return kContentsLessons;
}

}  // namespace shw
