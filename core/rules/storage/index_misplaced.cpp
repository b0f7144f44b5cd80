#include "core/rules/claims.h"

namespace shw {

const Rule kIndexMisplaced = {
    "index-misplaced", Depth::kMetadata, "The index names another file than the one that holds it",
    "Beside the files of a Hugging Face checkpoint an index says which file holds which tensor. "
    "Loaders open the file that the index names and ask it for the tensor, so a wrong entry stops "
    "them, or leaves the tensor at its initial values, although all its bytes are there. Files "
    "that were renamed, merged or split without the index are the usual reason. Each file lists "
    "its own tensors, so the index can be written anew from them; no tensor byte moves.",
    nullptr};

}  // namespace shw
