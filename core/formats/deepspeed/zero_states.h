// Contents of the two kinds of files of a ZeRO step, without tensor data.
//
//   model     = {"module": {name: tensor} | None, "param_shapes": [{name: Size}, ...] | None,
//                "frozen_param_shapes": {name: Size} | None,
//                "frozen_param_fragments": {name: tensor} | None,
//                "shared_params": {name: name}, "dp_world_size": int, "optimizer": dict | None,
//                "ds_config": dict, ...}
//   optimizer = {"optimizer_state_dict": {"zero_stage": int, "partition_count": int | [int, ...],
//                  "single_partition_of_fp32_groups" | "fp32_flat_groups": [flat tensor, ...],
//                  "base_optimizer_state" | "optimizer_state_dict":
//                    {"state": {group: {kind: flat tensor | value}}} | [{kind: ...}, ...],
//                  "group_paddings": [int, ...], "param_alignment_paddings": [[int, ...], ...],
//                  "param_slice_mappings": [{name: fragment_address}, ...], ...}, ...}
#pragma once

#include "core/formats/deepspeed/zero_file.h"

namespace shw {

struct ZeroShape {
  std::string name;
  Extents shape;
  std::string name_in_files = name;  // differs for experts, which each rank numbers from 0
};

struct ZeroModel {
  std::string path = {};
  std::vector<NamedZeroTensor> module = {};
  std::vector<std::string> buffers = {};            // names in `module`
  std::vector<std::vector<ZeroShape>> groups = {};  // param_shapes
  std::vector<ZeroShape> frozen = {};
  std::map<std::string, ZeroTensor> fragments = {};  // parts of frozen parameters
  std::vector<std::pair<std::string, std::string>> shared =
      {};                                   // name, and name of the tensor that it shares
  std::optional<std::int64_t> ranks = {};   // dp_world_size
  std::int64_t mp_ranks = 1;                // mp_world_size
  std::optional<std::int64_t> stage = {};   // in ds_config
  bool is_data_before_expert = false;       // use_data_before_expert_parallelism in ds_config
  std::optional<std::int64_t> step = {};    // global_steps
  std::optional<std::int64_t> blocks = {};  // args.num_layers of GPT-NeoX
  std::vector<std::int64_t> experts = {};   // num_experts: of each layer with experts
  std::vector<NamedZeroTensor> more_tensors =
      {};  // tensors of the optimizer and of the trainer's own additions
  std::vector<NamedZeroValue> values = {};
};

// A parameter's part of this rank's partition.
struct ZeroSlice {
  std::string name;
  std::int64_t first = 0, count = 0;
};

struct ZeroGroup {
  std::optional<ZeroTensor> master = {};
  std::vector<std::pair<std::string, ZeroTensor>> states = {};  // "exp_avg"
  std::vector<NamedZeroValue> values = {};                      // "step", if it is not a tensor
  std::int64_t padding = 0;                                     // elements removed after `master`
  std::vector<std::int64_t> alignment = {};                     // after each parameter
  std::vector<ZeroSlice> slices = {};
  std::int64_t ranks = 0;  // partition_count
};

struct ZeroOptimizer {
  std::string path = {};
  std::uint32_t rank = 0;
  std::optional<std::int64_t> stage = {};
  std::optional<std::int64_t> step = {};  // of the first group
  std::vector<ZeroGroup> groups = {};
  std::vector<NamedZeroValue> values = {};
  std::int64_t ranks() const;  // the maximum over groups
};

// `whole`: reads everything; otherwise only what differs between ranks.
Result<ZeroModel> read_zero_model(const ZeroFile& file, bool whole, ZeroPickleFindings& notes);
Result<ZeroOptimizer> read_zero_optimizer(const ZeroFile& file, std::uint32_t rank,
                                          ZeroPickleFindings& notes);

}  // namespace shw
