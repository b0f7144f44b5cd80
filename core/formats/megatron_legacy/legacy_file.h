// One rank's file of Megatron's `torch` format, parsed without reading tensor data.
//
//   file = {"args": Namespace, "model": nested | "model0": nested, "model1": ..., "iteration",
//           "checkpoint_version", "optimizer", "opt_param_scheduler", "rng_state", ...}
//   nested = {name: nested | tensor | other}    names of the last level are dotted
//   distrib_optim.pt, optim.pt = any structure of flat tensors
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/common/pickle_notes.h"
#include "core/formats/common/torch_file_tensors.h"
#include "core/formats/megatron_legacy/legacy_names.h"

namespace shw {

// Values from args; nullopt if missing there.
struct LegacyArgs {
  std::optional<std::uint32_t> tensor = {}, pipeline = {}, expert = {}, world = {}, experts = {};
  std::optional<std::uint32_t> expert_tensor = {};
  std::optional<bool> is_gated = {};
};

struct LegacyValue {
  std::string name;
  InlinedValue value;
};

struct LegacyFile {
  LegacyArgs args = {};
  std::optional<std::int64_t> iteration = {};
  std::vector<TorchFileTensor> tensors = {};
  std::vector<UnreadableTensor> unreadable = {};
  std::vector<LegacyValue> values = {};  // top-level entries without tensors
};
Result<LegacyFile> read_legacy_file(const Directory& directory, const std::string& path,
                                    PickleFindings& notes);

// Splits a key into "model" and chunk number: 0 for "model", 3 for "model3"; nullopt for other
// keys.
std::optional<std::uint32_t> model_chunk(const PathPart& key);

}  // namespace shw
