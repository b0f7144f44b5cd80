// Reported on opening (core/formats/gguf/gguf_keys.h).
#include "core/rules/reference/content_rules.h"

namespace shw {

const Rule kGgufKeys = {
    .id = "gguf-keys",
    .depth = Depth::kMetadata,
    .title = "The keys of a GGUF file and its tensors contradict each other",
    .teaches =
        "llama.cpp builds a model by the keys in the header of a GGUF file: how many blocks "
        "(block_count), how wide (embedding_length), how many heads. Then it asks for each tensor "
        "by its name and its size, and stops at the first that is not there. A converter that "
        "counts the layers for multi-token prediction and leaves out their tensors writes such a "
        "file, and so does a merge that lost one.",
    .lesson = {.drawing = R"(
  llama.block_count = 62          blk.0 ... blk.60 are there
  missing tensor 'blk.61.attn_norm.weight'
)",
               .remedy =
                   "Convert the model again with a current converter. Where only the count is "
                   "wrong, gguf's `gguf-set-metadata` sets the key.",
               .link = "https://github.com/ggml-org/llama.cpp/issues/24737"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kStops,
    .survives_rewriting = true,
};

}  // namespace shw
