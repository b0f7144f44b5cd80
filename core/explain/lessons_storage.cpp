#include <array>

#include "core/explain/lessons.h"

namespace shw {
namespace {

constexpr std::array<Lesson, 16> kStorageLessons = {{
    {"unsafe-pickle", R"(
  .metadata, as pickle reads it            what Python would do
  GLOBAL  torch Size                       make a size: needed
  GLOBAL  posix system                     run a command: never needed
  REDUCE  'curl ... | sh'                  ... and which
)",
     "Ask who made the file. Do not open it with torch before that; Shardwright runs nothing.",
     "https://docs.python.org/3/library/pickle.html"},
    {"path-escape", R"(
  checkpoint/            recorded path of an item
  ├── .metadata
  ├── __0_0.distcp       __0_0.distcp              inside
  └── __1_0.distcp       ../../home/me/.ssh/id     outside: never opened
)",
     "Fetch the checkpoint again from where it was written.", ""},
    {"missing-file", R"(
  .metadata says           on disk
  tile 0 in __0_0.distcp   __0_0.distcp
  tile 1 in __1_0.distcp   -              gone with all tiles in it
  tile 2 in __2_0.distcp   __2_0.distcp
)",
     "Copy the file beside the others; nothing else has to change. Without it its tiles are lost "
     "and no load of the whole succeeds.",
     ""},
    {"short-file", R"(
  recorded   ├─ item 0 ─┼─ item 1 ─┼─ item 2 ─┤   4096 bytes
  on disk    ├─ item 0 ─┼─ item 1 ─┼─ i           2900 bytes
              whole      whole      cut off
)",
     "Compare the size with where it was written and copy it again. Whole items stay readable.",
     "https://github.com/pytorch/pytorch/pull/170244"},
    {"storage-dangling", R"(
  tiles of the tensor          where their bytes are
  fc.weight at (0, 0)  ──────  fc.weight at (0, 0): __0_0.distcp, byte 0
  fc.weight at (4, 0)  ──?     -
  -                    ?─────  fc.weight at (0, 4): __1_0.distcp, byte 0
)",
     "No safe repair: which bytes belong to the tile is not written. Look for the .metadata that "
     "was left out of the merge.",
     ""},
    {"shared-storage", R"(
  recorded                                 in the files
  fc.weight at (0, 0)  ─┐
  fc.weight at (4, 0)  ─┴─ __0_0.distcp    │ rows 0 to 3 │
  -                        __1_0.distcp    │ rows 4 to 7 │  no record
)",
     "Point the record at the bytes that nothing claims, where an item of the right shape and "
     "dtype lies there: repair does it. Otherwise look for the .metadata of before.",
     ""},
    {"index-misplaced", R"(
  model.safetensors.index.json     the file's own header
  "fc.weight": model-00001   ─?    model-00001: fc.bias
                                   model-00002: fc.weight
)",
     "Write the index anew from what each file holds: repair does it, and no tensor byte moves.",
     "https://huggingface.co/docs/safetensors"},
    {"bad-record", R"(
  item of a tile    ┌────────┬──────────────┬────────┬───────────┐
                    │ header │ elements     │ CRC-32 │ directory │
                    └────────┴──────────────┴────────┴───────────┘
  recorded CRC 0x1c291ca3     computed 0x8d3f0b52: the elements changed
)",
     "Fetch the file again. A tile that is damaged everywhere is lost; its neighbours are not.",
     "https://github.com/pytorch/pytorch/pull/170244"},
    {"payload-shape", R"(
  recorded   offsets [2]  sizes [2]      │ 2 │ 3 │
  the item                shape [4]      │ 0 │ 1 │ 2 │ 3 │
  torch takes the first two: rows 0 and 1 where 2 and 3 belong
)",
     "Where the items' shapes are those of uneven strided shards, that finding repairs them. "
     "Otherwise ask which of the two belongs to this save.",
     "https://github.com/pytorch/pytorch/issues/168134"},
    {"payload-dtype", R"(
  recorded   float32    4 bytes an element   │ a   │ b   │
  the item   bfloat16   2 bytes an element   │a │b │
  torch converts on load; a tool that trusts the record reads noise
)",
     "Load with torch, which converts, and save again.", ""},
    {"missing-key", R"(
  the model asks for          the checkpoint has
  layers.0.weight    ──────   module.layers.0.weight   a wrapper's prefix
  layers.1.weight    ──────   module.layers.1.weight
  lm_head.weight     ──?      -                        not saved (tied?)
)",
     "Where one prefix explains all, strip or add it in the loader. A tensor that is not there "
     "under any name has to come from another step.",
     "https://github.com/pytorch/pytorch/issues/143972"},
    {"shape-mismatch", R"(
  saved      [50257, 768]     ┌───────────┐
  expected   [50304, 768]     │           │ 50257 rows of the vocabulary
                              ├ ─ ─ ─ ─ ─ ┤
                              └───────────┘ 47 rows of padding
)",
     "`shardwright explain` with the loader's message ranks what it can be. Where it is the "
     "configuration, change that and not the checkpoint.",
     "https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/5353"},
    {"dtype-mismatch", R"(
  master, float32      0.10009765625 + 0.00001
  saved,  bfloat16     0.10009765625             16 bits of it are gone
  loaded, float32      0.10009765625             looks precise, is not
)",
     "If it is not meant, save again from the run that has the wide values.", ""},
    {"unexpected-key", R"(
  the spec names              the checkpoint has
  layers.0.weight    ──────   layers.0.weight
  -                  ?─────   optim.state.layers.0.weight.exp_avg
)",
     "Nothing has to be done. Beside missing keys it often means that names changed.", ""},
    {"not-looked-at", R"(
  __0_0.distcp   looked at
  __1_0.distcp   permission denied    ──  verdict: undecided, not clean
)",
     "Make it readable and check again.", ""},
    {"portability", R"(
  .metadata of                 opens under
  Python 3.13, torch 2.14      Python 3.13 and later only
  any Python, torch 2.15       torch 2.15 and later only
  rewritten by a repair        all of them
)",
     "`shardwright repair` writes .metadata anew without those traces; the data files stay.",
     "https://docs.python.org/3/whatsnew/3.13.html"},
}};

}  // namespace

std::span<const Lesson> storage_lessons() {
  return kStorageLessons;
}

const Lesson* find_lesson(std::string_view rule) {
  for (std::span<const Lesson> part :
       {layout_lessons(), reference_lessons(), storage_lessons(), contents_lessons()}) {
    for (const Lesson& lesson : part) {
      if (lesson.rule == rule) return &lesson;
    }
  }
  return nullptr;
}

}  // namespace shw
