#include "core/rules/rules.h"

namespace shw {

const Rule kIndexMisplaced = {
    .id = "index-misplaced",
    .depth = Depth::kMetadata,
    .title = "The index names the wrong file for a tensor",
    .teaches =
        "In a sharded Hugging Face checkpoint an index says which file holds which tensor. Loaders "
        "look for the tensor in the file that the index names, so a wrong entry stops the load or "
        "leaves the tensor at its initial values, although its bytes are there. Usual cause: files "
        "were renamed, merged or split without updating the index. Each file lists its own "
        "tensors, so the index can be rewritten from them; no tensor byte moves.",
    .lesson = {.drawing = R"(
  model.safetensors.index.json     the file's own header
  "fc.weight": model-00001   ─?    model-00001: fc.bias
                                   model-00002: fc.weight
)",
               .remedy = "`shardwright repair` rewrites the index from what each file holds; no "
                         "tensor byte moves.",
               .link = "https://huggingface.co/docs/safetensors"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kLoadFails,
    .repaired_by = RepairedBy::kNewIndex,
};

}  // namespace shw
