// Tensors that a converter between two programs wrote wrongly. The comparison needs a map
// (core/maps), which rules cannot access: core/verbs/mapped_reference.h reports it.
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {

const Rule kConvertedWrongly = {
    .id = "converted-wrongly",
    .depth = Depth::kHeaders,
    .title = "Converted wrongly",
    .teaches =
        "Hugging Face, Megatron-core and torchtitan keep the same weights under other names and "
        "in other orders of rows: queries, keys and values by groups, gate above up, experts "
        "stacked, rotary halves apart or in turns. A converter that misses one of these leaves "
        "shapes that fit, so the model loads and answers nonsense. With --against the checkpoint "
        "that was converted, in the layout of the other program, every tensor is carried over by "
        "a map and compared to the bit. Where one differs, known mistakes are tried on its bytes.",
    .lesson = {.drawing = R"(
  expected   linear_qkv   q0 q1 k0 v0 | q2 q3 k1 v1     by groups
  saved      linear_qkv   q0 q1 q2 q3 | k0 k1 v0 v1     one after the other
)",
               .remedy = "Where every element is at hand in another place, `shardwright repair "
                         "CHECKPOINT --against SOURCE` puts them right. Else convert again: "
                         "`shardwright convert SOURCE --to hf`, or --to torch_dist."},
    .words = {.text = "converted wrongly"},
    .survives_rewriting = true,
};

}  // namespace shw
