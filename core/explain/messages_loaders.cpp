// Messages of DeepSpeed, FSDP and torch's optimizers.
#include "core/explain/message_kinds.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr Interpretation kOtherDegree = {
    .id = "other-world-size",
    .wrong = kLoader,
    .weight = 0.9,
    .title = "another number of data-parallel ranks than the save had",
    .text =
        "DeepSpeed's ZeRO files hold one rank's partition each and are not cut anew at load. "
        "Nothing is damaged. Load with the number of ranks that saved, convert with "
        "ds_to_universal.py and load with load_universal, or load the weights alone "
        "(load_optimizer_states=False).",
    .decide = "Nothing: the message has both numbers.",
    .command = "shardwright info CHECKPOINT"};

constexpr MessageKind kLoaderMessages[] = {
    {.id = "zero-world-size",
     .example = "The checkpoint being loaded used a DP world size of 4 but the current world size "
                "is 8.",
     .patterns = {"used a dp world size of <#saved_world> but the current world size is "
                  "<#current_world>",
                  "dp world size~<#saved_world>~world size~<#current_world>"},
     .meanings = {{kOtherDegree}}},
    {.id = "sharded-tensor-world",
     .example = "World size at save time was 8, but at load time was 4",
     .patterns = {"world size at save time was <#saved_world>, but at load time was "
                  "<#current_world>",
                  "local rank at save time was <#saved_rank>, but at load time was <#current_rank>",
                  "global rank at save time was <#saved_rank>, but at load time was "
                  "<#current_rank>",
                  "full_state_dict~world size", "does not support loading~different world size",
                  "loaded with a different world size"},
     .meanings = {{{.id = "other-world-size",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "another number of ranks than the save had",
                    .text = "torch.save of a ShardedTensor (FSDP1's local and sharded state dicts) "
                            "keeps one rank's piece and loads on the same rank of a world of the "
                            "same size only. Nothing is damaged: load with the number of ranks "
                            "that saved, and save through torch.distributed.checkpoint, which cuts "
                            "anew.",
                    .decide = "The number of ranks of both runs.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "zero-numels",
     .example = "consumed 255381772 numels out of 255381776 - something is wrong",
     .patterns = {"consumed <#consumed> numels out of <#available>"},
     .meanings = {{{.id = "zero-numels",
                    .rule = &kCoverageGap,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "the parameters do not add up to what the partitions hold",
                    .text = "zero_to_fp32 walked the list of parameters and did not end where the "
                            "flat partitions end: parameters that are tied or frozen and not in "
                            "the list, padding counted otherwise, or optimizer files of another "
                            "save. A difference smaller than twice the number of ranks is padding.",
                    .decide = "The difference of the two numbers: the size of one parameter names "
                              "it."}}}},
    {.id = "no-model-states",
     .example = "assert len(self.ckpt_list) > 0",
     .patterns = {"assert len(self.ckpt_list) > 0"},
     .meanings = {{{.id = "rank-files-missing",
                    .rule = &kMissingFile,
                    .wrong = WrongSide::kEither,
                    .weight = 0.75,
                    .title = "DeepSpeed found no file of model states for this rank",
                    .text = "It looks in FOLDER/TAG for mp_rank_*_model_states.pt, or under ZeRO-3 "
                            "for zero_pp_rank_N_mp_rank_*_model_states.pt of its own rank N. The "
                            "tag or path is wrong, this run has more ranks or another stage than "
                            "the save, or the files are on another node's disk.",
                    .decide = "The names in the tag's folder, on this node.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "DeepSpeed"},
    {.id = "not-zero-file",
     .example = "FILE is not a zero checkpoint",
     .patterns = {"<before>is not a zero checkpoint", "<before>is not a model state checkpoint",
                  "unknown zero stage <#stage>", "empty ds_version in checkpoint",
                  "contains neither 'model' or 'module' keys"},
     .meanings = {{{.id = "other-format",
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "the file is not one of ZeRO's",
                    .text = "DeepSpeed without ZeRO (stage 0) keeps the weights whole in "
                            "mp_rank_00_model_states.pt: there is nothing to put together. Or the "
                            "pattern of names caught a file of another kind.",
                    .decide = "What the tool takes the folder for.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "universal-info",
     .example = "Required universal_checkpoint_info state is missing in checkpoint",
     .patterns = {"universal_checkpoint_info state is missing"},
     .meanings = {{{.id = "universal-info",
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "the run did not save what a universal checkpoint needs",
                    .text = "ds_to_universal.py wants patterns of the model's names that the "
                            "training program (Megatron-DeepSpeed) puts into the checkpoint. "
                            "Plain DeepSpeed and transformers do not: use --inject_missing_state.",
                    .decide = "Which program saved.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "universal-size",
     .example = "Loading FILE full param numel 64 != tensor slice numel 16 * tp_world_size 2",
     .patterns = {"full param numel <#full_elements> != tensor slice numel <#slice_elements> * "
                  "tp_world_size <#tp>",
                  "dst numel <#loaded_elements> != src numel <#saved_elements>"},
     .meanings = {{{.id = "universal-size",
                    .rule = &kShapeMismatch,
                    .weight = 0.7,
                    .title = "a parameter has another size than the universal checkpoint's",
                    .text = "The model that loads cuts the parameter over tensor parallelism "
                            "otherwise than the patterns of the conversion say (replicated, "
                            "averaged, padded vocabulary), or it is another configuration.",
                    .decide = "The parameter's kind in universal_checkpoint_info, and the padded "
                              "vocabulary of both runs.",
                    .command = "--spec SPEC.json"}}}},
    {.id = "narrow-outside",
     .example = "start (1010384896) + length (512) exceeds dimension size (1010384896).",
     .patterns = {"start (<#start>) + length (<#length>) exceeds dimension size (<#dimension>)",
                  "narrow(): length must be non-negative"},
     .meanings = {{{.id = "narrow-outside",
                    .rule = &kLocalSavedAsGlobal,
                    .weight = 0.5,
                    .title = "a slice was asked for beyond the end of what the file holds",
                    .text = "The offset comes from a layout that the tensor does not have: in "
                            "ds_to_universal padding of ZeRO partitions is counted otherwise than "
                            "saved; in a sharded load the tile is one rank's part taken for the "
                            "whole.",
                    .decide = "A start equal to the dimension speaks for padding or an empty part; "
                              "a dimension that is a whole part of start + length for one rank's "
                              "shard."},
                   {.id = "other-world-size",
                    .wrong = kLoader,
                    .weight = 0.35,
                    .title = "another number of ranks than the save had",
                    .text = "Slices were computed for another number of partitions.",
                    .decide = "The number of ranks of both runs.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "optimizer-groups",
     .example = "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group",
     .patterns = {"there are param groups that have zero parameters",
                  "parameter group that doesn't match the size of optimizer's group",
                  "loaded state dict has a different number of parameter groups"},
     .meanings = {{{.id = "optimizer-groups",
                    .rule = &kOptimizerGroups,
                    .weight = 0.8,
                    .title = "the optimizer's parameter groups are others than when it was saved",
                    .text = "torch matches optimizer states to parameters by number. A group that "
                            "is split otherwise (weight decay, frozen layers, LoRA), another order "
                            "or a model with more parameters gives this. Do not force it: states "
                            "would go to other parameters.",
                    .decide = "How many parameters each group has in both runs."}}}},
    {.id = "optimizer-devices",
     .example = "Tensors of the same index must be on the same device and the same dtype except "
                "`step` tensors that can be CPU and float32/64 notwithstanding",
     .patterns = {"tensors of the same index must be on the same device and the same dtype"},
     .meanings = {{{.id = "optimizer-devices",
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "a parameter and its optimizer states differ in device or dtype",
                    .text = "torch steps many parameters at once and wants each with its gradient "
                            "and moments on one device, in one dtype. load_state_dict moves and "
                            "casts the states; an assignment into optimizer.state does not, and a "
                            "model that is moved or cast after the load leaves them behind.",
                    .decide = "Device and dtype of one parameter, its gradient and its "
                              "optimizer.state right before step()."}}},
     .loader = "torch"},
    {.id = "flat-param-key",
     .example = "NAME contains _flat_param. This can happen if the model is not the root module.",
     .patterns = {"<before>contains _flat_param", "<before>contains flat_param"},
     .meanings = {{{.id = "flat-param-key",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "a state dict of FSDP1 holds its flat parameters",
                    .text = "get_state_dict was given a module below the FSDP root, or the state "
                            "dict type is LOCAL_STATE_DICT: the parameters stand in one flat "
                            "vector without their names and shapes. Give it the root module.",
                    .decide = "Which module is wrapped first."}}}},
    {.id = "sharded-state-dict",
     .example = "Tried to load a sharded state dict into a model that is not sharded",
     .patterns = {"tried to~sharded state dict", "tried to~sharded state_dict",
                  "got mixed torch.tensor and dtensor", "found no devicemesh from dtensor args",
                  "expected a dtensor but got", "expects a dtensor but got",
                  "does not have a sharding strategy registered"},
     .meanings = {{{.id = "sharded-state-dict",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "whole tensors meet sharded ones",
                    .text = "One side holds whole tensors, the other DTensors or FSDP shards: a "
                            "consolidated file is loaded into a wrapped model, or the other way "
                            "round. The checkpoint is good: load through "
                            "torch.distributed.checkpoint.state_dict (full_state_dict=True), or "
                            "before the model is wrapped.",
                    .decide = "Whether the checkpoint is one whole file or sharded.",
                    .command = "shardwright info CHECKPOINT"}}}},
    {.id = "shared-memory",
     .example = "Some tensors share memory, this will lead to duplicate memory on disk",
     .patterns = {"some tensors share memory", "the following tensors share memory",
                  "weights trying to be saved contained shared tensors"},
     .meanings = {{{.id = "shared-memory",
                    .rule = &kTiedWeights,
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "tied tensors were to be saved one by one",
                    .text = "safetensors does not save two names of one memory. Nothing was "
                            "written. Save with save_model or save_pretrained, which keep one of "
                            "the names, and tie them again at load.",
                    .decide = "The names in the message: as a rule the embedding and the output "
                              "layer."}}}},
    {.id = "checkpoint-exception",
     .example = "CheckpointException ranks:dict_keys([0, 1])",
     .patterns = {"checkpointexception ranks:"},
     .meanings = {{{.id = "details-missing",
                    .weight = 0.2,
                    .title = "ranks failed, and this line does not say why",
                    .text = "torch.distributed.checkpoint puts the traceback of every rank below "
                            "this line. Paste the last line of one of them.",
                    .decide = "The lines that follow \"(RANK 0)\".",
                    .command = "shardwright check CHECKPOINT"}}},
     .certainty = MessageCertainty::kThatItFailed},
    {.id = "group-values-differ",
     .example = "All the parameters in the same parameter group should have the same saved "
                "param_group value. But NAME is 0.001 while other(s) is 0.0003.",
     .patterns = {"should have the same saved param_group value. but <name>",
                  "should have the same saved param_group value",
                  "optimizer param group key <name> not found in checkpoint"},
     .meanings = {{{.id = "optimizer-groups",
                    .rule = &kOptimizerGroups,
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "parameters that are one group now were in groups with other settings",
                    .text = "torch.distributed.checkpoint saves lr, weight_decay and the like per "
                            "parameter. The run that loads puts parameters together that the save "
                            "kept apart, or knows a setting that the save had not. The moments are "
                            "good: build the groups as the save did, then change their settings.",
                    .decide = "The groups of both runs, and torch's versions.",
                    .command = "shardwright ls CHECKPOINT param_groups"}}}},
    {.id = "universal-not-made",
     .example = "Invalid for universal checkpoint: /ckpt/latest_universal does not exist",
     .patterns = {"invalid for universal checkpoint: <name>", "use universal checkpointing",
                  "elastic checkpointing is deprecated",
                  "parameter-alignment layout does not match"},
     .meanings = {{{.id = "not-converted",
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "this form can be loaded only after a conversion to a universal "
                             "checkpoint, or with the options of the save",
                    .text = "Run ds_to_universal.py on the global_stepN folder with "
                            "global_stepN_universal as its output; it writes latest_universal "
                            "beside that. Then load with load_universal. Or resume with the "
                            "configuration that saved. Nothing is damaged.",
                    .decide = "Whether a folder with _universal is there.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "DeepSpeed"},
    {.id = "rank-count",
     .example = "checkpoint count 4 is different from saved mp_world_size 8",
     .patterns = {"checkpoint count <#found_files> is different from saved mp_world_size "
                  "<#saved_ranks>"},
     .meanings = {{{.rule = &kMissingFile,
                    .wrong = kDisk,
                    .weight = 0.85,
                    .title = "there are not as many files as the save had tensor-parallel ranks",
                    .text = "The first number counts the files that were given, the second is what "
                            "they say of themselves. Files of some ranks are missing, or the list "
                            "of files is not whole.",
                    .decide = "Which mp_rank_NN files are there.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = "DeepSpeed"},
    {.id = "expert-file-broken",
     .example = "Expert checkpoint file is corrupt: key 'NAME' not found in FILE",
     .patterns = {"expert checkpoint file is corrupt: key <name> not found in",
                  "expert checkpoint file is corrupt"},
     .meanings = {{{.id = "expert-layout",
                    .rule = &kMissingKey,
                    .wrong = kDisk,
                    .weight = 0.7,
                    .title = "an expert's file holds another expert or another form of it",
                    .text = "DeepSpeed writes one file per expert and looks for names with the "
                            "expert's number. A file was renamed or copied from another run, or "
                            "the experts were saved under the local numbers of their ranks.",
                    .decide = "The names in the file against its own number.",
                    .command = "shardwright ls CHECKPOINT experts"}}},
     .loader = "DeepSpeed"},
    {.id = "partition-elements",
     .example = "AssertionError: Number of elements do not match: 1024 != 4096",
     .patterns = {"number of elements do not match: <#given_elements> != <#model_elements>"},
     .meanings = {{{.id = "one-ranks-part",
                    .rule = &kShapeMismatch,
                    .wrong = kLoader,
                    .weight = 0.6,
                    .title = "a tensor given to ZeRO-3 has another size than the parameter or its "
                             "partition",
                    .text = "The first number is what was given, the second what ZeRO-3 holds: the "
                            "whole parameter or one rank's partition. A whole tensor was given "
                            "where a partition is expected (or the other way round), or it is of "
                            "another model.",
                    .decide = "The ratio of the two numbers: the number of ranks speaks for it.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = "DeepSpeed"},
    {.id = "empty-state-dict",
     .example = "The option indicates that model state_dict is required to save or load, but model "
                "state_dict is empty.",
     .patterns = {"model state_dict is empty", "optim state_dict is empty"},
     .meanings = {{{.id = "empty-state-dict",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the state dict that the program passed is empty",
                    .text = "Nothing was read from the checkpoint into it: the file was loaded on "
                            "rank 0 alone without broadcast_from_rank0, the weights lie one level "
                            "deeper (under model, state_dict), or a pipeline stage has no layers.",
                    .decide = "The keys that torch.load gave on this rank.",
                    .command = "shardwright ls CHECKPOINT"}}}},
    {.id = "name-not-in-model",
     .example = "An unexpected key, NAME, exists. FQN is NAME",
     .patterns = {"an unexpected key, <name>, exists"},
     .meanings = {{{.id = "renamed",
                    .rule = &kUnexpectedKey,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the same parameter has another prefix in the state dict than in the "
                             "model",
                    .text = "The first name is the state dict's, the one behind FQN is the model's "
                            "with wrappers taken out. A wrapper (DDP, torch.compile, a class of "
                            "your own) is on one side only: pass the inner module, or rename.",
                    .decide = "The difference of the two names.",
                    .command = "shardwright ls CHECKPOINT NAME"}}}},
};

}  // namespace

std::span<const MessageKind> loader_messages() {
  return kLoaderMessages;
}

}  // namespace shw
