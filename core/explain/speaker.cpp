#include "core/explain/speaker.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

namespace shw {
namespace {

struct ProgramMark {
  std::string_view word, program;
};
// Folders of installed packages, and words that only one program prints.
constexpr ProgramMark kSpeakers[] = {
    {"/vllm/", "vLLM"},
    {"vllm.", "vLLM"},
    {"/sglang/", "SGLang"},
    {"sglang.", "SGLang"},
    {"/lmdeploy/", "LMDeploy"},
    {"[tm][error]", "LMDeploy"},
    {"/text_generation_server/", "text-generation-inference"},
    {"/transformers/", "transformers"},
    {"/diffusers/", "diffusers"},
    {"/peft/", "peft"},
    {"/accelerate/", "accelerate"},
    {"/deepspeed/", "DeepSpeed"},
    {"zero_to_fp32.py", "DeepSpeed"},
    {"/megatron/", "Megatron"},
    {"megatron.core.", "Megatron"},
    {"/nemo/", "NeMo"},
    {"/orbax/", "Orbax"},
    {"/maxtext/", "MaxText"},
    {"/flax/", "Flax"},
    {"/keras/", "Keras"},
    {"/torch/distributed/checkpoint/", "torch.distributed.checkpoint"},
    {"/torch/distributed/fsdp/", "FSDP"},
    {"/torchtitan/", "torchtitan"},
    {"/torchtune/", "torchtune"},
    {"/verl/", "verl"},
    {"/axolotl/", "axolotl"},
    {"/unsloth", "Unsloth"},
    {"/llamafactory/", "LLaMA-Factory"},
    {"/mergekit/", "mergekit"},
    {"/tensorrt_llm/", "TensorRT-LLM"},
    {"/gptqmodel/", "GPTQModel"},
    {"/auto_gptq/", "AutoGPTQ"},
    {"/awq/", "AutoAWQ"},
    {"/exllamav2/", "exllamav2"},
    {"/exllamav3/", "exllamav3"},
    {"/tensorrt_llm/", "TensorRT-LLM"},
    {"[trt-llm]", "TensorRT-LLM"},
    {"/mlx_lm/", "MLX"},
    {"/mlx_vlm/", "MLX"},
    {"/bitsandbytes/", "bitsandbytes"},
    {"/compressed_tensors/", "compressed-tensors"},
    {"/open_clip/", "open_clip"},
    {"/lightning/", "Lightning"},
    {"/pytorch_lightning/", "Lightning"},
    {"/optimum/", "optimum"},
    {"onnxruntime", "ONNX Runtime"},
    {"/comfy/", "ComfyUI"},
    {"comfyui", "ComfyUI"},
    {"checkpointloadersimple", "ComfyUI"},
    {"unetloader", "ComfyUI"},
    {"llama_model_load", "llama.cpp"},
    {"llama_model_loader", "llama.cpp"},
    {"gguf_init_from_", "llama.cpp"},
    {"llama_init_from_", "llama.cpp"},
    {"clip_model_loader", "llama.cpp"},
    {"clip_init", "llama.cpp"},
    {"ggml_assert(", "llama.cpp"},
    {"convert_hf_to_gguf", "llama.cpp"},
    {"safetensors_rust", "safetensors"},
    {"safetensorerror", "safetensors"},
};

// True if the folder at `at` is of the program that speaks, not of a model's path: it is the
// package of site-packages or dist-packages, or in a traceback's `file "PATH", line 3`.
bool is_path_of_program(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongestPath = 1024;
  constexpr std::string_view kFile = "file \"", kAfter = "\", line ", kPackages = "-packages/";
  const std::string_view before =
      text.substr(at - std::min(at, kLongestPath), std::min(at, kLongestPath));
  if (before.ends_with("site-packages") || before.ends_with("dist-packages")) return true;
  const std::size_t file = before.rfind(kFile);
  if (file == before.npos) return false;
  const std::string_view path = before.substr(file + kFile.size());
  if (path.find_first_of("\"\n") != path.npos || path.find(kPackages) != path.npos) return false;
  const std::string_view rest = text.substr(at, kLongestPath);
  const std::size_t end = rest.find('"');
  return end != rest.npos && rest.substr(end).starts_with(kAfter) &&
         rest.substr(0, end).find(kPackages) == rest.npos;
}

// Where the program speaks last; npos if it does not.
std::size_t find_last_mention(std::string_view text, std::string_view word) {
  std::size_t at = text.rfind(word);
  // "file "vllm/config.py", line 3": a path from the folder of the packages.
  if (word.starts_with('/') && at == text.npos) {
    const std::size_t quoted = text.rfind("file \"" + std::string(word.substr(1)));
    return quoted == text.npos ? quoted : quoted + 5;
  }
  while (word.starts_with('/') && at != text.npos && !is_path_of_program(text, at))
    at = at == 0 ? text.npos : text.rfind(word, at - 1);
  return at;
}

}  // namespace

std::string_view program_of_message(std::string_view text) {
  std::size_t last = 0;
  std::string_view program;
  for (const ProgramMark& speaker : kSpeakers) {
    const std::size_t at = find_last_mention(text, speaker.word);
    if (at == text.npos || (!program.empty() && at < last)) continue;
    last = at;
    program = speaker.program;
  }
  return program;
}

}  // namespace shw
