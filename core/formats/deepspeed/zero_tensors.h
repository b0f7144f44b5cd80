// The tensors of one model-parallel rank of a ZeRO step, under these names:
//
//   NAME                          the weight as the module has it; in stage 3 only the
//                                 fp32 master exists, joined from all ranks
//   optimizer.state.NAME.fp32     the fp32 master, in stages 1 and 2
//   optimizer.state.NAME.KIND     exp_avg, exp_avg_sq, momentum_buffer, step and others
//   optimizer.flat_groups.G.KIND.rank_R    a partition whose parameters no file names
//
// The names follow torch's state dict; in the files a partition is one flat tensor without names. A
// chunk is a view of its partition.
#pragma once

#include "core/formats/deepspeed/zero_save.h"

namespace shw {

// `prefix`: "mp_rank_01." if there are several model-parallel ranks.
void add_zero_tensors(CheckpointBuilder& builder, ZeroStorages& storages, const ZeroSave& world,
                      const std::string& prefix, ZeroPickleFindings& notes);

}  // namespace shw
