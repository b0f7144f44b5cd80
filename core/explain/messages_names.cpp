// Messages whose meaning depends on shapes or names (hypotheses_*.cpp).
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr MessageKind kNameMessages[] = {
    {.id = kShapes,
     .example = "Size mismatch between saved torch.Size([64]) and current: torch.Size([128]) for "
                "NAME",
     .patterns = {"size mismatch for <name>~copying a param with shape~<saved>~current "
                  "model~<current>",
                  "copying a param with shape~<saved>~current model~<current>",
                  "while copying the parameter named <name>, whose dimensions in the model are "
                  "<current> and whose dimensions in the checkpoint are <saved>",
                  "<before>found shape~<saved>~checkpoint and~<current>",
                  "saved~<saved>~current~<current><for>", "loaded~<saved>~expected~<current><for>",
                  "saved~<saved>~expected~<current><for>",
                  "saved~<saved>~requested~<current><for>"}},
    {.id = kShapes,
     .example = "the checkpoint has [64], the model [128] for NAME",
     .patterns = {"checkpoint~<saved>~model~<current><for>"}},
    {.id = kMissingKeyForm,
     .example = "Missing key in checkpoint state_dict: NAME",
     .patterns = {"missing key in checkpoint state_dict: <name>",
                  "missing key(s) in state_dict: <names>",
                  "unexpected keys (for this rank): <names>",
                  "missing keys (not found in the checkpoint): <names>",
                  "unexpected keys (not found in the checkpoint): <names>",
                  "newly initialized: <names>",
                  "<before>from model not in state dict:", "<before>| missing |"}},
    {.id = kUnexpectedKeyForm,
     .example = "Unexpected key(s) in state_dict: \"NAME\", ...",
     .patterns = {"unexpected key(s) in state_dict: <names>",
                  "missing keys (for all ranks): <names>", "unexpected keys: <names>",
                  "were not used when initializing~: <names>",
                  "unexpected key in state_dict: <name>", "<before>| unexpected |",
                  "unused key(s) in state_dict: <names>",
                  "contains keys that are not used by the model: <names>"}},
    {.id = kShapes,
     .example = "Trying to set a tensor of shape torch.Size([64]) in \"NAME\" (which has shape "
                "torch.Size([128]))",
     .patterns = {"trying to set a tensor of shape <saved> in <name>~which has shape <current>",
                  "<before>| mismatch |~ckpt:~<saved>~model:~<current>",
                  "ckpt:~<saved>~model:~<current>",
                  "shape '<current>' is invalid for input of size <numel>"}},
    {.id = kMissingKeyForm,
     .example = "Missing keys: [\"NAME\", ...]",
     .patterns = {"keyerror: \"<name>~from model not in state dict", "missing keys: <names>",
                  "missing_keys=<names>", "missing_keys: <names>",
                  "were not found in the checkpoint: <names>",
                  "error: key <name> not found in checkpoint",
                  "tried to load <name> but it's not in the checkpoint",
                  "fsdp assumes <name> is in the state_dict but"}},
    {.id = kUnexpectedKeyForm,
     .example = "unexpected_keys=['NAME', ...]",
     .patterns = {"unexpected_keys=<names>", "unexpected_keys: <names>",
                  "weights not used: <names>", "not requested by the model): <names>"}},
    {.id = kMissingKeyForm,
     .example = "The following keys are missing from the checkpoint: ['NAME', ...]",
     .patterns = {"missing from the checkpoint: <names>", "missing from checkpoint: <names>",
                  "not found in checkpoint: <names>", "missing in checkpoint: <names>",
                  "missing in the checkpoint: <names>", "not in the checkpoint: <names>",
                  "missing parameters: <names>", "missing weights: <names>"}},
    {.id = kUnexpectedKeyForm,
     .example = "The following keys of the checkpoint are not in the model: ['NAME', ...]",
     .patterns = {"not found in the model: <names>", "not in the model: <names>",
                  "not found in model: <names>", "unused weights: <names>",
                  "unexpected parameters: <names>", "unexpected weights: <names>",
                  "extra keys: <names>", "ignored keys: <names>"}},
    {.id = "error-in-key",
     .example = "KeyError: 'NAME'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "name-differs",
                    .rule = &kMissingKey,
                    .weight = 0.5,
                    .title = "code looked for a name that is not there",
                    .text = "A KeyError says only which name was looked for, not in what. If it is "
                            "a tensor's name, the checkpoint has it under another name or not at "
                            "all; if it is a setting's, the file was written by another version.",
                    .decide = "The line of the traceback above the KeyError, and whether the "
                              "checkpoint lists the name.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed,
     .accepts =
         [](const ErrorMessage& message) {
           // Quoted sentences belong to the row that matches them.
           return !message.name.starts_with("MetadataIndex(") &&
                  message.name.find(' ') == message.name.npos;
         }},
    {.id = "state-dict-error",
     .example = "Error(s) in loading state_dict for MODEL",
     .patterns = {"error(s) in loading state_dict for <name>", "ignore_mismatched_sizes"},
     .meanings = {{{.id = "details-missing",
                    .rule = &kShapeMismatch,
                    .weight = 0.3,
                    .title = "names or shapes of the checkpoint are not the model's",
                    .text =
                        "This line says only that the load failed; the lines after it say which "
                        "names and which shapes. Paste those too.",
                    .decide = "The lines that follow: missing keys, unexpected keys, size "
                              "mismatches.",
                    .command = "--spec SPEC.json"}}},
     .certainty = MessageCertainty::kThatItFailed},
};

}  // namespace

std::span<const MessageKind> name_messages() {
  return kNameMessages;
}

}  // namespace shw
