#include "core/explain/speaker.h"

#include <array>
#include <cstddef>

namespace shw {
namespace {

struct Speaker {
  std::string_view word, program;
};
// Folders of installed packages, and words that only one program prints.
constexpr Speaker kSpeakers[] = {
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

}  // namespace

std::string_view speaker_of(std::string_view text) {
  std::size_t last = 0;
  std::string_view program;
  for (const Speaker& speaker : kSpeakers) {
    const std::size_t at = text.rfind(speaker.word);
    if (at == text.npos || (!program.empty() && at < last)) continue;
    last = at;
    program = speaker.program;
  }
  return program;
}

}  // namespace shw
