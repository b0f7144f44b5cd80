#include "core/rules/rules.h"

namespace shw {

const Rule kIndexMisplaced = {
    .id = "index-misplaced",
    .depth = Depth::kMetadata,
    .title = "The index names another file than the one that holds it",
    .teaches =
        "Next to the files of a Hugging Face checkpoint an index says which file holds which "
        "tensor. Loaders open the file that the index names and ask it for the tensor, so a wrong "
        "entry stops them, or leaves the tensor at its initial values, although all its bytes are "
        "there. Files that were renamed, merged or split without the index are the usual reason. "
        "Each file lists its own tensors, so the index can be rewritten from them; no tensor byte "
        "moves.",
    .lesson = {.drawing = R"(
  model.safetensors.index.json     the file's own header
  "fc.weight": model-00001   ─?    model-00001: fc.bias
                                   model-00002: fc.weight
)",
               .remedy = "Rewrite the index from what each file holds: repair does it, and no "
                         "tensor byte moves.",
               .link = "https://huggingface.co/docs/safetensors"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kStops,
    .repaired_by = RepairedBy::kNewIndex,
};

}  // namespace shw
