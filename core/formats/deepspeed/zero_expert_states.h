// The optimizer states of a mixture of experts at ZeRO stage 0 (expp_rank_R_mp_rank_MM): every
// expert-parallel rank saves the states of all parameters that it has, by number.
//
//   file = {"optimizer": {"state": {number: {kind: tensor | value}},
//                         "param_groups": [{"params": [number, ...], "moe": bool, ...}, ...]}}
//        | {"optimizer": {"optimizer_state_dict": {as above}, "fp32_groups": [[tensor, ...], ...]}}
//
// No file records the names. The numbers of the groups without "moe" follow the module's
// parameters, those of the others the experts of the rank, each in the order of the module. Where
// that gives every state the shape of its parameter, it is "optimizer.state.NAME.KIND", with the
// expert's number in the whole model, and states that several ranks have are copies. Else a rank's
// states keep their numbers: "expp_rank_R.optimizer.state.0.exp_avg".
#pragma once

#include "core/formats/deepspeed/zero_save.h"

namespace shw {

// The experts of one layer file, in the order of its parameters.
struct ZeroExpertFile {
  std::string path;
  std::vector<NamedZeroTensor> tensors;
};

// `experts`: all files of experts. `prefix`: "mp_rank_01." if there are several model-parallel
// ranks.
void add_expert_states(CheckpointBuilder& builder, ZeroStorages& storages,
                       const Directory& directory, const ZeroFiles& files,
                       const std::optional<ZeroModel>& model, std::vector<ZeroExpertFile> experts,
                       const std::string& prefix, ZeroPickleFindings& notes);

}  // namespace shw
