// Messages of Lightning, Keras, TensorFlow, Orbax and JAX programs.
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kKeras = "Keras", kOrbax = "Orbax", kLightning = "Lightning",
                           kTensorFlow = "TensorFlow", kFlax = "Flax";

constexpr Interpretation kOtherConfiguration = {
    .id = "other-model",
    .rule = &kShapeMismatch,
    .wrong = kLoader,
    .weight = 0.7,
    .title = "the model in code has another size than the one that was saved",
    .text =
        "These libraries save whole arrays, so no rank's part is taken for the whole. A width, "
        "a number of heads, classes or tokens in the configuration is another one.",
    .decide = "The axis that differs: which setting of the configuration gives it.",
    .command = "shardwright info CHECKPOINT"};

// JAX meshes have thousands of devices at most; a larger number is a number of elements.
bool is_number_of_devices(const ErrorMessage& message) {
  for (const auto& [key, number] : message.numbers) {
    if (key == "devices") return number <= 16384;
  }
  return true;
}

constexpr Interpretation kOtherLayers = {
    .id = "other-model",
    .rule = &kShapeMismatch,
    .wrong = kLoader,
    .weight = 0.6,
    .title = "the model in code has other layers than the file",
    .text =
        "Keras matches layers by their order (and by name where asked). A layer was added, "
        "removed or renamed, or the model has no weights yet because it was not built: call "
        "it once, or model.build(), before load_weights.",
    .decide = "The layers in the file against model.summary().",
    .command = "shardwright info CHECKPOINT"};
constexpr Interpretation kOtherKerasForm = {
    .id = "other-format",
    .wrong = kLoader,
    .weight = 0.35,
    .title = "the file is of another form than the call reads",
    .text =
        "A whole model (.keras, SavedModel) and weights alone (.weights.h5) have different "
        "layouts, and Keras 3 does not read all that Keras 2 wrote: load_model for the first, "
        "load_weights for the second.",
    .decide = "How the file was saved, and the Keras version of both runs.",
    .command = "shardwright info CHECKPOINT"};
constexpr Interpretation kOrbaxUnfinished = {
    .id = "unfinished-save",
    .rule = &kLeftoverMetadata,
    .wrong = kDisk,
    .weight = 0.55,
    .title = "the save did not end",
    .text =
        "Orbax writes into a folder with a temporary name (.orbax-checkpoint-tmp) and marks it "
        "when all processes are done (a rename, _CHECKPOINT_METADATA, or commit_success.txt "
        "on object stores). Without that the save was interrupted. Use the step before it.",
    .decide = "Whether the folder's name has orbax-checkpoint-tmp, and what is in it.",
    .command = "shardwright info CHECKPOINT"};
constexpr Interpretation kOrbaxPath = {
    .id = "wrong-path",
    .wrong = kLoader,
    .weight = 0.4,
    .title = "the path is one level too high or too low",
    .text =
        "CheckpointManager keeps ROOT/STEP/ITEM (default, params, state): a checkpointer reads "
        "ITEM, a manager ROOT.",
    .decide = "In which folder manifest.ocdbt, _METADATA or .zarray files lie.",
    .command = "shardwright info CHECKPOINT"};

constexpr Interpretation kOrbaxOtherTree = {
    .id = "renamed",
    .rule = &kMissingKey,
    .wrong = kLoader,
    .weight = 0.7,
    .title = "the tree that the program asks for is not the tree on disk",
    .text =
        "\"Template\" is the program's tree, \"structure\" the checkpoint's. Keys that are "
        "missing, "
        "or a list against a dict, mean a level more or less, another optimizer (optax chains are "
        "tuples), or another version of the model's code. Restore without a template and map it.",
    .decide = "The names of the checkpoint against the tree of the program.",
    .command = "shardwright ls CHECKPOINT"};

constexpr MessageKind kTrainerMessages[] = {
    {.id = "weights-only-checkpoint",
     .example = "Trying to restore training state but checkpoint contains only the model.",
     .patterns = {"trying to restore training state but checkpoint contains only the model",
                  "trying to restore optimizer state but checkpoint contains only the model",
                  "checkpoint contains only the model"},
     .meanings = {{{.id = "no-optimizer-state",
                    .rule = &kHalfPair,
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the checkpoint has weights and no optimizer state",
                    .text = "It was saved with save_weights_only=True, exported, or slimmed. The "
                            "weights are good: load them into the model "
                            "(load_from_checkpoint) and start the optimizer anew. Training cannot "
                            "go on from it as if nothing had happened.",
                    .decide = "Whether another checkpoint of the run has optimizer_states.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kLightning},
    {.id = "not-lightning",
     .example = "KeyError: 'pytorch-lightning_version'",
     .patterns = {"keyerror: 'pytorch-lightning_version'", "keyerror: \"pytorch-lightning_version",
                  "does not point to a valid checkpoint", "not a valid fsdp sharded checkpoint",
                  "is not a valid lightning checkpoint"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the file is not a checkpoint that Lightning's Trainer wrote",
                    .text = "A plain state dict, a folder of shards (FSDP, DeepSpeed) or a file of "
                            "another trainer: it can be loaded into the model with "
                            "load_state_dict, but not given to Trainer as ckpt_path. A sharded "
                            "folder needs the strategy that saved it, or a conversion.",
                    .decide = "What the tool takes it for.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLightning},
    {.id = "lightning-deepspeed",
     .example = "The provided path is not a valid DeepSpeed checkpoint: FILE",
     .patterns = {"is not a valid deepspeed checkpoint: <name>"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the DeepSpeed strategy was given something that is not its folder",
                    .text = "Under this strategy a .ckpt is a folder with latest and checkpoint/ "
                            "in it, and that folder is ckpt_path. A file of this name was saved by "
                            "another strategy: load it with load_state_dict, or resume with the "
                            "strategy that saved. A path below the folder is too deep.",
                    .decide = "Whether the path is a file or a folder, and what is in it.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kLightning},
    {.id = "keras-variables",
     .example = "Layer 'NAME' expected 2 variables, but received 0 variables during loading.",
     .patterns = {"layer <name> expected <#expected_variables> variables, but received "
                  "<#saved_variables> variables",
                  "weight count mismatch for layer #<#layer>~(named <name>",
                  "expects <#expected_variables> weights, but the saved weights have "
                  "<#saved_variables> elements",
                  "was never built and thus it doesn't have any variables",
                  "subclassed model which has not created its variables yet",
                  "axes don't match array", "have not yet been created",
                  "object 'vars' doesn't exist"},
     .meanings = {{kOtherLayers, kOtherKerasForm}},
     .loader = kKeras},
    {.id = "keras-inputs",
     .example = "ValueError: Layer 'dense' expected 1 input(s). Received 2 instead.",
     .patterns = {"layer <name> expected <#expected_inputs> input(s). received"},
     .meanings = {{{.id = "other-version",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "Keras cannot rebuild the model's graph from this file",
                    .text = "A whole model keeps its graph, and Keras 3 reads graphs of Keras 2 "
                            "(and of models inside models) otherwise. The weights are sound: build "
                            "the model in code and call load_weights, or load it with tf_keras "
                            "(TF_USE_LEGACY_KERAS=1).",
                    .decide = "Keras versions of both runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kKeras},
    {.id = "tensorflow-prefix",
     .example = "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for "
                "FOLDER/model.ckpt-1000",
     .patterns = {"unsuccessful tensorslicereader constructor: failed to find any matching files "
                  "for <name>",
                  "unsuccessful tensorslicereader constructor"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "TensorFlow finds no checkpoint under this prefix",
                    .text = "The path is the part before .index and .data-00000-of-0000N, and all "
                            "these files must lie there. A folder that was moved has old paths in "
                            "its file named checkpoint. A .keras or .h5 file is loaded by Keras "
                            "instead.",
                    .decide = "The files in the folder against the prefix.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kTensorFlow},
    {.id = "tensorflow-saved-model",
     .example = "OSError: SavedModel file does not exist at: FOLDER/{saved_model.pbtxt|"
                "saved_model.pb}",
     .patterns = {"savedmodel file does not exist at"},
     .meanings = {{{.id = "wrong-path",
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the folder is not a SavedModel",
                    .text = "Such a folder has saved_model.pb at its top and variables/ below. A "
                            "checkpoint (.index, .data), a .keras or an .h5 file is loaded in "
                            "another way, and a path that does not exist gives the same words.",
                    .decide = "What is in the folder.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kTensorFlow},
    {.id = kMissingKeyForm,
     .example = "NotFoundError: Key bert/embeddings/word_embeddings not found in checkpoint",
     .patterns = {"notfounderror: key <name> not found in checkpoint",
                  "key <name> not found in checkpoint"},
     .meanings = {{{.id = "renamed",
                    .rule = &kMissingKey,
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the variable has another name in the checkpoint",
                    .text = "TensorFlow 1 matches by the variable's full name. Another scope "
                            "before it, another version of the model's code, or slots of an "
                            "optimizer that the save did not have (Adam, ExponentialMovingAverage) "
                            "are not found. Restore only the names that are there.",
                    .decide = "Whether a name in the checkpoint ends alike.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .accepts =
         [](const ErrorMessage& message) { return message.name.find('/') != message.name.npos; },
     .loader = kTensorFlow},
    {.id = kShapes,
     .example = "Assign requires shapes of both tensors to match. lhs shape= [1024] rhs shape= "
                "[512]",
     .patterns = {"assign requires shapes of both tensors to match. lhs shape= <current> rhs "
                  "shape= <saved>",
                  "tensor's shape <saved> is not compatible with supplied shape <current>"},
     .meanings = {{kOtherConfiguration}},
     .loader = kTensorFlow},
    {.id = kShapes,
     .example = "Initializer expected to generate shape (768, 3072) but got shape (768, 2048) "
                "instead for parameter \"kernel\" in \"/mlp\"",
     .patterns = {"expected to generate shape <current> but got shape <saved> instead for "
                  "parameter <name>"},
     .meanings = {{kOtherConfiguration}},
     .loader = kFlax},
    {.id = "keras-layers",
     .example = "You are trying to load a weight file containing 3 layers into a model with 1 "
                "layers.",
     .patterns = {"weight file containing <#saved_layers> layers into a model with "
                  "<#current_layers> layers",
                  "model expected <#current_layers> layers, found <#saved_layers> saved layers",
                  "layer count mismatch when loading weights",
                  "into a model that has not yet been built"},
     .meanings = {{kOtherLayers, kOtherKerasForm}},
     .loader = kKeras},
    {.id = "keras-objects",
     .example = "ValueError: A total of 2 objects could not be loaded.",
     .patterns = {"a total of <#objects> objects could not be loaded"},
     .meanings = {{kOtherLayers, kOtherKerasForm}},
     .certainty = MessageCertainty::kThatItFailed,
     .loader = kKeras},
    {.id = kShapes,
     .example = "Shape mismatch in layer #175 (named NAME) for weight NAME. Weight expects shape "
                "(4, 4). Received saved weight with shape (2, 4)",
     .patterns = {"for weight <name>~weight expects shape <current>~received saved weight with "
                  "shape <saved>",
                  "weight expects shape <current>~received saved weight with shape <saved>",
                  "variable.shape=<current>~value.shape=<saved>",
                  "layer weight shape <current> not compatible with provided weight shape <saved>",
                  "cannot assign value to variable <name>~variable shape <current>~assigned value "
                  "shape <saved>"},
     .meanings = {{kOtherLayers}},
     .loader = kKeras},
    {.id = "keras-format",
     .example = "ValueError: File format not supported: filepath=FILE. Keras 3 only supports V3 "
                "`.keras` files and legacy H5 format files",
     .patterns = {"file format not supported: filepath=<name>", "file not found: filepath=<name>",
                  "no model config found in the file", "accessible `.keras` zip file",
                  "the filename must end in `.weights.h5`", "the filepath provided must end in",
                  "file signature not found", "unable to synchronously open file"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the file is not of the form that this call reads",
                    .text = "Keras tells forms by the ending and reads .keras (a zip), .weights.h5 "
                            "and legacy .h5 (HDF5). \"signature not found\" means that the file is "
                            "not HDF5: a .keras zip that was renamed, a Git LFS pointer, a web "
                            "page, or an empty file.",
                    .decide = "The first bytes of the file: `head -c 100 FILE`.",
                    .command = "shardwright info CHECKPOINT"},
                   {.rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.25,
                    .title = "the file is cut off or empty",
                    .text = "A download or a save that stopped leaves no whole HDF5 file.",
                    .decide = "The size of the file where it was written."}}},
     .loader = kKeras},
    {.id = "keras-class",
     .example = "TypeError: Could not locate class 'NAME'.",
     .patterns = {"could not locate class <name>",
                  "unrecognized keyword arguments passed to <name>", "bad marshal data",
                  "unknown layer: <name>", "could not deserialize class <name>",
                  "error when deserializing class <name>"},
     .meanings = {{{.id = "older-program",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the file names a layer or an option that this program does not have",
                    .text = "A whole model keeps the names of its classes and their options. A "
                            "class of your own has to be given (custom_objects), and another "
                            "version of Keras or Python reads other options. The weights are "
                            "sound: build the model in code and call load_weights.",
                    .decide = "Versions of Keras and Python of both runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kKeras},
    {.id = "orbax-tree",
     .example = "User-provided restore item and on-disk value metadata tree structures do not "
                "match",
     .patterns = {"tree structures do not match", "dict key mismatch; expected keys: <names>",
                  "tree mismatch", "pytree structure does not match",
                  "missing in the checkpoint tree", "missing keys in the target"},
     .meanings = {{{.id = "renamed",
                    .rule = &kMissingKey,
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the tree that the program asks for is not the tree on disk",
                    .text = "Orbax compares whole trees. \"Source\" is the checkpoint and "
                            "\"Target\" the program: keys that are MISSING on one side are a level "
                            "more or less (params, model), another optimizer, or another "
                            "configuration. Restore with the tree of the checkpoint "
                            "(partial_restore, or no item) and map it.",
                    .decide = "The names of the checkpoint against the tree of the program.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kOrbax},
    {.id = kShapes,
     .example = "Requested shape: (4, 8) is not compatible with the stored shape: (8, 8).",
     .patterns = {"requested shape: <current> is not compatible with the stored shape: <saved>",
                  "requested shape <current> is not compatible with the stored shape <saved>",
                  "stored shape: <saved>~requested shape: <current>"},
     .meanings = {{kOtherConfiguration}},
     .loader = kOrbax},
    {.id = "orbax-files",
     .example = "FileNotFoundError: Metadata file (named _METADATA) does not exist at FOLDER",
     .patterns = {"metadata file (named <name>",
                  "no structure could be identified for the "
                  "checkpoint at <name>",
                  "error opening \"zarr\" driver", "error opening \"zarr3\" driver",
                  "manifest.ocdbt", "checkpoint structure file does not exist at <name>",
                  "no valid checkpoints found in <name>", "not an orbax checkpoint root: <name>"},
     .meanings = {{kOrbaxUnfinished, kOrbaxPath}},
     .loader = kOrbax},
    {.id = "orbax-unfinished",
     .example = "Found incomplete checkpoint at FOLDER",
     .patterns = {"commit_success", "found incomplete checkpoint", "incomplete checkpoint",
                  "orbax-checkpoint-tmp", "is not a finalized checkpoint", "not finalized"},
     .meanings = {{kOrbaxUnfinished, kOrbaxPath}},
     .loader = kOrbax},
    {.id = "orbax-mesh",
     .example = "ValueError: cannot reshape array of size 2 into shape (1,64)",
     .patterns = {"number of devices passed to pmapsharding",
                  "available devices are different from the devices used to save",
                  "topology mismatch detected",
                  "cannot reshape array of size <#devices> into shape",
                  "sharding passed to jax.array~devices", "device ids <name> not found",
                  "sharding of ~ is not compatible"},
     .meanings = {{{.id = "other-world-size",
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the checkpoint was saved on another number of devices",
                    .text = "Orbax rebuilds the saved sharding (_sharding) unless it is given "
                            "another one. The tensors are whole on disk: pass shardings of this "
                            "machine, or restore as numpy arrays.",
                    .decide = "The number of devices of both runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = is_number_of_devices,
     .loader = kOrbax},
    {.id = "array-reshape",
     .example = "ValueError: cannot reshape array of size 1048576 into shape (1024,2048)",
     .patterns = {"cannot reshape array of size <#elements> into shape"},
     .meanings = {{{.id = "other-model",
                    .rule = &kShapeMismatch,
                    .weight = 0.5,
                    .title = "an array has another number of elements than its shape asks for",
                    .text = "Half or a quarter as many: values are packed (4 or 2 bits), or a "
                            "dtype of twice the width was read. Some other number: the file is cut "
                            "off, or the shape is of another model.",
                    .decide = "The ratio of the elements to the product of the shape.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = "NumPy"},
    {.id = "orbax-keys",
     .example = "ValueError: Missing 12 keys in structure path (), including: ['opt_state']",
     .patterns = {"structure that does not match the caller template",
                  "structure mismatch: target path",
                  "missing <#keys> keys in structure path~including: <names>",
                  "type mismatch at key path", "length mismatch at key path"},
     .meanings = {{kOrbaxOtherTree}},
     .loader = kOrbax},
    {.id = "orbax-item",
     .example = "Item \"params\" was not found in the checkpoint. Available items: ['default']",
     .patterns = {"item \"<name>\" was not found in the checkpoint",
                  "item <name> was found in the checkpoint, but could not be restored"},
     .meanings = {{{.id = "wrong-item",
                    .wrong = kLoader,
                    .weight = 0.92,
                    .title = "the program asks for another item than was saved",
                    .text =
                        "An Orbax step holds items by name, and the message lists those that "
                        "are there. A save without names is the item \"default\". Ask for one "
                        "of these (args of Composite), or without a name. Nothing is missing on "
                        "disk.",
                    .decide = "The list of available items.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kOrbax},
    {.id = "orbax-no-sharding",
     .example = "sharding passed to deserialization should be specified, concrete. Got None",
     .patterns = {"sharding passed to deserialization should be specified"},
     .meanings = {{{.id = "no-sharding",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the restore was not told where the arrays go",
                    .text = "The abstract tree has no sharding (None) for an array. Give it "
                            "shardings (construct_restore_args, sharding in ShapeDtypeStruct), or "
                            "restore as numpy arrays. The checkpoint is not in question.",
                    .decide = "The shardings in the tree that is passed.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kOrbax},
    {.id = "keras-no-config",
     .example = "Checkpoint does not contain model configuration.",
     .patterns = {"checkpoint does not contain model configuration"},
     .meanings = {{{.id = "weights-alone",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the checkpoint has weights and no architecture",
                    .text = "It was saved with save_weights_only=True. Build the model in code and "
                            "call load_weights.",
                    .decide = "How it was saved.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kKeras},
    {.id = "keras-shards",
     .example = "KeyError: \"Key 'NAME' not found in any of the shards: [...]\"",
     .patterns = {"key <name> not found in any of the shards"},
     .meanings = {{kOtherLayers, kOtherKerasForm}},
     .loader = kKeras},
};

}  // namespace

std::span<const MessageKind> trainer_messages() {
  return kTrainerMessages;
}

}  // namespace shw
