// Messages of torch about incompatible tensors, and of models about weights that are uninitialised
// or invalid.
#include <algorithm>

#include "core/explain/message_kinds.h"
#include "core/rules/names/name_rules.h"
#include "core/rules/reference/content_rules.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

constexpr std::string_view kTorchItself = "torch";

constexpr Interpretation kOneRanksPart = {
    .id = "one-ranks-part",
    .rule = &kLocalSavedAsGlobal,
    .wrong = kDisk,
    .weight = 0.4,
    .title = "one side is one rank's part, the other the whole tensor",
    .text =
        "Where one size is a whole multiple of the other: a sharded tensor was saved by one rank "
        "without a gather, or a whole tensor is copied into one rank's shard.",
    .decide = "The ratio of the two sizes: the tensor-parallel or FSDP size speaks for it."};
constexpr Interpretation kOtherSizes = {
    .id = "other-model",
    .rule = &kShapeMismatch,
    .weight = 0.4,
    .title = "the two tensors are of models with different sizes",
    .text =
        "A copy, a merge or a sum of two tensors needs equal shapes. A vocabulary that was "
        "resized by a few rows, or another hidden size, makes them differ.",
    .decide = "Which tensor it is: the traceback names the line, the checkpoint the shape.",
    .command = "shardwright ls CHECKPOINT"};
constexpr Interpretation kOtherOptimizerOrder = {
    .id = "optimizer-order",
    .rule = &kOptimizerGroups,
    .wrong = kLoader,
    .weight = 0.25,
    .title = "optimizer states went to another parameter",
    .text =
        "torch matches the states of optimizer.pt to parameters by number. If this is raised "
        "in optimizer.step(), the parameters stand in another order than at the save.",
    .decide = "Whether the traceback goes through optimizer.step()."};

// True if neither size is a multiple of the other, so that they cannot be one rank's part and the
// whole.
bool are_no_multiples(const ErrorMessage& message) {
  std::int64_t target = 0, source = 0;
  for (const auto& [key, number] : message.numbers) {
    if (key == "target") target = number;
    if (key == "source") source = number;
  }
  return target > 0 && source > 0 && target % source != 0 && source % target != 0;
}

// CLIP encodes 77 tokens per prompt.
bool is_of_clip_length(const ErrorMessage& message) {
  for (const auto& [key, number] : message.numbers) {
    if (key == "rows1") return number > 0 && number % 77 == 0;
  }
  return false;
}

bool is_one_empty(const ErrorMessage& message) {
  return std::any_of(message.numbers.begin(), message.numbers.end(), [](const auto& number) {
    return (number.first == "target" || number.first == "source") && number.second == 0;
  });
}

constexpr Interpretation kEmptyUnderZero3 = {
    .id = "zero-placeholder",
    .rule = &kEmptyTensors,
    .weight = 0.85,
    .title = "one side is empty: ZeRO-3 holds the parameter in parts",
    .text =
        "Under ZeRO-3 a parameter outside its module is a tensor without an element. Merge, load "
        "or add inside deepspeed.zero.GatheredParameters, or without ZeRO-3. Where the empty "
        "tensor came out of a file, that save had no gather and holds no weights.",
    .decide = "Whether the file has tensors of shape [0].",
    .command = "shardwright check CHECKPOINT"};

constexpr MessageKind kTensorMessages[] = {
    {.id = "size-of-tensors",
     .example = "The size of tensor a (0) must match the size of tensor b (4096) at non-singleton "
                "dimension 1",
     .patterns = {"the size of tensor a (<#target>) must match the size of tensor b (<#source>) at "
                  "non-singleton dimension <#dim>",
                  "the expanded size of the tensor (<#target>) must match the existing size "
                  "(<#source>) at non-singleton dimension <#dim>"},
     .meanings = {{kEmptyUnderZero3}},
     .accepts = is_one_empty,
     .loader = kTorchItself},
    {.id = "size-of-tensors",
     .example = "The size of tensor a (32000) must match the size of tensor b (32002) at "
                "non-singleton dimension 0",
     .patterns = {"the size of tensor a (<#target>) must match the size of tensor b (<#source>) at "
                  "non-singleton dimension <#dim>",
                  "the expanded size of the tensor (<#target>) must match the existing size "
                  "(<#source>) at non-singleton dimension <#dim>"},
     .meanings = {{kOtherSizes, kOtherOptimizerOrder}},
     .accepts = are_no_multiples,
     .loader = kTorchItself},
    {.id = "size-of-tensors",
     .example = "The size of tensor a (4096) must match the size of tensor b (2048) at "
                "non-singleton dimension 0",
     .patterns = {"the size of tensor a (<#target>) must match the size of tensor b (<#source>) at "
                  "non-singleton dimension <#dim>",
                  "the expanded size of the tensor (<#target>) must match the existing size "
                  "(<#source>) at non-singleton dimension <#dim>",
                  "the expanded size of the tensor (<#target>) must match",
                  "doesn't match the broadcast shape", "inconsistent tensor size, expected tensor"},
     .meanings = {{kOneRanksPart, kOtherSizes, kOtherOptimizerOrder}},
     .loader = kTorchItself},
    {.id = "storage-too-small",
     .example = "Trying to resize storage that is not resizable",
     .patterns = {"trying to resize storage that is not resizable",
                  "storage has wrong byte size: expected <#expected> got <#found>",
                  "storage has wrong size: expected <#expected> got <#found>"},
     .meanings = {{{.id = "freed-storage",
                    .rule = &kStorageDangling,
                    .wrong = kDisk,
                    .weight = 0.6,
                    .title = "a tensor in the file is larger than the bytes stored for it",
                    .text = "FSDP1 frees the storage of a parameter that other ranks hold; "
                            "state_dict() outside of a full or sharded state dict type then saves "
                            "shapes without their bytes. Those values are not in this file: look "
                            "for the sharded checkpoint of the same step.",
                    .decide = "Whether most tensors of the file are so.",
                    .command = "shardwright check CHECKPOINT"},
                   {.id = "short-file",
                    .rule = &kShortFile,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the file was damaged or written by another version",
                    .text = "The description of a tensor and the length of its record do not "
                            "agree.",
                    .decide = "The size of the file where it was written."}}},
     .loader = kTorchItself},
    {.id = "concatenate-zero-dim",
     .example = "zero-dimensional tensor (at position 0) cannot be concatenated",
     .patterns = {"zero-dimensional tensor (at position <#position>) cannot be concatenated",
                  "zero-dimensional arrays cannot be concatenated"},
     .meanings = {{{.id = "replicated-concatenated",
                    .rule = &kAxisGrown,
                    .wrong = kLoader,
                    .weight = 0.85,
                    .title = "a merge of rank files puts replicated tensors behind one another",
                    .text = "The merger takes every plain tensor for a shard. Scalars and buffers "
                            "are replicated: each rank holds an equal copy, and one copy is to be "
                            "kept. The rank files are sound. Buffers with one or more dimensions "
                            "do not stop it: they come out N times too long, so a result that an "
                            "earlier run of this merger wrote is wrong.",
                    .decide = "Whether tensors of an earlier result are the rank count times too "
                              "long.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kTorchItself},
    {.id = "concatenate-sizes",
     .example = "Sizes of tensors must match except in dimension 0. Expected size 28 but got size "
                "29 for tensor number 1 in the list.",
     .patterns = {"sizes of tensors must match except in dimension <#dim>. expected size "
                  "<#expected> but got size <#found> for tensor number <#number>",
                  "sizes of tensors must match except in dimension <#dim>",
                  "all the input array dimensions~must match exactly",
                  "stack expects each tensor to be equal size"},
     .meanings = {{{.id = "merge-axis",
                    .wrong = kLoader,
                    .weight = 0.45,
                    .title = "a merge joins shards along the wrong axis",
                    .text = "Row-parallel and column-parallel layers are cut along different axes, "
                            "and the last shard may be shorter. The shards are joined along one "
                            "axis and differ in another.",
                    .decide = "The placements of the tensor: which axis is cut.",
                    .command = "shardwright ls CHECKPOINT"},
                   {.rule = &kWriterMosaic,
                    .wrong = kDisk,
                    .weight = 0.35,
                    .title = "the rank files are of two different runs",
                    .text = "Files of a save with other sizes or another number of ranks were left "
                            "in the same folder.",
                    .decide = "The times of the files and how many ranks they say."}}},
     .loader = kTorchItself},
    {.id = "text-encoding-width",
     .example = "mat1 and mat2 shapes cannot be multiplied (77x2048 and 768x320)",
     .patterns = {"mat1 and mat2 shapes cannot be multiplied (<#rows1>x<#columns1> and "
                  "<#rows2>x<#columns2>)"},
     .meanings = {{{.id = "other-base-model",
                    .rule = &kShapeMismatch,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "text encoder and diffusion model are of two families",
                    .text = "77 tokens is the length of CLIP's text. The first matrix is the "
                            "encoded prompt, the second a weight that takes it. The widths: 768 in "
                            "Stable Diffusion 1, 1024 in 2, 2048 in XL, 4096 for T5. Model, text "
                            "encoder, LoRA and ControlNet must be of one family.",
                    .decide = "The second number of the first pair against that list.",
                    .command = "shardwright info CHECKPOINT"}}},
     .accepts = is_of_clip_length,
     .loader = "a diffusion program"},
    {.id = "matrix-shapes",
     .example = "mat1 and mat2 shapes cannot be multiplied (1x4096 and 2048x1024)",
     .patterns = {"mat1 and mat2 shapes cannot be multiplied (<#rows1>x<#columns1> and "
                  "<#rows2>x<#columns2>)",
                  "mat1 and mat2 shapes cannot be multiplied",
                  "expected size for first two dimensions of batch2 tensor",
                  "split_with_sizes expects split_sizes to sum exactly to <#dimension>"},
     .meanings = {{{.id = "wrong-weight",
                    .rule = &kShapeMismatch,
                    .weight = 0.5,
                    .title = "a weight has another shape than the layer before it",
                    .text = "The load went through and the model cannot run. A weight is "
                            "transposed, is one rank's part, is still packed (4-bit weights), or "
                            "was loaded with ignore_mismatched_sizes.",
                    .decide = "The layer in the traceback, and the shape of its weight.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kTorchItself},
    {.id = "moment-dtype",
     .example = "RuntimeError: expected dtype float for `end` but got dtype c10::BFloat16",
     .patterns = {"for `end` but got dtype"},
     .meanings = {{{.id = "moment-dtype",
                    .wrong = kLoader,
                    .weight = 0.8,
                    .title = "the optimizer's moments have another dtype than the gradients",
                    .text = "Adam mixes moment (the first dtype) and gradient (the second) in one "
                            "lerp, which takes one dtype only. The bytes are sound. Call "
                            "optimizer.load_state_dict when the model has its final dtype: it "
                            "casts moments to the parameter's. A model cast after that, or states "
                            "that were assigned by hand, differ.",
                    .decide = "dtype of exp_avg in the checkpoint against the parameter's in the "
                              "run.",
                    .command = "shardwright ls CHECKPOINT exp_avg"}}},
     .loader = kTorchItself},
    {.id = "dtype-mix",
     .example = "mat1 and mat2 must have the same dtype, but got Half and Float",
     .patterns = {"mat1 and mat2 must have the same dtype", "expected scalar type <name> but found",
                  "expected both dtypes to be the same", "cannot set property 'dtype'",
                  "input type and weight type should be the same",
                  "_amp_foreach_non_finite_check_and_unscale_cuda"},
     .meanings = {{{.id = "dtype-mix",
                    .rule = &kDtypeMismatch,
                    .weight = 0.6,
                    .title = "some weights have another dtype than the rest",
                    .text = "The load went through. Part of the checkpoint is in another dtype "
                            "(norms or routers in float32, an adapter in float32), or the model "
                            "was built in another one than its input. It needs torch_dtype (or "
                            "dtype) at the load, or autocast.",
                    .decide = "The dtypes in the checkpoint.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = kTorchItself},
    {.id = "meta-tensor",
     .example = "NotImplementedError: Cannot copy out of meta tensor; no data!",
     .patterns = {"cannot copy out of meta tensor", "is not on the expected device meta",
                  "<before>is on the meta device", "parameters are on the meta device"},
     .meanings = {{{.id = "not-filled",
                    .rule = &kMissingKey,
                    .weight = 0.65,
                    .title = "the checkpoint did not fill some parameters",
                    .text = "The model was built without memory (on the meta device) and the load "
                            "left parameters as they were: their names are not in the checkpoint, "
                            "a shard is missing, or a tied weight was not tied again.",
                    .decide = "The warning before it that lists missing names; the names in the "
                              "checkpoint.",
                    .command = "--spec SPEC.json"}}},
     .loader = kTorchItself},
    {.id = "not-finite",
     .example = "probability tensor contains either `inf`, `nan` or element < 0",
     .patterns = {"probability tensor contains either", "loss is nan", "found nan in",
                  "nans detected in", "nan detected in", "found inf in", "model output is nan"},
     .meanings = {{{.id = "not-finite",
                    .rule = &kValueStatistics,
                    .wrong = kDisk,
                    .weight = 0.45,
                    .title = "weights of the checkpoint are NaN or infinite",
                    .text = "The run diverged before the save, or bytes of a file are damaged.",
                    .decide = "How many elements are NaN or infinite, and in which tensors.",
                    .command = "shardwright stats CHECKPOINT"},
                   {.id = "wrong-weight",
                    .rule = &kShapeMismatch,
                    .weight = 0.3,
                    .title = "weights are finite but wrong",
                    .text = "Parameters that were not filled, scales that were not applied or "
                            "float16 in place of bfloat16 overflow in the model.",
                    .decide = "Whether every value of the checkpoint is finite.",
                    .command = "--data"}}}},
    {.id = "index-outside",
     .example = "IndexError: index out of range in self",
     .patterns = {"index out of range in self",
                  "index <#index> is out of bounds for dimension <#dim> with size <#size>",
                  "srcindex < srcselectdimsize", "padding_idx must be within num_embeddings"},
     .meanings = {{{.id = "vocabulary",
                    .rule = &kTokenIds,
                    .weight = 0.6,
                    .title = "a token number is beyond the rows of the embedding",
                    .text = "The tokenizer has more tokens than the embedding that was loaded has "
                            "rows: tokens were added and the checkpoint is of before the resize, "
                            "or the embedding is one rank's part of the vocabulary. "
                            "pad_token_id in config.json may be such a number too.",
                    .decide = "The rows of the embedding against vocab_size in config.json and "
                              "the ids of the tokenizer.",
                    .command = "shardwright check CHECKPOINT"}}},
     .loader = kTorchItself},
    {.id = "state-dict-expected",
     .example = "TypeError: Expected state_dict to be dict-like, got <class 'NAME'>.",
     .patterns = {"expected state_dict to be dict-like",
                  "'ordereddict' object has no attribute <name>",
                  "'collections.ordereddict' object has no attribute <name>",
                  "'dict' object has no attribute 'eval'", "'dict' object has no attribute 'to'",
                  "'dict' object has no attribute 'state_dict'",
                  "expected torch.tensor or tensor-like object from checkpoint but received"},
     .meanings = {{{.id = "module-or-state-dict",
                    .rule = &kUnsafePickle,
                    .wrong = kLoader,
                    .weight = 0.75,
                    .title = "the file holds a state dict where a module is expected, or the other "
                             "way round",
                    .text = "torch.save(model) keeps the whole module, torch.save("
                            "model.state_dict()) its tensors. The code handles one of them and "
                            "the file is the other; or the weights lie one level deeper (under "
                            "model, state_dict, module) beside the optimizer.",
                    .decide = "The names that the file holds.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kTorchItself},
    {.id = "not-contiguous",
     .example = "You are trying to save a non contiguous tensor: `NAME` which is not allowed.",
     .patterns = {"you are trying to save a non contiguous tensor: <name>",
                  "key <name> is invalid, expected torch.tensor but received"},
     .meanings = {{{.id = "save-refused",
                    .wrong = kLoader,
                    .weight = 0.9,
                    .title = "safetensors refused to save this tensor",
                    .text = "It takes whole tensors in row order only: a transposed view or a "
                            "value that is not a tensor has to become .contiguous() (or a tensor) "
                            "first. This save wrote nothing.",
                    .decide = "The name in the message.",
                    .command = "shardwright info CHECKPOINT"}}},
     .loader = "safetensors"},
    {.id = kShapes,
     .example = "Bad in-place call: input tensor size [2097152, 1] and output tensor size [1024, "
                "4096] should match",
     .patterns = {"bad in-place call: input tensor size <saved> and output tensor size <current>"},
     .loader = kTorchItself},
    {.id = "reshape-fails",
     .example = "shape '[-1, 32]' is invalid for input of size 1",
     .patterns = {"' is invalid for input of size <#elements>"},
     .meanings = {{{.id = "wrong-weight",
                    .rule = &kShapeMismatch,
                    .weight = 0.5,
                    .title = "a tensor has another number of elements than the code divides into "
                             "that shape",
                    .text = "The number is what the tensor holds. In a load it is as a rule a "
                            "scale: one per tensor where one per group or per channel is expected, "
                            "or a packed weight that is taken for a plain one.",
                    .decide = "Which tensor the traceback reshapes, and its shape in the file.",
                    .command = "shardwright ls CHECKPOINT"}}},
     .loader = kTorchItself},
    {.id = "weight-dimensions",
     .example = "RuntimeError: 'weight' must be 2-D",
     .patterns = {"'weight' must be 2-d"},
     .meanings = {{{.id = "not-filled",
                    .rule = &kEmptyTensors,
                    .weight = 0.75,
                    .title = "the embedding is empty or flat: ZeRO-3 or FSDP holds it in parts",
                    .text = "Under ZeRO-3 a parameter outside its module is a tensor of shape [0]. "
                            "The model was saved without a gather (the file holds [0]), or is "
                            "called without the engine that puts the parts together.",
                    .decide = "The shape of the embedding in the file.",
                    .command = "shardwright ls CHECKPOINT embed"}}},
     .loader = kTorchItself},
};

}  // namespace

std::span<const MessageKind> tensor_messages() {
  return kTensorMessages;
}

}  // namespace shw
