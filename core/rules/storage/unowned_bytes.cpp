#include "core/rules/rules.h"

namespace shw {

const Rule kUnownedBytes = {
    .id = "unowned-bytes",
    .depth = Depth::kMetadata,
    .title = "A safetensors file holds bytes that belong to no tensor",
    .teaches =
        "The header of a safetensors file says where each tensor is, and the tensors fill the file "
        "exactly: safetensors refuses a file with bytes between them or after the last one "
        "(\"MetadataIncompleteBuffer\"). Usual causes: a padded upload, two downloads into one "
        "file, or a program that overwrote a longer file. Every tensor that the header names is "
        "complete, so the file can be rewritten without the extra bytes.",
    .lesson =
        {.drawing = R"(
  8 bytes   header            tensors                 4,096 bytes more
  length    {"a": [0, 64)}    a: bytes 0 to 63        of no tensor: dropped
)",
         .remedy =
             "`shardwright repair` writes the file without those bytes. Tensors do not change.",
         .link = "https://github.com/Comfy-Org/ComfyUI/issues/15602"},
    .words = {.text = "will not load"},
    .outcome = RunOutcome::kLoadFails,
    .repaired_by = RepairedBy::kNewFile,
};

}  // namespace shw
