#include "core/formats/torch_file/partial_tensors.h"

#include <fmt/core.h>

#include <string_view>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/formats/common/bad_record.h"

namespace shw {
namespace {

// Formats as "Shard(0)" or "Shard(0), Replicate()".
std::string placements_text(const DTensorSharding& sharding) {
  std::string text;
  for (const std::string& placement : sharding.placements)
    text += (text.empty() ? "" : ", ") + placement;
  return text;
}

std::string rank_text(const DTensorSharding& sharding) {
  return sharding.rank ? fmt::format("rank {}", *sharding.rank) : std::string("one rank");
}

// True for "model_world_size_4_rank_1.pt": the name marks the file as one of several.
bool is_named_for_rank(const std::string& path) {
  constexpr std::string_view kRank = "rank";
  std::size_t at = path.rfind(kRank);
  if (at == std::string::npos) return false;
  at = path.find_first_not_of("_-", at + kRank.size());
  return at != std::string::npos && path[at] >= '0' && path[at] <= '9';
}

}  // namespace

std::optional<PartialTensor> partial_tensor_of(DTensorSharding sharding, ExtentsView local) {
  if (auto box = box_of_local_tensor(sharding, local))
    return PartialTensor{std::move(sharding), std::move(*box)};
  const auto held = volume(local), all = volume(sharding.global_shape);
  if (!held || !all || *held >= *all || sharding.global_shape.size() != local.size())
    return std::nullopt;
  return PartialTensor{std::move(sharding), whole(local), false};
}

void PartialTensors::add(const std::string& fqn, const PartialTensor& part) {
  if (part.box == whole(part.sharding.global_shape)) return;
  subjects_.push_back(fqn);
  held_ = checked_add(held_, volume(part.box.sizes).value_or(0)).value_or(held_);
  all_ = checked_add(all_, volume(part.sharding.global_shape).value_or(0)).value_or(all_);
  if (!example_) example_ = part;
}

std::optional<Finding> PartialTensors::finding(const std::string& path) const {
  if (!example_) return std::nullopt;
  const DTensorSharding& sharding = example_->sharding;
  const std::int64_t ranks = volume(sharding.mesh.shape).value_or(0);
  Finding finding{.rule = "local-saved-as-global", .subjects = subjects_};
  finding.link = "accelerate #4206";
  const std::size_t count = subjects_.size();
  finding.cause = fmt::format(
      "{} only the part of {} of {}: {} is {} of {} by its own mesh and placements ({}). {} of {} "
      "elements are not in {}. {}",
      count == 1 ? subjects_.front() + " is" : plural(count, "tensor") + " are",
      rank_text(sharding), ranks, subjects_.front(), to_text(example_->box.sizes),
      to_text(sharding.global_shape), placements_text(sharding),
      human_count(static_cast<std::uint64_t>(all_ - held_)),
      human_count(static_cast<std::uint64_t>(all_)), path,
      is_named_for_rank(path)
          ? "The files of the other ranks hold the rest."
          : "One rank saved its DTensors without gathering them, so what the others had is lost.");
  finding.evidence = {
      {"file", path},
      {"example", subjects_.front()},
      {"saved_shape", example_->box.sizes},
      {"shape", sharding.global_shape},
      {"placements", placements_text(sharding)},
      {"mesh", to_text(sharding.mesh.shape)},
      {"held_elements", held_},
      {"missing_elements", all_ - held_},
      {"belongs_at", std::vector<Box>{example_->box}},
      {"what_to_do", std::string("save again with every rank taking part: "
                                 "get_model_state_dict(..., StateDictOptions(full_state_dict="
                                 "True)), or full_tensor() of each DTensor")}};
  if (sharding.rank) finding.evidence.emplace_back("rank", *sharding.rank);
  if (example_->is_placed)
    finding.evidence.emplace_back("belongs_at", std::vector<Box>{example_->box});
  return finding;
}

}  // namespace shw
