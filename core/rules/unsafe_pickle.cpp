#include "core/rules/rules.h"

namespace shw {

// Reported while opening: only the pickle reader sees what was asked for.
const Rule kUnsafePickle = {
    "unsafe-pickle", Depth::kMetadata, "The pickle asks for code that no checkpoint needs",
    "A .metadata file is a Python pickle, and a pickle can name any function to be called while it "
    "is read. A checkpoint needs a short list of classes: sizes, dtypes, storage records. This one "
    "names something else. Shardwright never calls anything, so looking is safe; torch.load and "
    "torch.distributed.checkpoint would run it. It may be a harmless class of a library, or an "
    "attack: ask who made the file before any Python program opens it.",
    nullptr};

}  // namespace shw
