// Messages of loaders, from public reports and from the libraries' source: the loader, the kind of
// message, and the most likely cause.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/explain/support.h"
#include "core/explain/unknown_text.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: sentences of loaders of shards are known") {
  check_sentences({
      {"AssertionError: metadata is None", "torch.distributed.checkpoint", "no-metadata-object",
       "unfinished-save"},
      {"AttributeError: '_StorageInfo' object has no attribute 'transform_descriptors'",
       "torch.distributed.checkpoint", "record-class", "other-librarys-records"},
      {"KeyError: 'fp32_flat_groups'", "DeepSpeed", "zero-part", "other-format"},
      {"AssertionError: /ckpt/global_step7 seems a bogus DeepSpeed checkpoint folder: Cannot find "
       "layer_* files in there.",
       "DeepSpeed", "rank-files-missing", "missing-file"},
      {"RuntimeError: ZeRO-3 model/optimizer tp_degree or dp_degree mismatch: model=(1,4), "
       "optim=(1,8)",
       "DeepSpeed", "zero-layout", "other-world-size"},
      {"ValueError: AutoEP universal checkpoint expert count disagrees with target logical shape: "
       "checkpoint=8, target=(16, 4)",
       "DeepSpeed", "expert-layout", "expert-layout"},
      {"AssertionError: Vocab tensor padded size 32000 < loaded universal size 32064", "DeepSpeed",
       "zero-layout", "other-world-size"},
      {"ValueError: Cannot get 16bit model weights because "
       "`stage3_gather_16bit_weights_on_model_save` in DeepSpeed config is False.",
       "DeepSpeed", "stage3-not-gathered", "not-gathered"},
      {"RuntimeError: Checkpoint at /ckpt is missing keys: {'layers.0.weight'}",
       "torch.distributed.checkpoint", "missing-key", "renamed"},
      {"ValueError: Could not find shard at 'torch.Size([0, 4])' for FQN: 'layers.0.weight'",
       "torch.distributed.checkpoint", "no-such-shard", "storage-dangling"},
      {"AssertionError: Key(s) present in other ranks but not this one, difference: {'a.b'}",
       "torch.distributed.checkpoint", "ranks-disagree", "ranks-disagree"},
      {"AssertionError: Number of unpadded elements must be same in current run (64) and "
       "checkpoint (48)",
       "Megatron", "megatron-optimizer-size", "optimizer-order"},
      {"CheckpointingException: Global offset (3) must be divisible by local shape (2) for "
       "ShardedTensor(key='a.b')",
       "Megatron", "megatron-grid", "uneven-cut"},
      {"ValueError: Could not find parameter group with key ('wd',) in loaded checkpoint.",
       "Megatron", "megatron-optimizer-size", "optimizer-order"},
  });
}

TEST_CASE("explain: sentences of any program are known") {
  check_sentences({
      {"TypeError: float() argument must be a string or a real number, not 'dict'", "",
       "state-not-a-number", "no-optimizer-state"},
      {"KeyError: 'exp_avg'", "", "adam-state", "other-optimizer"},
      {"KeyError: 'layers.0.mlp.down_proj.weight_scale'", "", "quantisation-key", "quantised"},
      {"KeyError: 'model.layers.13.mlp.experts.w2_weight_scale'", "", "quantisation-key",
       "quantised"},
      {"KeyError: 'model.layers.0.self_attn.q_norm.weight'", "", "tensor-key", "renamed"},
      {"RuntimeError: Cannot find any model weights with `/models/x`", "", "no-weights-file",
       "other-format"},
      {"ValueError: Quantization method specified in the model config (fp8) does not match the "
       "quantization method specified in the `quantization` argument (awq).",
       "", "quantisation-method", "quantised"},
      {"llama_model_load: error loading model: unknown model architecture: 'qwen3next'", "",
       "unknown-architecture", "older-program"},
      {"RuntimeError: The size of tensor a (32000) must match the size of tensor b (32002) at "
       "non-singleton dimension 0",
       "torch", "size-of-tensors", "other-model"},
      {"RuntimeError: Trying to resize storage that is not resizable", "torch", "storage-too-small",
       "freed-storage"},
      {"KeyError: \"filename 'storages' not found\"", "", "other-archive", "other-format"},
      {"DataLossError: Unable to open table file ./model.ckpt: Data loss: not an sstable (bad "
       "magic "
       "number): perhaps your file is in a different file format",
       "TensorFlow", "not-a-table", "other-format"},
      {"ValueError: Qwen2ForCausalLM has no vLLM implementation and the Transformers "
       "implementation is not compatible with vLLM.",
       "", "unknown-architecture", "older-program"},
      {"KeyError: 'state_dict'", "", "checkpoint-part", "other-format"},
      {"KeyError: 'param_groups'", "", "optimizer-part", "no-optimizer-state"},
      {"KeyError: 0", "", "state-number", "optimizer-order"},
      {"KeyError: 'momentum_buffer'", "", "optimizer-state-key", "other-optimizer"},
      {"KeyError: 'rope_scaling'", "", "config-key", "config-disagrees"},
      {"RuntimeError: probability tensor contains either `inf`, `nan` or element < 0", "",
       "not-finite", "not-finite"},
      {"EOFError", "", "pickle-cut", "short-file"},
      {"UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
       "", "not-text", "other-format"},
      {"IsADirectoryError: [Errno 21] Is a directory: '/ckpt'", "", "is-a-folder", "wrong-path"},
      {"OSError: No such device (os error 19)", "safetensors", "cannot-be-mapped", "wrong-path"},
      {"Some parameters are on the meta device because they were offloaded to the cpu.",
       "accelerate", "offloaded", "notice"},
      {"ValueError: Can't find a valid checkpoint at /out/checkpoint-500", "",
       "no-usable-checkpoint", "other-format"},
      {"ValueError: The checkpoint you are trying to load has model type `qwen3_next` but "
       "Transformers does not recognize this architecture.",
       "", "unknown-architecture", "older-program"},
      {"ValueError: Cannot load safetensors of unknown dtype F4", "", "unknown-dtype",
       "older-program"},
      {"RuntimeError: Missing optimizer state for parameter 'layers.0.weight' in checkpoint. The "
       "parameter requires gradients but has no saved optimizer state.",
       "", "state-not-a-number", "no-optimizer-state"},
      {"KeyError: 'module'", "", "checkpoint-part", "other-format"},
      {"safetensors._safetensors_rust.SafetensorError: Error while deserializing header: invalid "
       "JSON in header: unknown variant `F3`, expected one of `BOOL`",
       "", "safetensors-header-json", "older-program"},
      {"SafetensorError: Error while deserializing header: invalid JSON in header: unknown variant "
       "``, expected one of `F32`, `F16` at line 1 column 1",
       "", "safetensors-header-json", "reserved-name"},
      {"OSError: Unable to load weights from checkpoint file for 'x.safetensors' at "
       "'x.safetensors'.",
       "", "weights-file-unreadable", "short-file"},
      {"RuntimeError: Expected all tensors to be on the same device, but found at least two "
       "devices, cuda:0 and cpu!",
       "torch", "other-device", "other-device"},
      {"RuntimeError: NCCL error in: ProcessGroupNCCL.cpp, unhandled system error", "",
       "not-about-a-checkpoint", "not-about-a-checkpoint"},
      {"AttributeError: 'dict' object has no attribute 'state_dict_metadata'", "",
       "attribute-of-class", "other-version"},
      {"TypeError: 'NoneType' object is not subscriptable", "", "nothing-where-something",
       "other-format"},
      {"IndexError: list index out of range", "", "list-too-short", "other-format"},
      {"ValueError: optimizer got an empty parameter list", "", "empty-optimizer",
       "empty-optimizer"},
      {"RuntimeError: CUDA error: device-side assert triggered", "", "not-about-a-checkpoint",
       "not-about-a-checkpoint"},
      {"ValueError: Supplied state dict for layers.0.weight does not contain `bitsandbytes__*` and "
       "possibly other `quantized_stats` components.",
       "", "quantised-state-missing", "quantised"},
      {"RuntimeError: [load_safetensors] Invalid json header length in file model.safetensors", "",
       "safetensors-header-length", "not-safetensors"},
      {"RuntimeError: aten.copy_.default: got mixed torch.Tensor and DTensor, need to convert all "
       "torch.Tensor to DTensor before calling distributed operators!",
       "", "sharded-state-dict", "sharded-state-dict"},
      {"Some weights of Qwen2ForCausalLM were not initialized from the model checkpoint at x and "
       "are newly initialized: ['lm_head.weight']",
       "", "missing-key", "tied"},
      {"Some weights of the model checkpoint at x were not used when initializing "
       "LlamaForCausalLM: ['_orig_mod.model.norm.weight']",
       "", "unexpected-key", "renamed"},
      {"OSError: Error no file named diffusion_pytorch_model.safetensors found in directory /x.",
       "diffusers", "no-pipeline-weights", "other-name"},
      {"RuntimeError: Error(s) in loading state_dict for GPT:\n\tMissing key(s) in state_dict: "
       "\"transformer.wte.weight\". \n\tUnexpected key(s) in state_dict: "
       "\"_orig_mod.transformer.wte.weight\".",
       "", "missing-key", "renamed"},
      {"IndexError: list index out of range", "", "list-too-short", "other-format"},
      {"ValueError: The following keys are missing from the checkpoint: ['lm_head.weight']", "",
       "missing-key", "tied"},
      {"RuntimeError: Failed to load checkpoint: KeyError('lm_head.weight')", "", "tied-key",
       "tied"},
      {"RuntimeError: expected a DTensor but got a torch.Tensor for parameter layers.0.weight", "",
       "sharded-state-dict", "sharded-state-dict"},
  });
}

TEST_CASE("explain: sentences of torch are known") {
  check_sentences({
      {"RuntimeError: zero-dimensional tensor (at position 0) cannot be concatenated", "torch",
       "concatenate-zero-dim", "replicated-concatenated"},
      {"RuntimeError: The size of tensor a (3072) must match the size of tensor b (1536) at "
       "non-singleton dimension 1",
       "torch", "size-of-tensors", "one-ranks-part"},
      {"RuntimeError: Sizes of tensors must match except in dimension 0. Expected size 28 but got "
       "size 29 for tensor number 1 in the list.",
       "torch", "concatenate-sizes", "merge-axis"},
      {"RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x4096 and 2048x1024)", "torch",
       "matrix-shapes", "wrong-weight"},
      {"RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float", "torch",
       "dtype-mix", "dtype-mix"},
      {"NotImplementedError: Cannot copy out of meta tensor; no data! Please use "
       "torch.nn.Module.to_empty() instead",
       "torch", "meta-tensor", "not-filled"},
      {"RuntimeError: Tensors of the same index must be on the same device and the same dtype "
       "except `step` tensors that can be CPU and float32/64 notwithstanding",
       "torch", "optimizer-devices", "optimizer-devices"},
      {"IndexError: index out of range in self", "torch", "index-outside", "vocabulary"},
      {"TypeError: Expected state_dict to be dict-like, got <class "
       "'torch.nn.modules.linear.Linear'>.",
       "torch", "state-dict-expected", "module-or-state-dict"},
      {"AttributeError: 'collections.OrderedDict' object has no attribute 'eval'", "torch",
       "state-dict-expected", "module-or-state-dict"},
      {"_pickle.UnpicklingError: Weights only load failed. In PyTorch 2.6, we changed the default "
       "value of the `weights_only` argument ... WeightsUnpickler error:  \n\nUnsupported operand "
       "118\n\nCheck the documentation of torch.load",
       "torch", "operand-text", "not-a-pickle"},
      {"RuntimeError: mmap can only be used with files saved with `torch.save(f, "
       "_use_new_zipfile_serialization=True)",
       "torch", "not-a-zip-save", "other-format"},
      {"ValueError: You are trying to save a non contiguous tensor: `x.y` which is not allowed.",
       "safetensors", "not-contiguous", "save-refused"},
  });
}

TEST_CASE("explain: sentences of programs that serve a model are known") {
  check_sentences({
      {"    assert param_data.shape == loaded_weight.shape\nAssertionError", "vLLM or SGLang",
       "weight-shape-assert", "config-disagrees"},
      {"ValueError: There is no module or parameter named 'fc.weight_scale' in LlamaForCausalLM",
       "", "quantisation-key", "quantised"},
      {"ValueError: Following weights were not initialized from checkpoint: "
       "{'model.layers.0.self_attn.qkv_proj.weight', 'model.norm.weight'}",
       "vLLM or SGLang", "missing-key", "config-disagrees"},
      {"ValueError: Total number of attention heads (28) must be divisible by tensor parallel size "
       "(8).",
       "vLLM or SGLang", "heads-over-ranks", "tensor-parallel"},
      {"ValueError: base_model.model.lm_head.lora_embedding_A is unsupported LoRA weight",
       "vLLM or SGLang", "lora-not-supported", "adapter"},
      {"ValueError: LoRA rank 64 is greater than max_lora_rank 16.", "vLLM or SGLang",
       "lora-not-supported", "adapter"},
      {"llama_model_load: error loading model: done_getting_tensors: wrong number of tensors; "
       "expected 292, got 291",
       "llama.cpp", "gguf-tensor-count", "older-program"},
      {"llama_model_load: error loading model: missing tensor 'blk.0.attn_q.weight'", "llama.cpp",
       "gguf-block-tensor", "older-program"},
      {"error loading model: create_tensor: tensor 'token_embd.weight' not found", "llama.cpp",
       "gguf-no-tensor", "config-disagrees"},
      {"llama_model_load: error loading model: tensor 'blk.30.ffn_down.weight' data is not within "
       "the file bounds, model is corrupted or incomplete",
       "llama.cpp", "gguf-cut", "short-file"},
      {"gguf_init_from_file_impl: invalid magic characters: 'PK', expected 'GGUF'", "llama.cpp",
       "gguf-magic", "other-format"},
      {"ValueError: Can not map tensor 'model.layers.0.mlp.down_proj.weight_scale_inv'",
       "llama.cpp", "gguf-convert-scale", "quantised"},
      {"ValueError: Unprocessed experts: ['model.layers.0.mlp.experts.3.down_proj.weight']",
       "llama.cpp", "gguf-convert", "renamed"},
      {"ValueError: Missing tensors: ['blk.0.attn_q.weight']", "llama.cpp", "gguf-parts-missing",
       "unfinished-save"},
      {"ValueError: Received 2 parameters not in model: "
       "\nlanguage_model.lm_head.biases,\nlanguage_model.lm_head.scales.",
       "MLX", "unexpected-key", "quantised"},
      {"ValueError: Missing 1 parameters: \nlm_head.weight.", "MLX", "missing-key", "tied"},
      {"llama_model_load: error loading model: error loading model hyperparameters: key not found "
       "in model: llama.context_length",
       "llama.cpp", "gguf-header", "older-program"},
      {"gguf_init_from_file_impl: tensor 'blk.0.x' has offset 64, expected 32", "llama.cpp",
       "gguf-offsets", "bad-record"},
      {"ValueError: Weight output_partition_size = 1 is not divisible by weight quantization "
       "block_n = 128.",
       "vLLM or SGLang", "heads-over-ranks", "tensor-parallel"},
  });
}

TEST_CASE("explain: sentences of Orbax and mergekit are known") {
  check_sentences({
      {"RuntimeError: Tensor size mismatch for model.layers.0.mlp.down_proj.weight, sizes: "
       "[torch.Size([8192, 24576]), torch.Size([8192, 28672])]",
       "mergekit", "merge-shapes", "merge-of-other-models"},
      {"RuntimeError: Tensor model.final_layernorm.weight required but not present in model "
       "mistralai/Mistral-7B",
       "mergekit", "merge-missing", "renamed"},
      {"ValueError: User-provided restore item and on-disk value metadata tree structures do not "
       "match:\nalg_cfg:\n - Source: MISSING",
       "Orbax", "orbax-tree", "renamed"},
      {"FileNotFoundError: Metadata file (named _METADATA) does not exist at /ckpt/100/default.",
       "Orbax", "orbax-files", "unfinished-save"},
      {"ValueError: cannot reshape array of size 2 into shape (1,64)", "Orbax", "orbax-mesh",
       "other-world-size"},
      {"ValueError: NOT_FOUND: Error opening \"zarr\" driver: Metadata at local file "
       "\"/x/a/.zarray\" does not exist",
       "Orbax", "orbax-files", "unfinished-save"},
  });
}

TEST_CASE("explain: sentences of Keras and Lightning are known") {
  check_sentences({
      {"ValueError: Layer 'conv1_conv' expected 1 variables, but received 0 variables during "
       "loading. Expected: ['kernel']",
       "Keras", "keras-variables", "other-model"},
      {"ValueError: You are trying to load a weight file containing 3 layers into a model with 1 "
       "layers.",
       "Keras", "keras-layers", "other-model"},
      {"ValueError: A total of 2 objects could not be loaded. Example error message for object "
       "<Dense name=dense, built=True>:\n\nLayer 'dense' expected 2 variables, but received 0 "
       "variables during loading. Expected: ['kernel', 'bias']",
       "Keras", "keras-variables", "other-model"},
      {"OSError: Unable to synchronously open file (file signature not found)", "Keras",
       "keras-format", "other-format"},
      {"ValueError: File format not supported: filepath=model. Keras 3 only supports V3 `.keras` "
       "files and legacy H5 format files (`.h5` extension).",
       "Keras", "keras-format", "other-format"},
      {"KeyError: 'Trying to restore training state but checkpoint contains only the model. This "
       "is probably due to `ModelCheckpoint.save_weights_only` being set to `True`.'",
       "Lightning", "weights-only-checkpoint", "no-optimizer-state"},
      {"KeyError: 'pytorch-lightning_version'", "Lightning", "not-lightning", "other-format"},
      {"ValueError: Unable to load weights saved in HDF5 format into a subclassed Model which has "
       "not created its variables yet. Call the Model first, then load the weights.",
       "Keras", "keras-variables", "other-model"},
      {"TypeError: Could not locate class 'MyLayer'. Make sure custom classes are decorated",
       "Keras", "keras-class", "older-program"},
      {"ValueError: Unrecognized keyword arguments passed to Dense: {'quantization_config': None}",
       "Keras", "keras-class", "older-program"},
  });
}

TEST_CASE("explain: sentences of libraries of Hugging Face are known") {
  check_sentences({
      {"ValueError: Can't find 'adapter_config.json' at '/out'", "peft", "adapter-config",
       "wrong-path"},
      {"ValueError: Target modules {'q_proj', 'v_proj'} not found in the base model. Please check "
       "the target modules and try again.",
       "peft", "adapter-targets", "adapter"},
      {"UserWarning: Found missing adapter keys while loading the checkpoint: "
       "['base_model.model.model.layers.0.self_attn.q_proj.lora_A.default.weight']",
       "peft", "adapter-targets", "adapter"},
      {"TypeError: LoraConfig.__init__() got an unexpected keyword argument 'corda_config'", "peft",
       "adapter-options", "older-program"},
      {"ValueError: Invalid LoRA checkpoint. Make sure all LoRA param names contain `'lora'` "
       "substring.",
       "diffusers", "adapter-names", "adapter"},
      {"KeyError: \"Parameter 'lm_head.weight' found in sharded model state dict but missing from "
       "full state dict. Full state dict has 10 keys, sharded has 11 keys.\"",
       "accelerate", "fsdp-names", "tied"},
      {"OSError: Consistency check failed: file should be of size 4976698672 but has size 10240 "
       "(model-00001-of-00004.safetensors).",
       "", "download-size", "short-file"},
      {"RuntimeError: Data processing error: CAS service error : Reqwest Error: HTTP status client "
       "error (416 Range Not Satisfiable)",
       "huggingface_hub", "xet-download", "short-file"},
      {"OSError: The state dictionary of the model you are trying to load is corrupted. Are you "
       "sure it was properly saved?",
       "transformers", "corrupted-state-dict", "renamed"},
      {"AttributeError: 'NoneType' object has no attribute 'get'", "", "none-for-dict",
       "part-missing"},
      {"RuntimeError: Failed to apply weight conversion for "
       "'model.layers.0.mlp.experts.gate_up_proj'. This likely means the checkpoint format is "
       "incompatible",
       "transformers", "weight-conversion", "fused-experts"},
      {"ValueError: Unrecognized model in /out. Should have a `model_type` key in its config.json",
       "transformers", "config-without-type", "config-disagrees"},
  });
}

TEST_CASE("explain: of two shapes it is known which is the file's and which the loader's") {
  const std::vector<TwoShapes> sentences = {
      {"AssertionError: Attempted to load weight (torch.Size([3600])) into parameter "
       "(torch.Size([3584]))",
       "vLLM or SGLang",
       {3600},
       {3584}},
      {"ValueError: weight shape mismatch: parameter has (2,), checkpoint has (3,)",
       "vLLM or SGLang",
       {3},
       {2}},
      {"AssertionError: transformer.h.39.attn.c_attn.weight shape mismatch between model and "
       "checkpoint: torch.Size([1600, 6144]) != torch.Size([1792, 6144])",
       "vLLM or SGLang",
       {1792, 6144},
       {1600, 6144}},
      {"llama_model_load: error loading model: create_tensor: tensor 'blk.0.attn_k.weight' has "
       "wrong shape; expected  8192,  8192, got  8192,  1024,     1,     1",
       "llama.cpp",
       {1024, 8192},
       {8192, 8192}},
      {"llama_model_load: error loading model: check_tensor_dims: tensor 'token_embd.weight' has "
       "wrong shape; expected  4096, 32001, got  4096, 32000,     1,     1",
       "llama.cpp",
       {32000, 4096},
       {32001, 4096}},
      {"ValueError: Expected shape (4096, 4, 1) but received shape (4096, 1, 4) for parameter "
       "model.layers.0.temporal_block.conv_1d.weight",
       "MLX",
       {4096, 1, 4},
       {4096, 4, 1}},
      {"ValueError: Requested shape: (4, 8) is not compatible with the stored shape: (8, 8). "
       "Truncating/padding is disabled by setting of `strict=True`.",
       "Orbax",
       {8, 8},
       {4, 8}},
      {"ValueError: Shape mismatch in layer #175 (named conv2d_transpose_1) for weight "
       "conv2d_transpose_1/kernel:0. Weight expects shape (4, 4, 128, 256). Received saved weight "
       "with shape (2048, 256, 4, 4)",
       "Keras",
       {2048, 256, 4, 4},
       {4, 4, 128, 256}},
      {"ValueError: The shape of the target variable and the shape of the target value in "
       "`variable.assign(value)` must match. variable.shape=(3, 4), Received: value.shape=(5, 4). "
       "Target variable: <Variable path=dense/kernel>",
       "Keras",
       {5, 4},
       {3, 4}},
      {"RuntimeError: Error(s) in loading state_dict for PeftModelForCausalLM:\n\tsize mismatch "
       "for base_model.model.h.11.mixer.out_proj.lora_B.default.weight: copying a param with shape "
       "torch.Size([0]) from checkpoint, the shape in current model is torch.Size([2560, 16]).",
       "",
       {0},
       {2560, 16}},
      {"ValueError: Cannot load None because decoder.conv_in.weight expected shape "
       "torch.Size([64]), but got torch.Size([512, 16, 3, 3]). If you want to instead overwrite "
       "randomly initialized weights",
       "diffusers",
       {512, 16, 3, 3},
       {64}},
      {"ValueError: Cannot load text_projection.weight because it has shape (4, 5) in the "
       "checkpoint but shape (4, 6) in UNet",
       "diffusers",
       {4, 5},
       {4, 6}},
      {"megatron.core.dist_checkpointing.core.CheckpointingException: Global shape mismatch for "
       "loaded (torch.Size([32, 6144, 4096])) and expected ((32, 12288, 4096)) tensor for key "
       "decoder.layers.self_attention.linear_qkv.weight",
       "",
       {32, 6144, 4096},
       {32, 12288, 4096}},
      {"RuntimeError: shape '[2, 4096]' is invalid for input of size 4096", "", {4096}, {2, 4096}},
      {"RuntimeError: size mismatch for router.weight: copying a param with shape "
       "torch.Size([192]) from checkpoint, the shape in current model is torch.Size([24]).",
       "",
       {192},
       {24}},
  };
  check_two_shapes(sentences);
}

TEST_CASE("explain: a sentence of no row is read by its kind") {
  check_sentences({
      {"The tensor 'model.layers.0.mlp.gate.weight' was not found", "", "missing-key", "renamed"},
      {"Unexpected keys in checkpoint: ['model.norm.weight']", "", "unexpected-key", "renamed"},
      {"AssertionError: Expected 128 experts but found 32", "", "expert-count", "expert-layout"},
      {"config.num_local_experts (8) does not match checkpoint (4)", "", "expert-count",
       "expert-layout"},
      {"The checkpoint has 8 shards but world size is 4", "", "other-world", "other-world-size"},
      {"Could not find a checkpoint in /ckpt matching iter_0001000", "", "no-checkpoint-here",
       "wrong-path"},
      {"weight_scale_inv shape (16, 32) does not match weight shape (2048, 4096)", "",
       "scale-shape", "quantised"},
  });
}

TEST_CASE("explain: in a sentence of no row the words next to a shape say whose it is") {
  const std::vector<TwoShapes> sentences = {
      {"Expected tensor for a.b.weight to have shape (32000, 4096), got (32064, 4096)",
       "",
       {32064, 4096},
       {32000, 4096}},
      {"Shape mismatch: a.b.weight: expected [4, 8], found [8, 8]", "", {8, 8}, {4, 8}},
      {"Cannot restore `a.b.kernel`: shape (4,8) in checkpoint, (8,8) in target",
       "",
       {4, 8},
       {8, 8}},
      {"checkpoint array has shape (1024, 512), target (512, 512)", "", {1024, 512}, {512, 512}},
  };
  for (const TwoShapes& sentence : sentences) {
    CAPTURE(sentence.text);
    ErrorText parsed = parse_error_text(sentence.text);
    REQUIRE(parsed.messages.size() == 1);
    CHECK(parsed.messages[0].kind->id == kShapes);
    CHECK(parsed.messages[0].saved == sentence.saved);
    CHECK(parsed.messages[0].current == sentence.current);
  }
  CHECK(parse_error_text("a picture of (3, 4) next to one of (5, 6)").messages.empty());
}

TEST_CASE("explain: a program without ranks is not answered with ranks first") {
  for (const char* text :
       {"create_tensor: tensor 'blk.0.attn_k.weight' has wrong shape; expected  8192,  8192, got  "
        "8192,  1024,     1,     1",
        "Expected shape (1024, 512) but received shape (1024, 256) for parameter model.a.weight"}) {
    CAPTURE(text);
    Explanation explanation = explain(text);
    REQUIRE_FALSE(explanation.hypotheses.empty());
    CHECK(explanation.hypotheses[0].id == "config-disagrees");
  }
}

TEST_CASE("explain: a name that a shell reads as one word is in the command") {
  Explanation plain = explain("KeyError: 'model.layers.0.q_norm.weight'");
  REQUIRE_FALSE(plain.hypotheses.empty());
  CHECK(plain.hypotheses[0].command == "shardwright ls CHECKPOINT model.layers.0.q_norm.weight");
  Explanation odd = explain("KeyError: 'a.b;reboot.c'");
  REQUIRE_FALSE(odd.hypotheses.empty());
  CHECK(odd.hypotheses[0].command.find("reboot") == std::string::npos);
}

TEST_CASE(
    "explain: a text that is not known is answered with commands that look at what it names") {
  std::string steps = next_step_for("the flux of model.layers.0.mlp.up_proj.weight is off");
  CHECK(steps.find("shardwright check CHECKPOINT") != std::string::npos);
  CHECK(steps.find("shardwright ls CHECKPOINT model.layers.0.mlp.up_proj.weight") !=
        std::string::npos);
  CHECK(next_step_for("a bad shape").find("--spec") != std::string::npos);
  CHECK(next_step_for("").find("shardwright check CHECKPOINT") != std::string::npos);
}
