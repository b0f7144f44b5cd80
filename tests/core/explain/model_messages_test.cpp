// Sentences whose names and shapes show which model, or which form of it, the program had in hand,
// as they are in public reports.
#include <doctest/doctest.h>

#include "core/explain/support.h"

using namespace shw;
using namespace shw::test;

TEST_CASE("explain: a key tells the model's family, form or part") {
  check_sentences({
      {"KeyError: 'qwen3_moe'", "", "model-type-key", "older-program"},
      {"KeyError: 'layers.0.attention.wk.weight'", "", "meta-form-key", "two-copies"},
      {"ERROR 06-01 15:56:46 [core.py:396] KeyError: 'language_model.embed_tokens.weight'", "",
       "vision-key", "renamed"},
      {"KeyError: 'blocks.0.attn.qkv.weight'", "", "tensor-key", "renamed"},
      {"KeyError: 'model.layers.0.feed_forward.w1.weight'", "", "tensor-key", "renamed"},
      {"Error occurred when executing CheckpointLoaderSimple:\n\n"
       "'model.diffusion_model.input_blocks.0.0.weight'",
       "", "diffusion-key", "component-missing"},
      {"KeyError: \"decoder.layers.self_attention.linear_proj.adapter.linear_in.weight from model "
       "not in state dict: ['decoder.final_layernorm.weight']\"",
       "Megatron", "megatron-adapter-key", "adapter"},
      {"KeyError: 'qwen_config'", "", "model-type-key", "older-program"},
      {"KeyError: 'model_max_length'", "", "config-key", "config-disagrees"},
  });
}

TEST_CASE("explain: names of Megatron's other forms are told from lost tensors") {
  const std::string missing = "Missing key(s) in state_dict: ";
  CHECK(first(explain(missing + "\"decoder.layers.0.mlp.experts.weight1\", "
                                "\"decoder.layers.0.mlp.experts.weight2\".")) ==
        "expert-form request");
  CHECK(first(explain(missing + "\"layers.0.self_attention.query_key_value.weight\", "
                                "\"layers.0.mlp.dense_h_to_4h.weight\".")) ==
        "legacy-names request");
}

TEST_CASE("explain: widths of the prompt tell the families of diffusion models") {
  const std::string name = "model.diffusion_model.input_blocks.4.1.transformer_blocks.0.attn2.";
  auto text = [](const std::string& tensor, const std::string& file, const std::string& model) {
    return "size mismatch for " + tensor + ": copying a param with shape torch.Size(" + file +
           ") from checkpoint, the shape in current model is torch.Size(" + model + ").";
  };
  Explanation family = explain(text(name + "to_k.weight", "[640, 2048]", "[640, 1024]"));
  REQUIRE_FALSE(family.hypotheses.empty());
  CHECK(family.hypotheses[0].id == "H-D");
  CHECK(family.hypotheses[0].title.find("SDXL") != std::string::npos);
  Explanation inpainting = explain(
      "While copying the parameter named \"input_blocks.0.0.weight\", whose dimensions in the "
      "model are torch.Size([320, 9, 3, 3]) and whose dimensions in the checkpoint are "
      "torch.Size([320, 4, 3, 3])");
  REQUIRE_FALSE(inpainting.hypotheses.empty());
  CHECK(inpainting.hypotheses[0].title.find("inpainting") != std::string::npos);
  Explanation other = explain(text(name + "to_out.0.weight", "[640, 1280]", "[640, 640]"));
  REQUIRE_FALSE(other.hypotheses.empty());
  for (const Hypothesis& one : other.hypotheses) CHECK(one.id != "H-TP");
}

TEST_CASE("explain: twice the rows of a widening layer are a gate") {
  const std::string tail =
      ": copying a param with shape torch.Size([4096, 512]) from checkpoint, the shape in current "
      "model is torch.Size([2048, 512]).";
  const std::string layer = "size mismatch for esm.encoder.layer.0.";
  CHECK(first(explain(layer + "intermediate.dense.weight" + tail)) == "H-GU request");
  CHECK(first(explain(layer + "attention.self.query.weight" + tail)) != "H-GU request");
}

TEST_CASE("explain: libraries that save whole arrays have no rank's part") {
  check_two_shapes({
      {"ScopeParamShapeError: Initializer expected to generate shape (768, 3072) but got shape "
       "(768, 1536) instead for parameter \"kernel\" in \"/mlp\".",
       "Flax",
       {768, 1536},
       {768, 3072}},
      {"InvalidArgumentError: Assign requires shapes of both tensors to match. lhs shape= [1024] "
       "rhs shape= [512]",
       "TensorFlow",
       {512},
       {1024}},
      {"ValueError: Tensor's shape (3, 3, 64, 64) is not compatible with supplied shape (3, 3, 64, "
       "32)",
       "TensorFlow",
       {3, 3, 64, 64},
       {3, 3, 64, 32}},
      {"ValueError: Requested shape: (256, 128) is not compatible with the stored shape: (128, "
       "128)",
       "Orbax",
       {128, 128},
       {256, 128}},
  });
  for (const char* text :
       {"Initializer expected to generate shape (768, 3072) but got shape (768, 1536) instead for "
        "parameter \"kernel\"",
        "Requested shape: (256, 128) is not compatible with the stored shape: (128, 128)"}) {
    const Explanation explanation = explain(text);
    REQUIRE_FALSE(explanation.hypotheses.empty());
    for (const Hypothesis& one : explanation.hypotheses) {
      CHECK(one.id != "H-TP");
      CHECK(one.id != "H-L");
    }
  }
}

TEST_CASE("explain: a reshape of half the elements is a packed weight before a flat one") {
  const std::string text = "RuntimeError: shape '[4096, 4096]' is invalid for input of size ";
  CHECK(first(explain(text + "8388608")) == "H-Q either");
  CHECK(first(explain(text + "4194304")) == "H-F checkpoint");
}

TEST_CASE("explain: sentences of programs around one model are known") {
  check_sentences({
      {"mat1 and mat2 shapes cannot be multiplied (77x2048 and 768x320)", "a diffusion program",
       "text-encoding-width", "other-base-model"},
      {"mat1 and mat2 shapes cannot be multiplied (1x4096 and 2048x1024)", "torch", "matrix-shapes",
       "wrong-weight"},
      {"- Value not in list: ckpt_name: 'v1-5-pruned-emaonly.ckpt' not in ['a.ckpt']", "ComfyUI",
       "workflow-names-file", "wrong-path"},
      {"AttributeError: 'NoneType' object has no attribute 'lowvram'", "Stable Diffusion web UI",
       "load-failed-before", "details-missing"},
      {"tensor 'blk.0.ffn_down_exps.weight' has invalid ggml type 39 (NONE)\n"
       "gguf_init_from_file_impl: failed to read tensor info",
       "llama.cpp", "gguf-type", "older-program"},
      {"gguf_init_from_file_impl: failed to read tensor info", "llama.cpp", "gguf-unreadable",
       "short-file"},
      {"clip_init: failed to load model 'mmproj.gguf': unknown projector type: qwen3vl_merger",
       "llama.cpp", "gguf-projector", "older-program"},
      {"llama_model_quantize: failed to quantize: requantizing from type q4_K is disabled",
       "llama.cpp", "gguf-requantise", "quantised"},
      {"TypeError: Llama 3 must be converted with BpeVocab", "llama.cpp", "gguf-older-script",
       "older-program"},
      {"Error: unknown data type: U8", "Ollama", "ollama-dtype", "quantised"},
      {"Error: pull model manifest: file does not exist", "Ollama", "ollama-no-model",
       "wrong-path"},
      {"msg=\"bad manifest filepath\" name=library/gemma:2b", "Ollama", "ollama-blob-missing",
       "missing-file"},
      {"RuntimeError: [safetensors] Invalid json header length", "", "safetensors-header-length",
       "not-safetensors"},
      {"Exception: data did not match any variant of untagged enum ModelWrapper at line 1251003 "
       "column 3",
       "tokenizers", "tokenizer-newer", "tokenizer"},
  });
}

TEST_CASE("explain: sentences of trainers that resume, merge or save are known") {
  check_sentences({
      {"RuntimeError: expected dtype float for `end` but got dtype c10::BFloat16", "torch",
       "moment-dtype", "moment-dtype"},
      {"    assert len(self.ckpt_list) > 0\nAssertionError", "DeepSpeed", "no-model-states",
       "rank-files-missing"},
      {"FileNotFoundError: [Errno 2] No such file or directory: "
       "'/out/checkpoint-500/trainer_state.json'",
       "transformers", "no-trainer-state", "no-trainer-state"},
      {"FileNotFoundError: [Errno 2] No such file or directory: "
       "'/ckpt/actor/model_world_size_16_rank_0.pt'",
       "verl", "rank-file-of-world", "other-world-size"},
      {"FileNotFoundError: Only found 1 of 2 files", "", "partial-files", "missing-file"},
      {"ValueError: Checkpoint at /mnt/ckpt/step_1000 is invalid", "", "invalid-checkpoint",
       "unfinished-save"},
      {"RuntimeError: Unsloth: `config.json` does not exist inside /out", "unsloth",
       "merge-without-config", "merge-unfinished"},
      {"ValueError: Cannot merge LORA layers when the model is gptq quantized", "peft",
       "merge-into-quantised", "quantised"},
      {"ValueError: You can't train a model that has been loaded in 8-bit or 4-bit precision on a "
       "different device than the one you're training on.",
       "accelerate", "train-quantised", "other-device"},
      {"ValueError: Linear() does not have a parameter or a buffer named weight_scale.",
       "accelerate", "parameter-not-in-module", "renamed"},
      {"TypeError: Object of type Int4WeightOnlyConfig is not JSON serializable", "",
       "config-not-json", "save-refused"},
      {"AssertionError: 14 is not divisible by 4", "vLLM or SGLang", "heads-over-ranks",
       "tensor-parallel"},
      {"ModuleNotFoundError: No module named 'numpy._core'", "", "pickled-by-numpy-2",
       "portability"},
      {"UnpicklingError: A load persistent id instruction was encountered, but no persistent_load "
       "function was specified.",
       "", "plain-pickle", "other-loader"},
      {"ValueError: Cannot load file containing pickled data when allow_pickle=False", "NumPy",
       "not-an-array", "other-format"},
      {"ValueError: cannot reshape array of size 1048576 into shape (1024,2048)", "NumPy",
       "array-reshape", "other-model"},
      {"ValueError: cannot reshape array of size 2 into shape (1,64)", "Orbax", "orbax-mesh",
       "other-world-size"},
      {"ValueError: Unpack failed: incomplete input", "Flax", "msgpack-cut", "short-file"},
      {"DataLossError: Checksum does not match: stored 1216405867 vs. calculated on the restored "
       "bytes 3289304842",
       "TensorFlow", "table-checksum", "bad-record"},
      {"NotFoundError: Unsuccessful TensorSliceReader constructor: Failed to find any matching "
       "files for /ckpt/model.ckpt-1000",
       "TensorFlow", "tensorflow-prefix", "wrong-path"},
      {"OSError: SavedModel file does not exist at: /m/{saved_model.pbtxt|saved_model.pb}",
       "TensorFlow", "tensorflow-saved-model", "wrong-path"},
      {"NotFoundError: Key bert/embeddings/word_embeddings not found in checkpoint", "TensorFlow",
       "missing-key", "renamed"},
      {"ValueError: Layer 'dense' expected 1 input(s). Received 2 instead.", "Keras",
       "keras-inputs", "other-version"},
  });
}

TEST_CASE("explain: sentences about libraries, GPUs and settings around a model are known") {
  check_sentences({
      {"RuntimeError: Only Tensors of floating point and complex dtype can require gradients",
       "torch", "quantised-parameter", "quantised"},
      {"ValueError: `.to` is not supported for `4-bit` or `8-bit` bitsandbytes models.",
       "transformers", "quantised-stays", "other-device"},
      {"ImportError: Using `bitsandbytes` 4-bit quantization requires the latest version of "
       "bitsandbytes: `pip install -U bitsandbytes`",
       "transformers", "quantisation-library", "not-about-a-checkpoint"},
      {"ValueError: FP8 quantized models is only supported on GPUs with compute capability >= 8.9 "
       "(e.g 4090/H100), actual = `8.0`",
       "", "gpu-too-old", "kernel-sizes"},
      {"AssertionError: Torch not compiled with CUDA enabled", "torch", "cpu-build",
       "not-about-a-checkpoint"},
      {"ValueError: Tokenizer class Qwen2Tokenizer does not exist or is not currently imported.",
       "transformers", "tokenizer-class", "tokenizer"},
      {"RuntimeError: Internal: could not parse ModelProto from /m/tokenizer.model",
       "SentencePiece", "tokenizer-model", "tokenizer"},
      {"ValueError: Vocab size mismatch (model has 32000, but tokenizer.model has 32001).",
       "llama.cpp", "tokenizer-size", "vocabulary"},
      {"    assert max(tokenizer.vocab.values()) < vocab_size\nAssertionError", "llama.cpp",
       "tokenizer-size", "vocabulary"},
      {"ValueError: The model's max seq len (131072) is larger than the maximum number of tokens "
       "that can be stored in KV cache (34512).",
       "vLLM or SGLang", "cache-room", "out-of-memory"},
      {"RuntimeError: Engine core initialization failed. See root cause above.", "vLLM",
       "engine-failed", "details-missing"},
      {"ValueError: Attempting to unscale FP16 gradients.", "torch", "half-gradients",
       "loaded-in-half"},
      {"ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and "
       "torch.float32",
       "torch", "flat-dtypes", "mixed-dtypes"},
      {"TypeError: load_model() got an unexpected keyword argument 'device'", "", "unknown-option",
       "older-program"},
      {"ValueError: Unrecognized configuration class <class 'transformers.Qwen2_5_VLConfig'> for "
       "this kind of AutoModel: AutoModelForCausalLM.",
       "transformers", "other-auto-class", "other-class"},
      {"OSError: Unable to open file (unable to open file: name = 'model.h5', errno = 2, error "
       "message = 'No such file or directory', flags = 0, o_flags = 0)",
       "HDF5", "hdf5-cannot-open", "wrong-path"},
      {"OSError: [WinError 1314] A required privilege is not held by the client", "huggingface_hub",
       "windows-symlinks", "cannot-link"},
      {"SafetensorError: Error while serializing: IoError(Os { code: 1224, kind: Uncategorized })",
       "safetensors", "windows-mapped", "file-open"},
      {"DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined.",
       "torch.distributed", "ranks-not-started", "rank-missing"},
      {"AssertionError: found no DeviceMesh from dtensor args for c10d.broadcast_.default!", "",
       "sharded-state-dict", "sharded-state-dict"},
      {"KeyError: 'model.layers.61.embed_tokens.weight'", "", "prediction-layer-key", "mtp-extra"},
      {"Given groups=1, weight of size [320, 4, 3, 3], expected input[2, 9, 64, 64] to have 4 "
       "channels, but got 9 channels instead",
       "", "image-channels", "other-base-model"},
      {"ValueError: Could not find a module type (out of NetworkModuleLora) that would accept "
       "those "
       "keys: lora_te_text_model",
       "", "lora-other-model", "adapter-names"},
      {"RuntimeError: [load_safetensors] Failed to open file m/model-00075-of-00414.safetensors",
       "", "partial-files", "missing-file"},
      {"ArrayMemoryError: Unable to allocate 1.95 GiB for an array with shape (128256, 4096)", "",
       "host-memory", "out-of-memory"},
      {"jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 "
       "bytes.",
       "", "gpu-memory", "out-of-memory"},
  });
}

TEST_CASE("explain: sentences about parts of pipelines and packed files are known") {
  check_sentences({
      {"OSError: Error no file named model_index.json found in directory /m.", "diffusers",
       "no-pipeline", "other-format"},
      {"OSError: Error no file named diffusion_pytorch_model.bin found in directory /m/unet.",
       "diffusers", "no-pipeline-weights", "other-name"},
      {"ValueError: Pipeline <class 'StableDiffusionXLPipeline'> expected {'vae', 'unet'}, but "
       "only "
       "{'vae'} were passed.",
       "diffusers", "pipeline-parts", "component-missing"},
      {"ValueError: Cannot load <class 'diffusers.FluxTransformer2DModel'> from /m because the "
       "following keys are missing: \n time_text_embed.guidance_embedder.linear_1.weight",
       "diffusers", "missing-key", "other-model"},
      {"ValueError: [quantize] The last dimension of the matrix needs to be divisible by the "
       "quantization group size 64. However the provided  matrix has shape (151936,900)",
       "MLX", "mlx-group-size", "kernel-sizes"},
      {"ValueError: Shape mismatch for megatron param decoder.layers.1.mlp.linear_fc2.weight:\n"
       "[rank0]:   Expected shape: torch.Size([4096, 5376])\n"
       "[rank0]:   Got shape: torch.Size([4096, 2688])",
       "Megatron-Bridge", "shapes", "quantised"},
  });
  const Explanation pipeline = explain(
      "Cannot load <class 'diffusers.FluxTransformer2DModel'> from /m because the following keys "
      "are missing: \n time_text_embed.guidance_embedder.linear_1.weight");
  REQUIRE(pipeline.parsed.messages.size() == 1);
  CHECK(pipeline.parsed.messages[0].name == "time_text_embed.guidance_embedder.linear_1.weight");
}

TEST_CASE("explain: refusals of configs and of files without their metadata are known") {
  check_sentences({
      {"ValueError: `rope_scaling` must be a dictionary with two fields, `type` and `factor`, got "
       "{'factor': 8.0, 'rope_type': 'llama3'}",
       "transformers", "rope-scaling", "older-library"},
      {"ValueError: The model class you are passing has a `config_class` attribute that is not "
       "consistent with the config class you passed (model has <class 'A'> and you passed <class "
       "'B'>. Fix one of those so they match!",
       "transformers", "config-class", "other-class"},
      {"ValueError: The checkpoint passed was saved with tf, we need a the pt format.", "",
       "safetensors-no-format", "portability"},
      {"ValueError: All adapters must have the same r value when using combination_type linear, "
       "ties, "
       "dare_ties or dare_linear",
       "peft", "adapter-ranks-differ", "other-rank"},
      {"ValueError: Requested the deserialization of a `Lambda` layer whose `function` is a Python "
       "lambda.",
       "Keras", "code-in-model", "unsafe-code"},
      {"SafetensorError: device privateuseone:0 is invalid", "safetensors", "device-unknown",
       "older-library"},
      {"CheckpointingException: Duplicate ShardedObject keys: ['rng_state']", "Megatron",
       "megatron-object-twice", "two-writers"},
      {"AttributeError: 'LlamaConfig' object has no attribute 'rope_parameters'", "",
       "config-attribute", "older-library"},
      {"AssertionError: Expects a DTensor but got <class 'torch.Tensor'>", "", "sharded-state-dict",
       "sharded-state-dict"},
      {"ValueError: Please specify `num_layers` in `peft_config`", "peft", "peft-layers-unknown",
       "not-about-a-checkpoint"},
      {"AssertionError: checkpoint_id must be set before reading data", "torch",
       "checkpoint-id-unset", "call-without-path"},
      {"orbax.checkpoint.InvalidLayoutError: Not an Orbax checkpoint root: /ckpt/1000.", "Orbax",
       "orbax-files", "unfinished-save"},
      {"gguf_init_from_file_impl: failed to read magic", "llama.cpp", "gguf-cut", "short-file"},
      {"ValueError: Missing tensors: ['model.layers.3.self_attn.k_proj.weight']", "llama.cpp",
       "gguf-parts-missing", "unfinished-save"},
  });
}
