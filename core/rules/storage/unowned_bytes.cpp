#include "core/rules/rules.h"

namespace shw {

const Rule kUnownedBytes = {
    .id = "unowned-bytes",
    .depth = Depth::kMetadata,
    .title = "A file holds bytes that belong to no tensor",
    .teaches =
        "The header of a safetensors file says where each tensor is, and the tensors fill the file "
        "exactly: safetensors refuses a file with bytes between them or after the last one "
        "(\"MetadataIncompleteBuffer\"). An upload that was padded, two downloads into one file, "
        "or a program that wrote over a longer file leaves such bytes. Every tensor that the "
        "header names is whole, so the file can be rewritten without them.",
    .lesson = {.drawing = R"(
  8 bytes   header            tensors                 4,096 bytes more
  length    {"a": [0, 64)}    a: bytes 0 to 63        of no tensor: dropped
)",
               .remedy = "`shardwright repair` writes the file without those bytes. Every tensor "
                         "keeps its own.",
               .link = "https://github.com/Comfy-Org/ComfyUI/issues/15602"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kStops,
    .repaired_by = RepairedBy::kNewFile,
};

}  // namespace shw
