// KeyError, AttributeError and TypeError messages whose name identifies the missing thing: an
// optimizer state, a checkpoint part, a scale, a record field.
#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view name, const std::string_view (&all)[N]) {
  for (std::string_view one : all) {
    if (name == one) return true;
  }
  return false;
}

constexpr std::string_view kAdamKeys[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
constexpr std::string_view kOtherStateKeys[] = {
    "momentum_buffer", "step",    "sum",          "square_avg", "acc_delta", "ema",
    "exp_inf",         "shampoo", "master_param", "fp32_param"};
constexpr std::string_view kOptimizerParts[] = {"param_groups",     "state",
                                                "optimizer_states", "optimizer_state_dict",
                                                "optimizer",        "opt_param_scheduler",
                                                "lr_scheduler",     "lr_schedulers",
                                                "scheduler",        "grad_scaler"};
constexpr std::string_view kModelParts[] = {"model",
                                            "module",
                                            "state_dict",
                                            "model_state_dict",
                                            "net",
                                            "params",
                                            "params_ema",
                                            "model_ema",
                                            "ema_model",
                                            "weights",
                                            "network",
                                            "generator",
                                            "state_dict_ema",
                                            "hyper_parameters",
                                            "model_args",
                                            "args",
                                            "config",
                                            "checkpoint_version",
                                            "epoch",
                                            "global_step",
                                            "iteration",
                                            "loops",
                                            "callbacks"};
constexpr std::string_view kZeroParts[] = {"fp32_flat_groups",
                                           "single_partition_of_fp32_groups",
                                           "param_shapes",
                                           "buffer_names",
                                           "ds_version",
                                           "ds_config",
                                           "zero_stage",
                                           "partition_count",
                                           "param_slice_mappings",
                                           "base_optimizer_state",
                                           "dp_world_size",
                                           "mp_world_size",
                                           "shared_params",
                                           "frozen_param_shapes",
                                           "universal_checkpoint_info",
                                           "group_paddings",
                                           "frozen_param_fragments"};
constexpr std::string_view kConfigParts[] = {"model_type",
                                             "architectures",
                                             "quant_method",
                                             "rope_scaling",
                                             "rope_theta",
                                             "num_experts",
                                             "hidden_size",
                                             "weight_map",
                                             "metadata",
                                             "vocab_size",
                                             "num_hidden_layers",
                                             "torch_dtype",
                                             "num_attention_heads",
                                             "n_routed_experts",
                                             "rope_parameters",
                                             "type"};

bool is_number(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == name.npos;
}
// "model.layers.0.mlp.down_proj.weight": at least two dots, not a file path.
bool is_tensor_name(std::string_view name) {
  std::size_t dot = name.find('.');
  return dot != name.npos && name.find_first_of("/( ") == name.npos &&
         name.find('.', dot + 1) != name.npos;
}

constexpr Interpretation kLookedUpInModel = {
    .id = "renamed",
    .rule = &kUnexpectedKey,
    .wrong = kDisk,
    .weight = 0.5,
    .title = "a name of the checkpoint is not one of the model's",
    .text =
        "Servers (vLLM, SGLang) take each tensor of the checkpoint and look it up in their "
        "model; this name is not there. Its prefix is another than the architecture's, "
        "config.json lacks the experts or layers it belongs to, or the server does not know "
        "this form of the model.",
    .decide = "The line of the traceback: params_dict[name] looks in the model.",
    .command = "shardwright ls CHECKPOINT NAME"};
constexpr Interpretation kLookedUpInFile = {
    .rule = &kMissingKey,
    .wrong = kDisk,
    .weight = 0.4,
    .title = "the code looked for a tensor that the checkpoint does not have",
    .text =
        "Converters ask the state dict by name. The tensor has another name there (a prefix, a "
        "fused or a split form), is tied to another one, or a shard is missing.",
    .decide = "Whether the checkpoint lists the name, or one that ends alike.",
    .command = "shardwright ls CHECKPOINT NAME"};

// vLLM and SGLang give fused experts these names; no checkpoint has them.
bool is_fused_by_server(std::string_view name) {
  return is_tensor_name(name) &&
         (name.find(".w13_") != name.npos || name.find(".w2_") != name.npos);
}

constexpr Interpretation kNoPlaceInServer = {
    .id = "quantised",
    .wrong = kLoader,
    .weight = 0.6,
    .title = "the server built these experts without a tensor that the checkpoint has",
    .text =
        "The name is the server's own for the fused experts: it mapped a tensor of the checkpoint "
        "to it and has no such parameter. The experts were built for another quantisation (or "
        "without a bias) than the file has: quantization_config lacks these layers, names another "
        "scheme, or this version of the server does not know the model's form of them.",
    .decide = "The tensors of one expert in the file against quantization_config.",
    .command = "shardwright ls CHECKPOINT experts"};

constexpr MessageKind kKeyMessages[] = {
    {.id = "adam-state",
     .example = "KeyError: 'exp_avg'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "other-optimizer",
                    .rule = &kHalfPair,
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the code expects Adam's states, and these were made by another "
                             "optimizer",
                    .text = "exp_avg and exp_avg_sq are Adam's two moments. A group that Muon, SGD "
                            "or Lion trained has momentum_buffer (or one moment) instead, and "
                            "converters such as ds_to_universal.py know Adam alone. The "
                            "checkpoint is not damaged by that.",
                    .decide = "Which states the checkpoint has for these parameters.",
                    .command = "shardwright ls CHECKPOINT"},
                   {.id = "no-optimizer-state",
                    .rule = &kOptimizerGroups,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "a parameter has no state in the checkpoint",
                    .text = "Parameters that were frozen or never got a gradient have none, and "
                            "Adam makes its states at the first step.",
                    .decide = "Whether other parameters have exp_avg.",
                    .command = "shardwright check CHECKPOINT"}}},
     .accepts = [](const ErrorMessage& message) { return is_one_of(message.name, kAdamKeys); }},
    {.id = "optimizer-state-key",
     .example = "KeyError: 'momentum_buffer'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "other-optimizer",
                    .rule = &kHalfPair,
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "a state of another optimizer, or of another version of it",
                    .text = "The optimizer that runs keeps this state and the one that saved did "
                            "not: another optimizer, an option that was off (momentum, amsgrad), "
                            "or a version of torch that keeps step elsewhere.",
                    .decide = "Which states the checkpoint has.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) { return is_one_of(message.name, kOtherStateKeys); }},
    {.id = "state-number",
     .example = "KeyError: 17",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "optimizer-order",
                    .rule = &kOptimizerGroups,
                    .weight = 0.5,
                    .title = "an optimizer state is asked for by a number that the file does not "
                             "have",
                    .text = "torch numbers parameters in the order of the groups and keeps states "
                            "under the number. A parameter without a state (frozen, no gradient), "
                            "or another order of groups, makes a number missing.",
                    .decide = "Whether the traceback goes through an optimizer.",
                    .command = "shardwright check CHECKPOINT"},
                   {.id = "other-format",
                    .wrong = kDisk,
                    .weight = 0.3,
                    .title = "the file is not a pickle",
                    .text = "torch.load of a text file ends in a KeyError with the code of its "
                            "first letters.",
                    .decide = "The first bytes of the file: `head -c 100 FILE`.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = [](const ErrorMessage& message) { return is_number(message.name); }},
    {.id = "optimizer-part",
     .example = "KeyError: 'param_groups'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "no-optimizer-state",
                    .rule = &kHalfPair,
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the file has no optimizer, or has it under another name",
                    .text = "It holds the weights alone, or is the file of another trainer: "
                            "optimizers stand under optimizer, optimizer_states, "
                            "optimizer_state_dict or in a file of their own. The weights are not "
                            "in question; start the optimizer anew or find its file.",
                    .decide = "The names at the top of the file.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) { return is_one_of(message.name, kOptimizerParts); }},
    {.id = "checkpoint-part",
     .example = "KeyError: 'state_dict'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the file is laid out for another program",
                    .text = "The code expects a dict with this key at the top. The file is a plain "
                            "state dict, or another trainer's dict that keeps the weights under "
                            "another key (model, module, state_dict, model_state_dict).",
                    .decide = "The names at the top of the file.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .accepts = [](const ErrorMessage& message) { return is_one_of(message.name, kModelParts); }},
    {.id = "zero-part",
     .example = "KeyError: 'param_shapes'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the file is not of the ZeRO stage that the script reads",
                    .text = "DeepSpeed keeps other entries for stages 0, 1, 2 and 3, and versions "
                            "renamed some. Stage 0 keeps the weights whole in "
                            "mp_rank_00_model_states.pt: nothing has to be gathered. For 1 to 3 "
                            "use the zero_to_fp32.py that DeepSpeed put beside the checkpoint.",
                    .decide = "The stage and the version that saved.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = [](const ErrorMessage& message) { return is_one_of(message.name, kZeroParts); },
     .loader = "DeepSpeed"},
    {.id = "unmerged-key",
     .example = "KeyError: 'layers.0.self_attn.qkv_proj.base_layer.weight'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "unmerged-adapter",
                    .rule = &kWrappedNames,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "the model was saved with its adapter still on it",
                    .text = "PEFT puts .base_layer. into the names of the modules that it wraps. "
                            "Call merge_and_unload() and save again, or save the adapter by itself "
                            "and give the server both.",
                    .decide = "Whether the checkpoint has lora_ names too.",
                    .command = "shardwright check CHECKPOINT"},
                   {.id = "server-without-lora",
                    .wrong = kLoader,
                    .weight = 0.35,
                    .title = "weights were sent to a server that runs without LoRA",
                    .text = "A trainer (verl, TRL) sends names of its wrapped model, and the "
                            "server's model has no adapter's layers. Enable LoRA in the server, or "
                            "send merged weights.",
                    .decide = "Whether the traceback updates weights or reads a checkpoint.",
                    .command = "shardwright ls CHECKPOINT lora_"}}},
     .accepts =
         [](const ErrorMessage& message) {
           return message.name.find(".base_layer.") != message.name.npos;
         }},
    {.id = "quantisation-key",
     .example = "KeyError: 'layers.0.mlp.down_proj.weight_scale'",
     .patterns = {"keyerror: <name>", "keyerror(<name>",
                  "scale tensor <name> not found in weight_map",
                  "there is no module or parameter named <name>",
                  "parameter <name> not found in params_dict"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.55,
                    .title = "the checkpoint has a scale that the model did not ask for",
                    .text = "The program builds its model from quantization_config and looks each "
                            "tensor of the file up in it. This layer is quantised in the file and "
                            "not in the model (modules_to_not_convert, ignore), the scheme is "
                            "another one, or --quantization is missing.",
                    .decide = "quantization_config in config.json against the scales in the "
                              "files.",
                    .command = "shardwright check CHECKPOINT"},
                   {.id = "quantised",
                    .rule = &kMissingKey,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the scale is missing in the checkpoint, or has another suffix there",
                    .text = "weight_scale, weight_scale_inv, scales and input_scale are suffixes "
                            "of different schemes; a tool that requantised part of the model "
                            "leaves two of them.",
                    .decide = "Whether every quantised weight has its scale, under one suffix.",
                    .command = "shardwright check CHECKPOINT"}}},
     .accepts = [](const ErrorMessage& message) { return is_scale_name(message.name); }},
    {.id = "config-key",
     .example = "KeyError: 'rope_scaling'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "config-disagrees",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "a key of config.json (or of an index) is not there",
                    .text = "Not a tensor: a setting. config.json was written for another version "
                            "of the program or another architecture, or is not the model's. The "
                            "tensors are not in question.",
                    .decide = "The file that the traceback reads, and transformers_version in it.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = [](const ErrorMessage& message) { return is_one_of(message.name, kConfigParts); }},
    {.id = "optimizer-tensor-key",
     .example = "KeyError: 'optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{{.id = "no-optimizer-state",
                    .rule = &kHalfPair,
                    .weight = 0.65,
                    .title = "the optimizer state of this parameter is not there under this name",
                    .text = "The run that loads builds its optimizer names from its own model and "
                            "options. The save had no optimizer, another form of it (sharded by "
                            "another option, experts one by one or stacked), or another prefix "
                            "(chained_0.). The weights are not in question.",
                    .decide = "Which optimizer names the checkpoint has.",
                    .command = "shardwright ls CHECKPOINT exp_avg"}}},
     .accepts =
         [](const ErrorMessage& message) {
           return is_tensor_name(message.name) &&
                  (message.name.starts_with("optim") ||
                   message.name.find("exp_avg") != message.name.npos);
         }},
    {.id = "server-key",
     .example = "KeyError: 'layers.0.mlp.experts.w13_bias'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{kNoPlaceInServer}},
     .accepts = [](const ErrorMessage& message) { return is_fused_by_server(message.name); },
     .loader = "vLLM or SGLang"},
    {.id = "tensor-key",
     .example = "KeyError: 'model.layers.0.mlp.experts.w13_weight'",
     .patterns = {"keyerror: <name>", "keyerror(<name>"},
     .meanings = {{kLookedUpInModel, kLookedUpInFile}},
     .accepts = [](const ErrorMessage& message) { return is_tensor_name(message.name); }},
    {.id = "record-class",
     .example = "AttributeError: '_StorageInfo' object has no attribute 'transform_descriptors'",
     .patterns = {"'_storageinfo' object has no attribute <name>",
                  "'tensorproperties' object has no attribute <name>",
                  "'bytesstoragemetadata' object has no attribute <name>",
                  "'tensorstoragemetadata' object has no attribute <name>",
                  "'chunkstoragemetadata' object has no attribute <name>",
                  "'metadataindex' object has no attribute <name>",
                  "'metadata' object has no attribute <name>",
                  "'storagemeta' object has no attribute <name>"},
     .meanings = {{{.id = "other-librarys-records",
                    .rule = &kPortability,
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the records in .metadata are of another library's class, or of "
                             "another version of torch",
                    .text = "Libraries such as OLMo-core pickle their own class where torch has "
                            "one of the same name, and versions of torch added fields. The "
                            "reader asks for a field that the class lacks. The tensors are sound: "
                            "load with the library that saved, or let `shardwright repair` write "
                            ".metadata anew with torch's classes.",
                    .decide = "The module of the class, and the torch versions of both runs.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "torch.distributed.checkpoint"},
    {.id = "no-metadata-object",
     .example = "AssertionError: metadata is None",
     .patterns = {"metadata is none", "metadata is not none", "assert metadata is not none",
                  "storage_data must not be none in metadata", "no metadata found in checkpoint"},
     .meanings = {{{.id = "unfinished-save",
                    .rule = &kLeftoverMetadata,
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "the save did not finish: there is no .metadata to read",
                    .text = "The reader got no metadata. An asynchronous save moves its link or "
                            "its tracker file before the data is on disk, and .metadata is "
                            "written last: the newest step is unfinished. Use the step before it.",
                    .decide = "Whether .metadata is in the folder; the step before.",
                    .command = "shardwright check CHECKPOINT"},
                   {.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.25,
                    .title = "the path is not the checkpoint's folder",
                    .text = "The reader was given the folder above, or a planner was used without "
                            "its set-up.",
                    .decide = "What is in the folder.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "torch.distributed.checkpoint"},
    {.id = "state-not-a-number",
     .example = "TypeError: float() argument must be a string or a real number, not 'dict'",
     .patterns = {"float() argument must be a string or a real number, not 'dict'",
                  "float() argument must be a string or a number, not 'dict'",
                  "must contain a list of singleton tensors",
                  "missing optimizer state for parameter <name>",
                  "all shards must have the same step value"},
     .meanings = {{{.id = "no-optimizer-state",
                    .rule = &kOptimizerGroups,
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "the optimizer state of some parameters is not in the checkpoint",
                    .text = "The checkpoint lists these parameters in its groups and has no state "
                            "for them: they never got a gradient, or their states were not saved. "
                            "The loader then puts something else where a number is expected. Load "
                            "with strict=False (torch) so that they start at zero, or leave the "
                            "optimizer out.",
                    .decide = "Which parameters of the groups have no state.",
                    .command = "shardwright check CHECKPOINT"}}}},
    {.id = "empty-optimizer",
     .example = "ValueError: optimizer got an empty parameter list",
     .patterns = {"optimizer got an empty parameter list"},
     .meanings = {{{.id = "empty-optimizer",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "no parameter of the model is to be trained",
                    .text = "The optimizer is built before anything is loaded into it: every "
                            "parameter is frozen, or the adapter was loaded for inference "
                            "(is_trainable=False). The checkpoint is not in question.",
                    .decide = "requires_grad of the model's parameters.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "nothing-where-something",
     .example = "TypeError: 'NoneType' object is not subscriptable",
     .patterns = {"'nonetype' object is not subscriptable", "'nonetype' object is not iterable",
                  "list index out of range", "'int' object is not subscriptable",
                  "string indices must be integers", "not enough values to unpack"},
     .meanings = {{{.id = "other-format",
                    .rule = &kPortability,
                    .weight = 0.4,
                    .title = "code met nothing, or another kind of value, where it expected a part "
                             "of the checkpoint",
                    .text = "Python's words alone do not say where. In a script that reads a "
                            "checkpoint it is as a rule a form that the script does not know: "
                            "another ZeRO stage, another trainer, a file without metadata, or "
                            "an empty list of files.",
                    .decide = "The line of the traceback above it: which key or file it read.",
                    .command = "shardwright info CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "attribute-of-class",
     .example = "AttributeError: 'NAME' object has no attribute 'NAME'",
     .patterns = {"object has no attribute <name>"},
     .meanings = {{{.id = "other-version",
                    .rule = &kPortability,
                    .weight = 0.4,
                    .title = "an object is of another class or version than the code expects",
                    .text = "If the object came out of the checkpoint, it was pickled by another "
                            "version or library, or the file holds another kind of thing (a dict "
                            "for a module, a module for a dict). If it is the program's own, the "
                            "checkpoint has nothing to do with it.",
                    .decide = "Whether the line above in the traceback reads the checkpoint.",
                    .command = "shardwright info CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed},
};

}  // namespace

std::span<const MessageKind> key_messages() {
  return kKeyMessages;
}

}  // namespace shw
