#include "core/explain/general_kinds.h"

#include <algorithm>
#include <array>

#include "core/rules/rules.h"

namespace shw {
namespace {

using Words = std::array<std::string_view, 16>;

constexpr Words kTheCheckpoint = {"checkpoint",  "weight",     "state dict", "state_dict",
                                  "safetensors", "tensor",     ".ckpt",      "ckpt",
                                  "shard",       "pretrained", "adapter",    "param_state"};
constexpr Words kRefusal = {"missing",     "expected",    "mismatch",      "not match",
                            "unsupported", "not support", "supports only", "only support",
                            "failed",      "must match",  "cannot",        "no optimizer state",
                            "not found",   "invalid",     "not present",   "not implemented"};
// Words of messages about a failed save, which tell nothing about loading.
constexpr Words kSaving = {"to save",   "not save",  "saving",   "to write", "not write",
                           "to upload", "uploading", "to store", "writing"};

struct GeneralKind {
  Words one, two;  // a word of each group is in the sentence
  MessageKind kind;
  bool of_load = false;  // true: not for messages about a save
};

constexpr GeneralKind kGeneralKinds[] = {
    {{"must stay inside", "outside the", "escapes", "path traversal", "unsafe path",
      "absolute path"},
     {"shard", "index", "checkpoint", "weight_map"},
     {.id = "path-outside",
      .example = "a path that leaves the folder",
      .meanings = {{{.rule = &kPathEscape,
                     .wrong = WrongSide::kCheckpoint,
                     .weight = 0.7,
                     .title = "an index names a file outside the checkpoint's folder",
                     .text = "A path with .. or an absolute path in an index is an error of the "
                             "tool that wrote it, or an attack. Do not load it; look at the index "
                             "first.",
                     .decide = "The paths in the index.",
                     .command = "shardwright check CHECKPOINT"}}}}},
    {{"already exists", "already holds", "already contains", "may conflict with",
      "overwrite=", "refusing to overwrite", "not empty"},
     kTheCheckpoint,
     {.id = "already-there",
      .example = "a checkpoint that is already there",
      .meanings = {{{.id = "already-there",
                     .wrong = WrongSide::kRequest,
                     .weight = 0.75,
                     .title = "files of an earlier save are already in this folder",
                     .text = "The program does not write over them. Nothing was written by this "
                             "run. Choose another folder, or move the old files away if they are "
                             "not needed.",
                     .decide = "Whether the files there are of a step that is needed.",
                     .command = "shardwright info CHECKPOINT"}}}}},
    {{"interrupted", "incomplete", "partially written", "not complete", "unfinished", "truncated",
      "corrupt", "premature end", "is empty"},
     {"checkpoint", "shard", "save ", "weight", "safetensors", "ckpt"},
     {.id = "unfinished",
      .example = "a checkpoint that is not whole",
      .meanings = {{{.id = "unfinished-save",
                     .rule = &kShortFile,
                     .wrong = WrongSide::kCheckpoint,
                     .weight = 0.6,
                     .title = "the checkpoint, or a file of it, is not whole",
                     .text = "A save, a copy or a download stopped before its end. The check says "
                             "which file is short or missing; the step before it is usually whole.",
                     .decide = "Whether every file is there and as long as its header says.",
                     .command = "shardwright check CHECKPOINT"}}}}},
    {{"multiple checkpoint tensors map", "map to the same", "mapped to the same",
      "found in multiple", "duplicate tensor", "duplicate key", "defined twice", "appears in both"},
     kTheCheckpoint,
     {.id = "names-collide",
      .example = "two tensors that get one name",
      .meanings = {{{.id = "two-copies",
                     .wrong = WrongSide::kEither,
                     .weight = 0.6,
                     .title = "two tensors of the checkpoint come to one name",
                     .text = "The folder holds two copies of the model (two saves, two forms of "
                             "it), or the loader's mapping joins names that this checkpoint keeps "
                             "apart.",
                     .decide =
                         "Which tensors of the checkpoint have that name, or end the same way.",
                     .command = "shardwright ls CHECKPOINT"}}}}},
    {{"tie_word_embeddings", "tied weights", "tied embedding", "weight tying"},
     {"but ", "not ", "mismatch", "cannot"},
     {.id = "tie-differs",
      .example = "a setting of tied weights that differs",
      .meanings =
          {{{.id = "tied",
             .rule = &kTiedWeights,
             .wrong = WrongSide::kEither,
             .weight = 0.7,
             .title = "checkpoint and program do not agree whether the output layer is tied",
             .text = "With tie_word_embeddings embedding and output layer are one tensor, "
                     "stored once. Set it as the checkpoint has it; if the checkpoint holds "
                     "both and they differ, it is not tied.",
             .decide = "Whether lm_head is in the checkpoint, and equal to the embedding.",
             .command = "shardwright check CHECKPOINT"}}}}},
    {{"optimizer"},
     kRefusal,
     {.id = "optimizer-differs",
      .example = "an optimizer that does not fit",
      .meanings =
          {{{.id = "optimizer-groups",
             .rule = &kOptimizerGroups,
             .wrong = WrongSide::kEither,
             .weight = 0.55,
             .title = "the optimizer in the checkpoint is not the one that the run builds",
             .text =
                 "It is missing, has other groups or parts, or is sharded in another way than the "
                 "run asks for. The weights are usually not in question: resume with the options "
                 "of the save, or load the weights and start the optimizer from scratch.",
             .decide = "Which optimizer entries the checkpoint has.",
             .command = "shardwright ls CHECKPOINT"}}}},
     /*of_load=*/true},
    {{"quantiz", "quantis", "fp8", "int4", "int8", "nf4", "mxfp4", "nvfp4", "awq", "gptq",
      "bitsandbytes", "bnb", "weight_scale", "block_size"},
     kRefusal,
     {.id = "quantisation-differs",
      .example = "a quantisation that does not fit",
      .meanings = {{{.id = "quantised",
                     .wrong = WrongSide::kEither,
                     .weight = 0.55,
                     .title = "the checkpoint's quantisation is not the one that the program takes",
                     .text = "Another scheme or block size, scales that are not there, or a "
                             "config.json that does not say how the weights are packed. Compare "
                             "quantization_config with the tensors; a copy in full precision "
                             "(`shardwright convert --dequantise`) loads everywhere.",
                     .decide = "quantization_config against the dtypes and scales in the files.",
                     .command = "shardwright check CHECKPOINT"}}}},
     /*of_load=*/true},
    {{"weight file", "weights file", "weight files", "weights found", "no weights",
      ".safetensors files", "safetensors checkpoint", "model file", "safetensors file"},
     {"no ", "none found", "not found", "couldn't find", "could not find", "can't find", "missing",
      "to contain", "not contain", "unable to find"},
     {.id = "no-weights",
      .example = "a folder without weights",
      .meanings = {{{.id = "other-format",
                     .wrong = WrongSide::kRequest,
                     .weight = 0.5,
                     .title = "the folder holds no weights in the form that the program reads",
                     .text = "It looks for files of certain names (*.safetensors, *.bin). The "
                             "weights are of another form and have to be converted, are a level "
                             "deeper, or were not downloaded.",
                     .decide = "What the tool takes the folder for.",
                     .command = "shardwright info CHECKPOINT"}}}}},
    {{"is missing the file", "missing the following file", "is missing a", "missing file",
      "missing a file", "required file"},
     {"checkpoint", "model", "folder", "directory", "weight"},
     {.id = "file-of-folder-missing",
      .example = "a folder that lacks a file",
      .meanings = {{{.rule = &kMissingFile,
                     .wrong = WrongSide::kEither,
                     .weight = 0.55,
                     .title =
                         "the folder lacks a file that this program writes next to the weights",
                     .text = "The message names the file. The folder was written by another "
                             "program or another version, the copy left the file out, or the path "
                             "is a level too high or too low.",
                     .decide = "Which files are there, and what the tool takes the folder for.",
                     .command = "shardwright info CHECKPOINT"}}}}},
    {{"never loaded", "untrained", "randomly initialized", "not been initialized",
      "was not initialized", "uninitialized", "materialize", "still on meta"},
     kTheCheckpoint,
     {.id = "not-filled",
      .example = "weights that were not loaded",
      .meanings = {{{.id = "not-filled",
                     .rule = &kMissingKey,
                     .weight = 0.6,
                     .title =
                         "parameters kept their random start: the checkpoint did not fill them",
                     .text = "No tensor of the checkpoint has their names: another prefix, another "
                             "class of the model, or a part that was not saved.",
                     .decide = "The names of the checkpoint against the model's.",
                     .command = "shardwright ls CHECKPOINT"}}}}},
    {{"not a dict", "not a python dict", "not a dictionary", "expected a dict"},
     kTheCheckpoint,
     {.id = "not-a-dict",
      .example = "a checkpoint that is not a dict",
      .meanings = {{{.id = "module-or-state-dict",
                     .rule = &kUnsafePickle,
                     .wrong = WrongSide::kRequest,
                     .weight = 0.65,
                     .title = "the file holds something else than the dict that the program reads",
                     .text = "A whole module (torch.save(model)), a list, or the file of another "
                             "program. The tensors may be sound.",
                     .decide = "What the file holds.",
                     .command = "shardwright ls CHECKPOINT"}}}}},
    {{"outdated", "older version", "newer version", "later version", "unsupported version",
      "format version", "version mismatch", "please upgrade", "no longer supported"},
     kTheCheckpoint,
     {.id = "other-version",
      .example = "a checkpoint of another version",
      .meanings = {{{.id = "older-program",
                     .rule = &kPortability,
                     .wrong = WrongSide::kRequest,
                     .weight = 0.6,
                     .title = "the checkpoint is of another version of the program",
                     .text = "Load it with the version that saved it and save again, or convert or "
                             "download it again for this one. The tensors are usually sound.",
                     .decide = "The versions of the run that saved and of this one.",
                     .command = "shardwright info CHECKPOINT"}}}}},
    {{"not sharded", "is sharded", "unsharded", "wrapped with fsdp", "unwrapped from fsdp",
      "not saved as", "sharded checkpoint", "consolidated"},
     {"but ", "not ", "cannot", "must ", "expected", "requires"},
     {.id = "sharded-or-whole",
      .example = "a sharded checkpoint for a whole model",
      .meanings = {{{.id = "sharded-state-dict",
                     .wrong = WrongSide::kRequest,
                     .weight = 0.65,
                     .title = "the checkpoint is sharded and the model is not, or the other way "
                              "round",
                     .text = "The checkpoint is good. Load it with the strategy that saved it, or "
                             "give it the form that this run takes: `shardwright convert` joins "
                             "shards into whole tensors.",
                     .decide = "What form the tool takes the checkpoint for.",
                     .command = "shardwright info CHECKPOINT"}}}}},
    {{" key", "keys", "state dict", "state_dict", "tree", "field names", "from checkpoint",
      "from the checkpoint"},
     {"mismatch", "not match", "missing from", "not present", "did not match", "both split"},
     {.id = "names-differ",
      .example = "names that do not agree",
      .meanings = {{{.id = "renamed",
                     .rule = &kMissingKey,
                     .wrong = WrongSide::kEither,
                     .weight = 0.5,
                     .title = "the names in the checkpoint are not those that the program asks for",
                     .text = "Another class or version of the model, another program's layout, or "
                             "a level more or less in the nesting. The message does not say that "
                             "bytes are damaged.",
                     .decide = "The names in the checkpoint against those in the message.",
                     .command = "shardwright ls CHECKPOINT"}}}}},
    {{"not implemented", "not supported", "unsupported", "does not support", "not recognised",
      "not recognized", "refusing"},
     kTheCheckpoint,
     {.id = "not-supported",
      .example = "a checkpoint that the program does not take",
      .meanings = {{{.id = "older-program",
                     .wrong = WrongSide::kRequest,
                     .weight = 0.55,
                     .title =
                         "this program, or this version of it, does not take such a checkpoint",
                     .text = "The message names what it refuses: a form, a dtype, an option or a "
                             "kind of layer. The checkpoint is not in question: use a later "
                             "version, another loader, or convert it.",
                     .decide = "What form the checkpoint has.",
                     .command = "shardwright info CHECKPOINT"}}}}},
};

bool has_one(std::string_view text, const Words& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return !word.empty() && text.find(word) != text.npos;
  });
}

}  // namespace

const MessageKind* general_kind(std::string_view text) {
  if (!has_one(text, kTheCheckpoint)) return nullptr;
  const bool is_save = has_one(text, kSaving);
  for (const GeneralKind& general : kGeneralKinds) {
    if (general.of_load && is_save) continue;
    if (has_one(text, general.one) && has_one(text, general.two)) return &general.kind;
  }
  return nullptr;
}

}  // namespace shw
