// Messages of Megatron, its optimizers and savers.
#include <algorithm>

#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kMegatronItself = "Megatron";

constexpr Interpretation kFlattened = {
    .id = "flattened-optimizer",
    .wrong = kLoader,
    .weight = 0.85,
    .title = "the optimizer was saved flattened, and this Megatron does not read that",
    .text =
        "Distributed optimizers of Megatron before 0.14 (and Megatron-FSDP) keep pieces of a "
        "flattened tensor (flattened_range); the shape that they belong to stands in the "
        "checkpoint only if it was saved so. Load with the version that saved and save anew "
        "with --dist-ckpt-optim-fully-reshardable, or load the weights alone "
        "(--no-load-optim).",
    .decide = "The Megatron version that saved, and whether the checkpoint has 1-D tiles.",
    .command = "shardwright info CHECKPOINT"};

constexpr Interpretation kShardObjects = {
    .id = "extra-state-missing",
    .rule = &kExtraState,
    .weight = 0.6,
    .title = "objects of some layers are asked for by no rank",
    .text =
        "Megatron wants each object (as a rule TransformerEngine's _extra_state, one a layer) "
        "claimed by exactly one rank, and some layers have none: attention without that "
        "state, or layers cut over the pipeline otherwise than the model says. The weights "
        "are not in question.",
    .decide =
        "The shards that the message lists: if all are _extra_state, load with "
        "validate_access_integrity off or with the TransformerEngine of the save.",
    .command = "shardwright ls CHECKPOINT _extra_state"};

// Two 4-bit values share a byte: the last axis is half as long.
bool is_packed_in_file(const ErrorMessage& message) {
  const Extents &saved = message.saved, &current = message.current;
  return saved.size() == current.size() && !saved.empty() && saved.back() * 2 == current.back() &&
         std::equal(saved.begin(), saved.end() - 1, current.begin());
}

constexpr MessageKind kMegatronMessages[] = {
    {.id = "megatron-object-twice",
     .example = "CheckpointingException: Duplicate ShardedObject keys: ['rng_state']",
     .patterns = {"duplicate shardedobject keys"},
     .meanings = {{{.id = "two-writers",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "two ranks give an object the same key",
                    .text = "Each ShardedObject has one writer: the ranks that hold copies need "
                            "other replica ids, and parts need other offsets. Megatron checks it "
                            "before it writes or reads, so that no file is at fault. A module of "
                            "your own, or a parallel size that its sharded_state_dict leaves out, "
                            "is the usual reason.",
                    .decide = "Which module gives the keys in the message.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "Megatron"},
    {.id = kShapes,
     .example = "Shape mismatch for megatron param NAME: Expected shape: torch.Size([4096, 5376]) "
                "Got shape: torch.Size([4096, 2688])",
     .patterns = {"shape mismatch for megatron param <name> expected shape: <current> got shape: "
                  "<saved>"},
     .meanings = {{{.id = "quantised",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the Hugging Face file is packed in 4 bits, and the bridge takes "
                             "plain weights",
                    .text = "The last axis is half as long: NVFP4 and MXFP4 keep two values in a "
                            "byte. Nothing is damaged. Import the 16-bit model, or decode this "
                            "one: `shardwright convert CHECKPOINT --to safetensors --dequantise "
                            "--out NEW`.",
                    .decide = "dtype U8 and scales beside the tensor that HF mapping names.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = is_packed_in_file,
     .loader = "Megatron-Bridge"},
    {.id = "missing-objects",
     .example = "Invalid access pattern: 36 ShardedObject are missing.",
     .patterns = {"invalid access pattern: <#objects> shardedobject are missing",
                  "duplicate shardedobject keys"},
     .meanings = {{kShardObjects}}},
    {.id = "access-pattern",
     .example = "Invalid access pattern for ShardedTensor(key='NAME', ...)",
     .patterns = {"invalid access pattern for shardedtensor(key=<name>", "invalid sharding pattern",
                  "duplicate shard ids loaded by different ranks",
                  "missing shards after fully parallel loading",
                  "missing object shards after fully parallel loading",
                  "missing loaded item shard"},
     .meanings = {{{.id = "access-pattern",
                    .rule = &kWriterMosaic,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the ranks that load do not ask for every part exactly once",
                    .text = "Before it reads, Megatron counts which rank claims which part: some "
                            "part is claimed twice or never. Parallel sizes, replica ids or the "
                            "layers of a pipeline stage are wrong in the run that loads (or "
                            "saves: then nothing was written). The checkpoint has not been looked "
                            "at yet.",
                    .decide = "The counts in the message: 2 is two ranks with one replica id, 0 a "
                              "part that no rank has."}}}},
    {.id = "nd-flattened",
     .example = "Cannot find global shape metadata for N-D flattened tensor "
                "ShardedTensor(key='NAME', ...)",
     .patterns = {"cannot find global shape metadata for n-d flattened tensor~shardedtensor("
                  "key=<name>",
                  "cannot find global shape metadata for n-d flattened tensor",
                  "keyerror: 'nd_reformulated_orig_global_shape'",
                  "flattened_range is not supported", "nd_reformulated_orig_global_shape"},
     .meanings = {{kFlattened}}},
    {.id = "optimizer-sharding",
     .example = "(TP, PP) mismatch after resume ...: not supported for DistributedOptimizer with "
                "sharding type fully_sharded_model_space",
     .patterns = {"not supported for distributedoptimizer with sharding type",
                  "is not supported for dp_zero_gather_scatter checkpoints"},
     .meanings = {{{.id = "optimizer-sharding",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title =
                        "the optimizer was saved in a form that is bound to its parallel sizes",
                    .text = "The weights can be loaded with other tensor and pipeline sizes, this "
                            "optimizer state cannot. Load with the sizes of the save and save anew "
                            "with --dist-ckpt-optim-fully-reshardable, or load the weights alone "
                            "(--no-load-optim).",
                    .decide = "Tensor and pipeline sizes of both runs.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "dist-ckpt-flag",
     .example = "Detected load from a distributed checkpoint, but neither --use-dist-ckpt nor "
                "--auto-detect-ckpt-format is set.",
     .patterns = {"detected load from a distributed checkpoint, but neither"},
     .meanings = {{{.id = "dist-ckpt-flag",
                    .wrong = kLoader,
                    .weight = 0.97,
                    .title = "the run that loads expects Megatron's older format",
                    .text = "The checkpoint is good. Start with --auto-detect-ckpt-format (or "
                            "--use-dist-ckpt).",
                    .decide = "Nothing: the message says it.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "checkpoint-args",
     .example = "num_layers value from checkpoint (32) is not equal to the input argument value "
                "(40).",
     .patterns = {"<before>value from checkpoint (<#saved>) is not equal to the input argument "
                  "value (<#current>)",
                  "<before>value from checkpoint (~) is not equal to the input argument value"},
     .meanings = {{{.id = "other-model",
                    .rule = &kShapeMismatch,
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the run was started with another configuration than the checkpoint's",
                    .text = "Megatron compares its arguments with those that it saved. The "
                            "checkpoint is good; use its arguments (--use-checkpoint-args) or the "
                            "checkpoint of this model.",
                    .decide = "Which of the two values is meant.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "local-shape",
     .example =
         "Data shape should match `local_shape` attribute for ShardedTensor(key='NAME', ...)",
     .patterns = {"mismatch between param shape <current> and local tensor shape <saved>",
                  "data shape should match `local_shape` attribute for shardedtensor(key=<name>",
                  "data shape should match `local_shape` attribute",
                  "data dtype should match `dtype` attribute"},
     .meanings = {{{.id = "local-shape",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the program describes a tensor otherwise than it is",
                    .text = "The sharded state dict says another shape (or dtype) than the tensor "
                            "has in memory. This is before anything is read or written: the "
                            "checkpoint is not in question.",
                    .decide = "The local_shape in the message against the parameter's."}}}},
    {.id = "state-is-no-dtensor",
     .example = "'Tensor' object has no attribute 'to_local'",
     .patterns = {"'tensor' object has no attribute 'to_local'",
                  "'parameter' object has no attribute 'to_local'",
                  "'tensor' object has no attribute 'placements'",
                  "'tensor' object has no attribute 'device_mesh'"},
     .meanings = {{{.rule = &kLocalSavedAsGlobal,
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "optimizer states are plain tensors",
                    .text = "Code that expects DTensors met a plain one: the optimizer keeps its "
                            "states as local tensors (TransformerEngine between #2698 and #2795). "
                            "If this happened while saving, nothing was written; checkpoints that "
                            "the same optimizer saved through another path hold one rank's shard "
                            "of each state.",
                    .decide = "Whether an earlier checkpoint of this run has states shorter than "
                              "their parameters."},
                   {.rule = &kGluSplitLocal,
                    .wrong = kDisk,
                    .weight = 0.3,
                    .title = "a patched saver would split them in the wrong coordinates",
                    .text = "With only a type check in its place (Megatron-LM #4245) the save goes "
                            "through and cuts gated weights at half of the local shard.",
                    .decide = "Whether the run that saved carried that patch."}}}},
    {.id = "glu-odd-rows",
     .example = "SWiGLU weights must have an even size along the shard axis 0, got 13307",
     .patterns = {"weights must have an even size along the shard axis <#axis>, got <#rows>"},
     .meanings = {{{.id = "glu-odd-rows",
                    .rule = &kGluSplitLocal,
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the saver halves a gated weight by what one rank holds",
                    .text = "Gate and up are to be split at half of the whole weight, not of one "
                            "rank's rows; this rank has an odd number of them, so it stopped. "
                            "Nothing was written. Ranks with even rows do not stop: earlier saves "
                            "of this code may have lost rows in silence (Megatron-LM #4423).",
                    .decide = "Whether earlier checkpoints of this run have states of _w and _v "
                              "that are too short; `shardwright explain glu-split-local --rows "
                              "4,8` foresees a split."}}}},
    {.id = "fused-sections",
     .example = "Fused parameter is 64 wide along dim 0, but the requested sections sum to 128",
     .patterns = {"fused parameter is <#rows> wide along dim <#dim>, but the requested sections "
                  "sum to <#sections>"},
     .meanings = {{{.id = "fused-sections",
                    .rule = &kShapeMismatch,
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "a fused parameter is cut by sizes that are not its own",
                    .text = "The sections (query, key, value, ... of one weight) are counted for "
                            "the whole tensor and the tensor is one tensor-parallel rank's, or the "
                            "other way round. Nothing was written.",
                    .decide = "The ratio of the two numbers: the tensor-parallel size speaks for "
                              "it."}}}},
    {.id = "no-optimizer-in-file",
     .example = "Unable to load optimizer from checkpoint FILE. Specify --no-load-optim",
     .patterns = {"unable to load optimizer from checkpoint <name>",
                  "unable to load rng state from checkpoint <name>"},
     .meanings = {{{.id = "no-optimizer-state",
                    .rule = &kHalfPair,
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the checkpoint does not hold what the run wants to resume with",
                    .text = "A key of the optimizer or of the random numbers is not in the file: "
                            "it was saved with --no-save-optim or --no-save-rng, converted from "
                            "another form, or is a release of weights. Start with --finetune (or "
                            "--no-load-optim --no-load-rng); the moments then begin anew.",
                    .decide = "Whether the checkpoint has optimizer entries.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kMegatronItself},
    {.id = "schedule-differs",
     .example = "OptimizerParamScheduler: class input value 1e-05 and checkpointvalue 3e-05 for "
                "learning rate do not match",
     .patterns = {"optimizerparamscheduler: class input value"},
     .meanings = {{{.id = "schedule-differs",
                    .wrong = kLoader,
                    .weight = 0.95,
                    .title = "the run was started with another schedule than the checkpoint's",
                    .text = "The first value is the run's argument, the second the checkpoint's. "
                            "Choose: --override-opt-param-scheduler takes the arguments, "
                            "--use-checkpoint-opt-param-scheduler the checkpoint. Nothing is "
                            "damaged.",
                    .decide = "Which of the two values is meant.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kMegatronItself},
    {.id = "format-option",
     .example = "Checkpoint format 'torch_dist' from config differs from inferred format "
                "'fsdp_dtensor' for FOLDER.",
     .patterns = {"from config differs from inferred format <name>",
                  "does not support huggingface-format directories",
                  "legacy checkpoint missing 'args' field",
                  "from distributed checkpoint using legacy", "checkpoint versions do not match"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "the folder is of another form than the run was told",
                    .text = "Megatron has a legacy form (mp_rank_NN with args in each file), "
                            "torch_dist, fsdp_dtensor, and bridges read Hugging Face folders: each "
                            "has its option. The checkpoint is not in question; set the format "
                            "that it has, or convert it.",
                    .decide = "What the tool takes the folder for.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kMegatronItself},
    {.id = "unknown-module-names",
     .example = "Unexpected expert key format: NAME",
     .patterns = {"unexpected expert key format: <name>",
                  "failed to parse expert index from key: <name>",
                  "invalid key <name> in megatron state_dict",
                  "failed to convert layer name [<name>", "no mapping found for <name>"},
     .meanings = {{{.id = "renamed",
                    .rule = &kUnexpectedKey,
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "the converter does not know this form of the names",
                    .text = "Megatron names the same layers in several ways (experts one by one, "
                            "grouped or stacked; a vision tower beside the decoder), by the layer "
                            "spec of the run. This code expects another one. The tensors are not "
                            "in question.",
                    .decide = "Which names of one layer the checkpoint has.",
                    .command = "shardwright ls CHECKPOINT NAME"}}},
     .loader = kMegatronItself},
    {.id = "list-lengths",
     .example = "Cannot merge two lists with different lengths (2 and 1, encountered at level "
                "optimizer)",
     .patterns = {"cannot merge two lists with different lengths (<#first> and <#second>, "
                  "encountered at level <name>",
                  "cannot merge two lists with different lengths",
                  "expected <#run_entries> entries in state dict, but got <#saved_entries>"},
     .meanings = {{{.id = "optimizer-groups",
                    .rule = &kOptimizerGroups,
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "a list of the checkpoint has another length than the run's",
                    .text = "Parameter groups, chained optimizers (dense and experts) and model "
                            "chunks of a virtual pipeline are lists. The run builds another number "
                            "of them than the save did. Use the options of the save, or load the "
                            "weights alone (--no-load-optim).",
                    .decide = "The level that the message names, and the options of both runs.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kMegatronItself},
};

}  // namespace

std::span<const MessageKind> megatron_messages() {
  return kMegatronMessages;
}

}  // namespace shw
