// The sizes in config.json of a model that has one file per rank. They show which part of a tensor
// a rank holds, because engine files record neither the split axis nor the whole shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/formats/tensor_parallel/parallel_names.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace shw {

// A size of 0 is missing in config.json; no part matches it.
struct ParallelModel {
  ParallelEngine engine = ParallelEngine::kVllm;
  std::int64_t width = 0;  // hidden_size
  std::int64_t heads = 0, key_heads = 0, head_width = 0;
  std::int64_t inner = 0;  // of an MLP
  std::int64_t words = 0;  // vocab_size
  std::int64_t experts = 0;
  std::int64_t layers = 0;
  std::uint32_t tensor_ranks = 1, pipeline_ranks = 1;
  bool is_mapped = false;  // config.json gives the rank mapping (TensorRT-LLM)

  std::int64_t query_rows() const { return heads * head_width; }
};
// `ranks`: number of rank files. A size that config.json lacks, or gives outside 1 to 2^30, stays 0
// unless other sizes imply it.
ParallelModel parallel_model(const Directory& directory, ParallelEngine engine,
                             std::uint32_t ranks);

// The boxes of the whole tensor that a rank's part covers, in the part's order along the split
// axis, and the shape of the whole tensor.
struct ParallelPart {
  Extents shape;
  std::vector<Box> boxes;
};
// Nothing where name, dtype and sizes do not settle it together. `rank` counts within the ranks of
// tensor parallelism.
//
//   layer             part of rank r                        known by
//   qkv_proj          its heads of q, of k, of v            rows and columns
//   gate_up_proj      its rows of gate, its rows of up      rows and columns
//   up_proj, fc1      rows                                  rows and columns
//   o_proj, down_proj columns                               rows and columns
//   embed_tokens      rows, padded; TensorRT-LLM's columns  rows and columns
//   norms, router     all of it                             its size
std::optional<ParallelPart> parallel_part(const ParallelModel& model, std::string_view name,
                                          Dtype dtype, const Extents& local, std::uint32_t rank);

// The name with the layer's number in the whole model: TensorRT-LLM counts the layers of each
// pipeline rank from 0. nullopt if the layers are not divided evenly among the pipeline ranks.
std::optional<std::string> name_in_model(const ParallelModel& model, std::string_view name,
                                         std::uint32_t pipeline_rank);

// The number of ranks, derived from the shape of one rank's part of an attention output; 0 if it
// cannot be derived.
std::uint32_t infer_ranks_from_part(const ParallelModel& model, std::string_view name,
                                    const Extents& local);

}  // namespace shw
