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
        "Hugging Face, Megatron-core and torchtitan store the same weights under different names "
        "and in different row orders: grouped queries, keys and values; gate before up; stacked "
        "experts; rotary halves split or interleaved. If a converter misses one of these, shapes "
        "still match, so the model loads but outputs garbage. With --against the source of the "
        "conversion, every tensor is mapped to this layout and compared bit by bit. If one "
        "differs, known mistakes are tried on its bytes.",
    .lesson = {.drawing = R"(
  expected   linear_qkv   q0 q1 k0 v0 | q2 q3 k1 v1     by groups
  saved      linear_qkv   q0 q1 q2 q3 | k0 k1 v0 v1     one after the other
)",
               .remedy = "If every element is still there, only misplaced, `shardwright repair "
                         "CHECKPOINT --against SOURCE` restores the order. Otherwise convert "
                         "again: `shardwright convert SOURCE --to hf`, or --to torch_dist."},
    .words = {.text = "converted wrongly"},
    .survives_rewriting = true,
};

}  // namespace shw
