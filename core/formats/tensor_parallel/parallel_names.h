// Names of the files that serving engines write, one or several per rank of tensor parallelism.
//
//   vLLM, SGLang  model-rank-R-part-P.safetensors
//   TensorRT-LLM  rankR.safetensors; its config.json has "mapping"
//   DeepSeek      modelR-mpN.safetensors (convert.py of DeepSeek-V3)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/source.h"

namespace shw {

enum class ParallelEngine : std::uint8_t { kVllm, kTensorRt, kDeepSeek };

struct EngineFileName {
  ParallelEngine engine = ParallelEngine::kVllm;
  std::uint32_t rank = 0;
  std::uint32_t part = 0;
  std::uint32_t ranks = 0;  // 0: the name does not say it
};
std::optional<EngineFileName> parse_engine_file(std::string_view file);
std::string engine_file_name(const EngineFileName& name);

// The files of one engine at the top of a folder, by rank and part.
struct ParallelFiles {
  ParallelEngine engine = ParallelEngine::kVllm;
  std::uint32_t ranks = 0;  // the number in the names, else the highest rank + 1
  bool have_names_with_ranks = false;
  std::map<std::uint32_t, std::map<std::uint32_t, std::string>> of_rank;
};
// nullopt if only rank 0 is named, or if file names of several engines are mixed.
std::optional<ParallelFiles> parallel_files(std::span<const Entry> entries);

}  // namespace shw
