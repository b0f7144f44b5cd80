// Messages that name no shapes: what each can mean, as data.
#include <array>

#include "core/base/words.h"
#include "core/explain/hypotheses.h"

namespace shw {
namespace {

struct Meaning {
  ErrorForm form;
  std::string_view rule;
  WrongSide wrong;
  double confidence;
  std::string_view title, text, decide, options;  // options of `check`
};

constexpr std::string_view kSpec = "--spec SPEC.json";
constexpr WrongSide kDisk = WrongSide::kCheckpoint, kLoader = WrongSide::kRequest,
                    kUnclear = WrongSide::kEither;

constexpr std::array<Meaning, 24> kMeanings = {{
    {ErrorForm::kMissingKey, "missing-key", kUnclear, 0.6,
     "the tensor has another name in the checkpoint",
     "torch loads by name. A wrapper (module., _orig_mod., model.) stands before the name on one "
     "side, or the state dict was saved one level deeper. Nothing is lost; the names have to be "
     "mapped.",
     "`shardwright ls CHECKPOINT` with the last part of the name: is there a tensor of the same "
     "shape that ends alike?",
     kSpec},
    {ErrorForm::kMissingKey, "missing-key", kDisk, 0.4, "the tensor was not saved",
     "The run that saved did not have it: another optimizer, a tied output layer that is left "
     "out, an expert or pipeline stage that did not write.",
     "The same name in an earlier step; and for a head, whether the configuration ties it to the "
     "embedding.",
     kSpec},
    {ErrorForm::kUnexpectedKey, "unexpected-key", kUnclear, 0.6,
     "the tensor has another name in the model",
     "A wrapper's prefix on one side, or a renamed module. As a rule there are missing keys "
     "beside the unexpected ones: the pairs are the renaming.",
     "Whether each unexpected key has a missing one that ends alike.", kSpec},
    {ErrorForm::kUnexpectedKey, "unexpected-key", kLoader, 0.4, "the model has fewer tensors",
     "The checkpoint has more than the model asks for: another configuration, or optimizer states "
     "in a model-only load. Nothing is wrong on disk.",
     "The configurations of both runs.", kSpec},
    {ErrorForm::kNoStorageRecord, "storage-dangling", kDisk, 0.9,
     "a tile has no record of where its bytes are",
     "DCP keeps the tiles of a tensor in one list and the place of their bytes in another; this "
     "tile is in the first only. A merge of several .metadata files, or a tool that moved tiles "
     "and changed one list, leaves this.",
     "Whether a record with other offsets for the same name is left over: then the tile was moved.",
     ""},
    {ErrorForm::kNoCentralDirectory, "short-file", kDisk, 0.75, "a data file was cut off",
     "Every item is a zip archive whose directory stands at its end. Where a file ends too early "
     "(full disk, killed job, copy that stopped) the end is not there.",
     "The size of the file named in the traceback against where it was written.", ""},
    {ErrorForm::kNoCentralDirectory, "bad-record", kDisk, 0.35,
     "the place of an item is not where an archive is",
     "The offset or the length that .metadata records leads into the middle of the file: a data "
     "file of another save, or bytes that changed.",
     "Whether .metadata and the data files are of one save: their times and their sizes.",
     "--data"},
    {ErrorForm::kBadArchive, "bad-record", kDisk, 0.7, "the bytes of an item are damaged",
     "The archive of an item cannot be read or its checksum is wrong: the disk, the network or an "
     "interrupted copy changed it. Only this item is affected.",
     "The same file where it was written, compared byte for byte.", "--data"},
    {ErrorForm::kBadArchive, "short-file", kDisk, 0.4, "a data file was cut off",
     "The file ends inside an item, or is empty.", "The size of the file where it was written.",
     ""},
    {ErrorForm::kPickledByPython313, "portability", kDisk, 0.97,
     "saved under Python 3.13 or later, opened under an older one",
     ".metadata holds a path, and Python 3.13 pickles it as pathlib._local.PosixPath, which "
     "Python 3.12 and older do not have. The data is sound; `shardwright repair` writes .metadata "
     "anew without it, or load under Python 3.13.",
     "Python versions of both runs.", ""},
    {ErrorForm::kSixProperties, "portability", kDisk, 0.95,
     "saved by torch 2.15 or later, opened by an older torch",
     "torch 2.15 records a sixth property of each tensor, its strides; older versions expect "
     "five. The data is sound; `shardwright repair` writes .metadata anew without it, or load "
     "with torch 2.15.",
     "torch versions of both runs.", ""},
    {ErrorForm::kPlanRefused, "chunk-overlap", kUnclear, 0.5, "two ranks claim the same elements",
     "torch checked the tiles before it wrote: two of one tensor overlap. Ranks computed their "
     "offsets for different meshes. This save wrote no .metadata, so what is on disk is an "
     "earlier or an unfinished checkpoint.",
     "torch 2.12 and later append which tensor and which tiles; older ones log it one line above.",
     ""},
    {ErrorForm::kPlanRefused, "coverage-gap", kUnclear, 0.5, "the tiles do not fill a tensor",
     "The tiles have fewer elements than the tensor: a rank did not take part, or sizes are of "
     "another layout.",
     "The world size of the process group that saved against the mesh of the tensors.", ""},
    {ErrorForm::kPlanRefused, "uneven-strided", kUnclear, 0.4,
     "uneven strided shards under an old torch",
     "FSDP over tensor parallelism of a dimension that does not divide evenly: torch before "
     "pytorch #150490 computed offsets that overlap and leave gaps.",
     "torch version, and whether the dimension divides by dp x tp.", ""},
    {ErrorForm::kPlanRefused, "chunk-out-of-bounds", kUnclear, 0.4,
     "a tile reaches outside its tensor",
     "The global size was taken from one rank and the offsets from all, or the other way round.",
     "The tensor that torch names.", ""},
    {ErrorForm::kPickleCut, "short-file", kDisk, 0.8, "a pickle was cut off",
     "The .metadata (or an object in a data file) ends before its pickle does: a full disk, a "
     "killed job, a copy that stopped. .metadata is written last, so a cut one means that the save "
     "did not end. The data files may be whole.",
     "The size of .metadata where it was written, and whether an earlier step loads.", ""},
    {ErrorForm::kMissingFile, "missing-file", kDisk, 0.7, "a data file is not there",
     "A copy that was cut off, a clean-up that took too much, or a node's local disk that was "
     "never collected.",
     "Whether the file is where the checkpoint was written; and whether the path is a folder of "
     "the right step.",
     ""},
    {ErrorForm::kMissingFile, "", kLoader, 0.35, "the path is wrong, or the save did not end",
     "DCP writes .metadata last: a folder without it is an unfinished save, or not the folder that "
     "was meant (AutoModel keeps model/ and optim/ apart, Megatron iter_N/).",
     "What is in the folder.", ""},
    {ErrorForm::kUnsafeGlobal, "unsafe-pickle", kDisk, 0.6,
     "the pickle names a class that torch does not allow",
     "torch.load with weights_only refuses every class but a short list. It may be a harmless "
     "class of a library, or an attack. Shardwright reads the pickle without running anything.",
     "Where the file comes from and which class it names.", ""},
    {ErrorForm::kUnsafeGlobal, "portability", kDisk, 0.35, "the class is of another version",
     "A class that moved between versions of torch or Python is refused as unknown.",
     "torch and Python versions of both runs.", ""},
    {ErrorForm::kStateIsNoDTensor, "local-saved-as-global", kLoader, 0.8,
     "optimizer states are plain tensors",
     "Code that expects DTensors met a plain one: the optimizer keeps its states as local tensors "
     "(TransformerEngine between #2698 and #2795). If this happened while saving, nothing was "
     "written; checkpoints that the same optimizer saved through another path hold one rank's "
     "shard of each state.",
     "Whether an earlier checkpoint of this run has states shorter than their parameters.", ""},
    {ErrorForm::kStateIsNoDTensor, "glu-split-local", kDisk, 0.3,
     "a patched saver would split them in the wrong coordinates",
     "With only a type check in its place (Megatron-LM #4245) the save goes through and cuts "
     "gated weights at half of the local shard.",
     "Whether the run that saved carried that patch.", ""},
    {ErrorForm::kNoStorageRecord, "chunk-rank", kDisk, 0.2,
     "the tile's offsets have another number of dimensions",
     "An axis was put before the others in one of the two lists only.",
     "The offsets in the message: as many as the tensor has dimensions?", ""},
    {ErrorForm::kPickleCut, "unsafe-pickle", kDisk, 0.15, "the file is no pickle of torch",
     "A download page or a Git LFS pointer in the place of the file.",
     "The first bytes of the file: `head -c 100`.", ""},
}};

}  // namespace

void suppose_from_form(const ErrorMessage& message, std::vector<Hypothesis>& all) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.form != message.form) continue;
    Hypothesis one{std::string(meaning.rule.empty() ? "unfinished-save" : meaning.rule),
                   std::string(meaning.rule), meaning.wrong, meaning.confidence};
    one.title = meaning.title;
    one.text = meaning.text;
    one.decide = meaning.decide;
    one.command = check_command(meaning.options);
    if (!message.tensor.empty()) one.evidence.emplace_back("name", message.tensor);
    all.push_back(std::move(one));
  }
}

}  // namespace shw
