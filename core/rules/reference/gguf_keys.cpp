// Reported on opening (core/formats/gguf/gguf_keys.h).
#include "core/rules/reference/content_rules.h"

namespace shw {

const Rule kGgufKeys = {
    .id = "gguf-keys",
    .depth = Depth::kMetadata,
    .title = "The header keys of a GGUF file do not match its tensors",
    .teaches =
        "llama.cpp builds a model from the keys in the header of a GGUF file: how many blocks "
        "(block_count), how wide (embedding_length), how many heads. Then it looks for each tensor "
        "by name and size, and fails at the first that is missing. A converter that counts the "
        "layers for multi-token prediction and leaves out their tensors writes such a file, and so "
        "does a merge that lost one.",
    .lesson = {.drawing = R"(
  llama.block_count = 62          blk.0 ... blk.60 are there
  missing tensor 'blk.61.attn_norm.weight'
)",
               .remedy = "Convert the model again with a current converter. If only the count is "
                         "wrong, set the key with gguf's `gguf-set-metadata`.",
               .link = "https://github.com/ggml-org/llama.cpp/issues/24737"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kLoadFails,
    .survives_rewriting = true,
};

}  // namespace shw
