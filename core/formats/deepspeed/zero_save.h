// The files of one model-parallel rank of a ZeRO step, read up to their pickles.
#pragma once

#include "core/formats/deepspeed/zero_names.h"
#include "core/formats/deepspeed/zero_states.h"

namespace shw {

struct ZeroFiles {
  std::optional<std::string> model = {};                  // stages 0, 1, 2
  std::map<std::uint32_t, std::string> rank_models = {};  // stage 3
  std::map<std::uint32_t, std::string> optimizers = {};
  std::vector<std::pair<std::string, std::string>> parts = {};  // path, and prefix of tensor names
  std::map<std::uint32_t, std::string> expert_optimizers = {};  // by expert-parallel rank
};

// Layer of a pipeline, with one file per tensor-parallel rank.
struct ZeroLayer {
  std::string path;
  std::string prefix;  // prefix of tensor names: "layer_03."
  std::uint32_t rank = 0;
};

struct ZeroStep {
  std::map<std::uint32_t, ZeroFiles> by_mp_rank = {};
  std::vector<ZeroLayer> layers = {};
};
// Groups the files at the top of the folder by the rank and the kind in their names: model,
// optimizer or pipeline layer. Ignores other files.
ZeroStep zero_step_of(std::span<const Entry> entries);

struct ZeroSave {
  std::int64_t stage = 0;
  std::int64_t ranks = 0;
  bool stage_is_known = false;
  std::optional<ZeroModel> model = {};                  // of the lowest readable rank
  std::map<std::uint32_t, ZeroModel> rank_models = {};  // other ranks, if parameters are frozen
  std::map<std::uint32_t, ZeroOptimizer> optimizers = {};
  std::set<std::string> unread = {};               // damaged files
  std::map<std::uint32_t, std::string> lost = {};  // missing optimizer files, by rank
  std::optional<Error> error = {};                 // the first error
};
// Adds findings to `notes` and missing files to `builder`.
Result<ZeroSave> read_zero_save(CheckpointBuilder& builder, const Directory& directory,
                                const ZeroFiles& files, ZeroPickleFindings& notes,
                                Progress* progress);

}  // namespace shw
