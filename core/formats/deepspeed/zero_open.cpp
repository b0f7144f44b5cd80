#include "core/formats/deepspeed/zero_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/deepspeed/deepspeed_formats.h"
#include "core/formats/deepspeed/zero_expert_states.h"
#include "core/formats/deepspeed/zero_layers.h"
#include "core/formats/deepspeed/zero_tensors.h"
#include "core/formats/single_file_directory.h"

namespace shw {
namespace {

Finding zero_info_finding(std::string subject, std::string cause) {
  Finding finding = how_read_finding(std::move(subject), std::move(cause));
  return finding;
}

// Adds files of experts, which contain whole tensors of one rank, and returns these.
std::vector<ZeroExpertFile> add_zero_parts(
    CheckpointBuilder& builder, ZeroStorages& storages, const Directory& directory,
    const std::vector<std::pair<std::string, std::string>>& parts, const std::string& prefix,
    ZeroPickleFindings& notes) {
  std::vector<ZeroExpertFile> experts;
  for (const auto& [path, before] : parts) {
    auto file = ZeroFile::open(builder, directory, path, notes);
    if (!file) {
      builder.file(path);
      notes.findings.push_back(bad_record_finding(
          path, "The file " + path + " cannot be read: " + file.error().message + ".",
          file.error().place.offset));
      continue;
    }
    std::vector<NamedZeroTensor> tensors;
    std::vector<NamedZeroValue> values;
    file->read_all_tensors("", file->root(), tensors, values, notes);
    for (const NamedZeroTensor& one : tensors)
      storages.add_whole(prefix + before + one.fqn, one.tensor);
    experts.push_back({path, std::move(tensors)});
  }
  return experts;
}

// Finding for a model states file that is opened without the optimizer files.
Finding model_states_only_finding(const ZeroSave& world) {
  const ZeroModel& model = *world.model;
  const auto ranks = static_cast<std::uint64_t>(model.ranks.value_or(0));
  const std::string from = ranks == 0 ? "the ranks" : plural(ranks, "rank");
  if (world.stage == 3) {
    Finding finding = bad_record_finding(
        model.path, fmt::format("{} holds no weights: it is one rank's model states file of ZeRO "
                                "stage 3, in which parameters are empty. The weights are in the "
                                "optimizer states files of {} next to it: open the folder.",
                                model.path, from));
    finding.severity = Severity::kWarning;
    return finding;
  }
  return zero_info_finding(
      model.path, fmt::format("{} is the model states file of a ZeRO stage {} save: it has the "
                              "full weights; the fp32 masters and optimizer states are in the "
                              "files of {} next to it. Open the folder to check those too.",
                              model.path, world.stage, from));
}

// Finding: weights are complete, but training cannot resume without the optimizer files.
Finding missing_optimizer_finding(const ZeroSave& world) {
  Finding finding = bad_record_finding(
      world.model->path,
      fmt::format("The optimizer states of ZeRO stage {} are missing: none of the files that {} "
                  "wrote is here (zero_pp_rank_R_mp_rank_MM_optim_states.pt). The weights are "
                  "complete, but training cannot resume from them.",
                  world.stage, plural(static_cast<std::uint64_t>(world.ranks), "rank")));
  finding.severity = Severity::kWarning;
  finding.evidence = {{"ranks", world.ranks}};
  return finding;
}

// Finding: in stage 3 the optimizer files hold the weights, and they are missing.
Finding missing_weights_finding(const ZeroSave& world) {
  Finding finding = bad_record_finding(
      world.model->path,
      fmt::format(
          "The weights are missing: with ZeRO stage 3 they are in the optimizer states files of {} "
          "(zero_pp_rank_R_mp_rank_MM_optim_states.pt), and none of them is here.",
          plural(static_cast<std::uint64_t>(world.ranks), "rank")));
  finding.evidence = {{"ranks", world.ranks}};
  return finding;
}

// A file that cannot be read as a whole without the model states file; "" if there is none.
std::string file_needing_model_states(const ZeroSave& world, const ZeroFiles& files) {
  if (!world.optimizers.empty()) return world.optimizers.begin()->second.path;
  if (!files.expert_optimizers.empty()) return files.expert_optimizers.begin()->second;
  return files.parts.empty() ? std::string() : files.parts.front().first;
}

void report_zero_save(const ZeroSave& world, const ZeroFiles& files, bool alone,
                      ZeroPickleFindings& notes) {
  if (!world.model) {
    const std::string path = file_needing_model_states(world, files);
    if (!path.empty() && !alone && files.rank_models.empty() && !files.model) {
      notes.findings.push_back(bad_record_finding(
          path,
          "The model states file is missing (mp_rank_MM_model_states.pt): it holds the "
          "weights and says which parameters are in the optimizer's partitions."));
    }
    return;
  }
  if (alone) {
    if (world.stage != 0) notes.findings.push_back(model_states_only_finding(world));
  } else if (files.optimizers.empty() && world.stage == 3) {
    notes.findings.push_back(missing_weights_finding(world));
  } else if (files.optimizers.empty() && world.stage > 0) {
    notes.findings.push_back(missing_optimizer_finding(world));
  }
}

// Limit, above any real number of ranks: a larger number is damage.
constexpr std::int64_t kMaxModelRanks = 4096;

// Adds missing files of model-parallel ranks, according to the existing files.
std::size_t add_missing_ranks(CheckpointBuilder& builder, const ZeroStep& step,
                              std::int64_t mp_ranks) {
  for (std::uint32_t rank = 0; std::int64_t{rank} < mp_ranks; ++rank) {
    if (!step.by_mp_rank.contains(rank))
      builder.file(fmt::format("mp_rank_{:02}_model_states.pt", rank));
  }
  return std::max(step.by_mp_rank.size(), static_cast<std::size_t>(mp_ranks));
}

// Limits, above any real model: larger numbers are damage.
constexpr std::int64_t kMaxExpertsOfLayer = 1 << 14;
constexpr std::int64_t kMaxExpertFiles = 1 << 17;

// Adds missing files of experts. Each expert has a file of at least one model-parallel rank: of
// all, if the experts are split too.
void add_missing_experts(CheckpointBuilder& builder, const ZeroStep& step,
                         const std::vector<std::int64_t>& counts) {
  std::set<std::string_view> there;
  for (const auto& [rank, files] : step.by_mp_rank) {
    for (const auto& [path, before] : files.parts)
      there.insert(std::string_view(path).substr(0, path.find("_mp_rank_")));
  }
  const std::uint32_t rank = step.by_mp_rank.begin()->first;
  std::int64_t all = 0;
  for (std::size_t layer = 0; layer < counts.size(); ++layer) {
    const std::int64_t count = std::clamp<std::int64_t>(counts[layer], 0, kMaxExpertsOfLayer);
    all += count;
    if (all > kMaxExpertFiles) return;
    for (std::int64_t expert = 0; expert < count; ++expert) {
      const std::string name = fmt::format("layer_{}_expert_{}", layer, expert);
      if (!there.contains(name))
        builder.file(fmt::format("{}_mp_rank_{:02}_model_states.pt", name, rank));
    }
  }
}

Finding layers_finding(const ZeroStep& step, std::size_t ranks) {
  const ZeroLayer& first = step.layers.front();
  std::set<std::string> layers;
  for (const ZeroLayer& layer : step.layers) layers.insert(layer.prefix);
  const std::string states =
      ranks > 1 ? " Other states of model-parallel ranks have the prefix mp_rank_00. and so on."
                : "";
  return zero_info_finding(
      first.path,
      fmt::format(
          "The files hold {} of a pipeline, and tensors are listed with their layer's name in "
          "front ({}NAME).{} Missing layers are reported only as a gap between equal blocks.",
          plural(layers.size(), "layer"), first.prefix, states));
}

Finding tensor_parallel_finding(const ZeroStep& step, std::size_t ranks) {
  const std::string first = fmt::format("mp_rank_{:02}", step.by_mp_rank.begin()->first);
  return zero_info_finding(
      first, fmt::format("{} model-parallel ranks saved, and each rank's tensors have its own "
                         "prefix here ({}., ...). The files do not record how these form whole "
                         "tensors, so it is not checked whether any are missing.",
                         ranks, first));
}

void record_layers(const ZeroModel& model, RecordedLayers& layers) {
  if (!layers.blocks && model.blocks) {
    layers.path = model.path;
    layers.blocks = model.blocks;
  }
  for (const std::vector<ZeroShape>& group : model.groups) {
    for (const ZeroShape& one : group) {
      std::uint32_t number = 0;
      const char* end = one.name.data() + one.name.size();
      const auto read = std::from_chars(one.name.data(), end, number);
      if (read.ec == std::errc() && read.ptr != end && *read.ptr == '.')
        layers.numbers.insert(number);
    }
  }
}

}  // namespace

OpenedCheckpoint open_zero(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto entries, directory->list());
  const ZeroStep step = zero_step_of(entries);
  const bool alone = is_single_file_directory(*directory);
  if (progress != nullptr) progress->begin(Phase::kOpening, entries.size(), false);
  CheckpointBuilder builder;
  builder.set_format(kZeroFormat);
  builder.set_directory(directory);
  ZeroStorages storages(builder);
  ZeroPickleFindings notes;
  std::optional<Error> error;
  RecordedLayers layers;
  bool is_read = false, are_experts_counted = false;
  std::size_t mp_ranks = step.by_mp_rank.size();
  for (const auto& [mp_rank, files] : step.by_mp_rank) {
    SHW_TRY(ZeroSave world, read_zero_save(builder, *directory, files, notes, progress));
    if (world.model && !alone)
      mp_ranks = add_missing_ranks(
          builder, step, std::clamp<std::int64_t>(world.model->mp_ranks, 1, kMaxModelRanks));
    if (world.model) record_layers(*world.model, layers);
    // At stage 3 experts have no files of their own. A stage of a pipeline counts its own experts.
    if (world.model && files.model && world.stage != 3 && !alone && !are_experts_counted &&
        step.layers.empty()) {
      add_missing_experts(builder, step, world.model->experts);
      are_experts_counted = true;
    }
    if (!error && world.error) error = std::move(world.error);
    is_read = is_read || world.model || !world.optimizers.empty() || !files.parts.empty() ||
              !files.expert_optimizers.empty();
    const std::string prefix = mp_ranks > 1 ? fmt::format("mp_rank_{:02}.", mp_rank) : "";
    report_zero_save(world, files, alone, notes);
    add_zero_tensors(builder, storages, world, prefix, notes);
    auto experts = add_zero_parts(builder, storages, *directory, files.parts, prefix, notes);
    add_expert_states(builder, storages, *directory, files, world.model, std::move(experts), prefix,
                      notes);
  }
  add_zero_layers(builder, storages, *directory, step.layers, layers, notes);
  is_read = is_read || !step.layers.empty();
  if (!is_read && error) return tl::unexpected<Error>(std::move(*error));
  if (!step.layers.empty())
    notes.findings.push_back(layers_finding(step, mp_ranks));
  else if (mp_ranks > 1)
    notes.findings.push_back(tensor_parallel_finding(step, mp_ranks));
  for (Finding& finding : notes.findings) builder.add_finding(std::move(finding));
  return builder.finish();
}

}  // namespace shw
