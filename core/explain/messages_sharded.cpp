// Messages of DeepSpeed, torch.distributed.checkpoint and Megatron about ranks, shards or files.
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kDeepSpeed = "DeepSpeed", kDcp = "torch.distributed.checkpoint",
                           kMegatron = "Megatron", kTorch = "torch";

constexpr Interpretation kRanksFilesMissing = {
    .rule = &kMissingFile,
    .wrong = kDisk,
    .weight = 0.65,
    .title = "the files of some ranks are not in the folder",
    .text =
        "Each node kept what its own ranks wrote, a rank did not finish its save, or a copy "
        "was cut off. Gather the folders of all nodes into one.",
    .decide = "How many ranks the files say that they are of, and which are there.",
    .command = "shardwright check CHECKPOINT"};
constexpr Interpretation kTwoSaves = {
    .id = "two-saves",
    .rule = &kWriterMosaic,
    .wrong = kDisk,
    .weight = 0.35,
    .title = "files of two saves lie in one folder",
    .text =
        "A save with another number of ranks (or another parallel layout) went into the same "
        "folder and left files of both.",
    .decide = "The times of the files and the sizes that they record.",
    .command = "shardwright check CHECKPOINT"};
constexpr Interpretation kOtherTopology = {
    .id = "other-world-size",
    .rule = &kTopologyLocked,
    .wrong = kLoader,
    .weight = 0.7,
    .title = "the run that loads has another parallel layout than the one that saved",
    .text =
        "Tensor, pipeline, expert or data-parallel sizes differ, and this optimizer state is "
        "not cut anew at load. Nothing is damaged. Load with the sizes of the save, or load "
        "the weights alone.",
    .decide = "The parallel sizes of both runs.",
    .command = "shardwright info CHECKPOINT"};
constexpr Interpretation kExpertsDisagree = {
    .id = "expert-layout",
    .rule = &kConfigCount,
    .wrong = kLoader,
    .weight = 0.8,
    .title = "the experts of the checkpoint are laid out over other ranks than the run expects",
    .text =
        "The number of experts, or how they are dealt to expert-parallel ranks, is not the "
        "run's. Load with the expert-parallel size of the save.",
    .decide = "The number of experts and the expert-parallel size of both runs.",
    .command = "shardwright check CHECKPOINT"};

constexpr MessageKind kShardedMessages[] = {
    {.id = "rank-files-missing",
     .example = "FOLDER seems a bogus DeepSpeed checkpoint folder: Cannot find FILE* files in "
                "there.",
     .patterns = {"seems a bogus deepspeed checkpoint folder",
                  "missing zero optimizer checkpoint for rank <#rank>",
                  "missing zero-3 checkpoint file for tp_rank=<#tp_rank>, dp_rank=<#dp_rank>",
                  "checkpoint has no model/optimizer rank files",
                  "model/optimizer rank sets do not match", "no fragment files for tp rank <#rank>",
                  "expert checkpoint file not found: layer_<#layer> expert_<#expert>",
                  "the following zero checkpoints paths are missing"},
     .meanings = {{kRanksFilesMissing, kTwoSaves}},
     .loader = kDeepSpeed},
    {.id = "zero-layout",
     .example = "ZeRO-3 model/optimizer tp_degree or dp_degree mismatch: model=(1,4), optim=(1,8)",
     .patterns = {"tp_degree or dp_degree mismatch", "checkpoint model-state file count <#files>",
                  "checkpoint zero file count <#files>", "disagrees across model-state files",
                  "is not divisible by tp_world_size <#tp>",
                  "vocab tensor padded size <#padded>~loaded universal size <#saved>",
                  "dp index <#index> >= dp degree <#degree>"},
     .meanings = {{kOtherTopology, kTwoSaves}},
     .loader = kDeepSpeed},
    {.id = "expert-layout",
     .example = "AutoEP universal checkpoint expert count disagrees with target logical shape",
     .patterns = {"expert count disagrees", "expert shape mismatch", "expert count mismatch",
                  "expert placement disagrees",
                  "num_experts (<#experts>) not divisible by ep_size "
                  "(<#ranks>)",
                  "expert param dim 0 (<#found>) != num_experts (<#experts>)",
                  "incomplete autoep ep-rank tensors"},
     .meanings = {{kExpertsDisagree, kRanksFilesMissing}},
     .loader = kDeepSpeed},
    {.id = "stage3-not-gathered",
     .example =
         "Cannot get 16bit model weights because `stage3_gather_16bit_weights_on_model_save` "
         "in DeepSpeed config is False.",
     .patterns = {"stage3_gather_16bit_weights_on_model_save",
                  "consolidated_16bit_state_dict is only applicable"},
     .meanings = {{{.id = "not-gathered",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the weights are not gathered at this save",
                    .text = "Under ZeRO-3 each rank holds a part. Without the gather no whole "
                            "model is saved: files beside it hold empty tensors or one rank's "
                            "part. The global_stepN folder has all of them: convert it with its "
                            "zero_to_fp32.py or with `shardwright convert`.",
                    .decide = "Whether a global_stepN folder is there.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kDeepSpeed},
    {.id = kShapes,
     .example = "Target tensor size=torch.Size([4]) dtype=torch.float32 does not match source "
                "tensor size=torch.Size([8])",
     .patterns = {"target tensor size=<current>~dtype=~does not match source tensor size=<saved>",
                  "target tensor size=<current>",
                  "optimizer shape (<current> does not match model shape (<saved>"},
     .accepts = [](const ErrorMessage& message) { return !message.saved.empty(); },
     .loader = kDcp},
    {.id = "no-such-shard",
     .example = "ValueError: Could not find shard at 'torch.Size([0, 4])' for FQN: 'NAME'",
     .patterns = {"could not find shard at~for fqn: <name>", "could not find shard at",
                  "could not find fqn: <name>", "cannot lookup <name> since its a shardedtensor"},
     .meanings = {{{.rule = &kStorageDangling,
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "the plan asks for a chunk that is not where it is said to be",
                    .text = "The chunk's offsets in one list of .metadata are not in the other, or "
                            "the state dict was sharded otherwise between planning and writing.",
                    .decide = "Whether the check finds records without bytes.",
                    .command = "shardwright check CHECKPOINT"},
                   kOtherTopology}},
     .loader = kDcp},
    {.id = kMissingKeyForm,
     .example = "RuntimeError: Checkpoint at FOLDER is missing keys: {'NAME'}",
     .patterns = {"is missing keys: <names>", "missing key: <name>"},
     .loader = kDcp},
    {.id = "ranks-disagree",
     .example = "Key(s) present in other ranks but not this one, difference: {'NAME'}",
     .patterns = {"key(s) present in other ranks but not this one, difference: <names>",
                  "key(s) present in other ranks but not this one"},
     .meanings = {{{.id = "ranks-disagree",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the ranks build different state dicts",
                    .text = "A tensor or an object exists on some ranks only (experts, pipeline "
                            "stages, a data loader's state). torch.distributed.checkpoint wants "
                            "equal keys on all. This load or save stopped before a byte was read "
                            "or written.",
                    .decide = "The names in the difference.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kDcp},
    {.id = "non-tensor-value",
     .example = "RuntimeError: Non-tensor value identified at NAME.",
     .patterns = {"non-tensor value identified at <name>"},
     .meanings = {{{.id = "object-for-tensor",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "this reader takes tensors only, and the checkpoint holds an object",
                    .text = "Objects such as a step or a scheduler lie beside the tensors. Leave "
                            "them out of the state dict that is asked for.",
                    .decide = "What the checkpoint has under the name.",
                    .command = "shardwright ls CHECKPOINT NAME"}}},
     .loader = kDcp},
    {.id = "no-dcp-metadata",
     .example = "ValueError: No DCP custom metadata found in safetensors file.",
     .patterns = {"no dcp custom metadata found in safetensors file"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "the safetensors files are whole ones, not DCP's shards",
                    .text = "Consolidation joins shards that torch's HuggingFaceStorageWriter "
                            "wrote: their headers say where each chunk lies. These files have "
                            "none, so there is nothing to join.",
                    .decide = "What the tool takes the folder for.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kDcp},
    {.id = "not-a-zip-save",
     .example = "mmap can only be used with files saved with `torch.save(..., "
                "_use_new_zipfile_serialization=True)`",
     .patterns = {"mmap can only be used with files saved with",
                  "did you mean to use torch.jit.load", "with torchscript archives passed to",
                  "but got a torchscript checkpoint",
                  "expected input to be a checkpoint returned by torch.save"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the file is another of torch's forms than this call reads",
                    .text = "torch has a form before zip (which cannot be mapped), the zip form, "
                            "and TorchScript archives (torch.jit.load). The bytes are not in "
                            "question.",
                    .decide = "What the tool takes the file for.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kTorch},
    {.id = "operand-text",
     .example = "WeightsUnpickler error: Unsupported operand 118",
     .patterns = {"unsupported operand <#first_byte>"},
     .meanings = {{{.id = "not-a-pickle",
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "the file is not a torch file: its first byte begins no pickle",
                    .text = "The number is a byte of the file: 118 is \"v\" (a Git LFS pointer, "
                            "\"version ...\"), 60 is \"<\" (a web page), 0 is a file of zeros or a "
                            "safetensors or GGUF file, 31 is gzip. Loading with "
                            "weights_only=False does not help.",
                    .decide = "The first bytes of the file: `head -c 100 FILE`.",
                    .command = "shardwright info CHECKPOINT"},
                   {.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.2,
                    .title = "the pickle is damaged",
                    .text = "Bytes inside a torch file changed.",
                    .decide = "The same file where it was written.",
                    .command = "--data"}}},
     .loader = kTorch},
    {.id = "not-text",
     .example = "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0",
     .patterns = {"codec can't decode byte"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.45,
                    .title = "a file of bytes is read as text",
                    .text = "A loader opened weights as JSON or text (an index that is a weights "
                            "file, a folder that is another format's), or opened a pickle of "
                            "Python 2.",
                    .decide = "The file that the traceback opens.",
                    .command = "shardwright info CHECKPOINT"},
                   {.rule = &kBadRecord,
                    .wrong = kDisk,
                    .weight = 0.4,
                    .title = "bytes of a pickle or a header are damaged",
                    .text = "A name in a pickle, or the JSON of a header, is not UTF-8 any more.",
                    .decide = "The same file where it was written, compared byte for byte.",
                    .command = "--data"}}}},
    {.id = "megatron-optimizer-size",
     .example = "Number of unpadded elements must be same in current run (64) and checkpoint (48)",
     .patterns = {"number of unpadded elements must be same in current run (<#current_elements>) "
                  "and checkpoint (<#saved_elements>)",
                  "number of unpadded elements in each bucket need to be the same",
                  "could not find parameter group with key",
                  "entries in state dict, but got <#entries>",
                  "does not match any model sharded param", "wrong state_dict format, cannot find"},
     .meanings = {{{.id = "optimizer-order",
                    .rule = &kOptimizerGroups,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the optimizer's buffers are not those of the save",
                    .text = "The distributed optimizer packs parameters into buffers. Another "
                            "model, frozen parameters, other parameter groups or another bucket "
                            "size make the buffers differ. Use the options of the save, or load "
                            "the weights alone (--no-load-optim).",
                    .decide = "The arguments of both runs.",
                    .command = "shardwright info CHECKPOINT"},
                   kOtherTopology}},
     .loader = kMegatron},
    {.id = "megatron-shifted-states",
     .example = "WARNING: optimizer states of this checkpoint are shifted; do not resume with them",
     .patterns = {"states are shifted", "optimizer state may be corrupted",
                  "optimizer states may be corrupted", "fully reshardable optimizer"},
     .meanings = {{{.id = "shifted-states",
                    .rule = &kMasterCast,
                    .wrong = kDisk,
                    .weight = 0.75,
                    .title = "optimizer states were saved shifted against their parameters",
                    .text = "With several buckets in a buffer the offsets count padding that was "
                            "taken out: states behind the first bucket are shifted and their ends "
                            "are zero. Do not resume with them; the weights are good.",
                    .decide = "Whether the float32 masters are their weights.",
                    .command = "shardwright check CHECKPOINT --data"}}},
     .loader = kMegatron},
    {.id = "megatron-grid",
     .example =
         "Global offset (3) must be divisible by local shape (2) for ShardedTensor(key='NAME')",
     .patterns = {"global offset (<#offset>) must be divisible by local shape (<#rows>)",
                  "axis shape (<#rows>) not divisible by axis fragmentation (<#parts>",
                  "global offset dimensions should be equal to global shape dimensions",
                  "local shape together with `prepend_axis_num` dimensions",
                  "uneven sharding not supported", "only regular grid of local tensors"},
     .meanings = {{{.id = "uneven-cut",
                    .rule = &kUnevenShards,
                    .wrong = kLoader,
                    .weight = 0.7,
                    .title = "a tensor is cut into parts that are not equal",
                    .text = "Megatron's sharded tensors lie on a regular grid: the size must "
                            "divide by the number of parts. A vocabulary without padding or a size "
                            "that the tensor-parallel size does not divide gives this. It is "
                            "raised while the plan is made; nothing was read or written.",
                    .decide = "The two numbers in the message.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kMegatron},
};

}  // namespace

std::span<const MessageKind> sharded_messages() {
  return kShardedMessages;
}

}  // namespace shw
