#include "core/formats/torch_checkpointing/items_tensors.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/rank_boxes.h"
#include "core/model/state_path.h"

namespace shw {
namespace {

constexpr std::size_t kMaxItemFindings = 32;

// Ignores the ranks of the mesh, because a saved submesh contains those of its root.
bool is_same_sharding(const DTensorSharding& a, const DTensorSharding& b) {
  return a.global_shape == b.global_shape && a.placements == b.placements &&
         a.mesh.shape == b.mesh.shape;
}

std::string placements_of(const DTensorSharding& sharding) {
  std::string text;
  for (const std::string& one : sharding.placements) text += (text.empty() ? "" : ", ") + one;
  return text;
}

}  // namespace

void ItemsTensors::add(const ItemSource& source, ItemTensors tensors) {
  for (TorchFileTensor& tensor : tensors.tensors) {
    const std::string path = dotted_path(tensor.path);
    if (tensor.sharding) check_recorded_rank(source, tensor);
    // Without metadata, plain tensors of several ranks cannot be known to be copies of one.
    const bool is_own = !tensor.sharding && !source.is_recorded;
    std::string fqn =
        source.item + "." + (is_own ? fmt::format("rank_{}.", source.rank) : std::string()) + path;
    if (path.empty()) fqn.pop_back();
    auto [known, is_new] = named_.try_emplace(fqn);
    if (is_new) {
      order_.push_back(fqn);
      known->second.item = source.item;
      known->second.path = path;
    }
    known->second.pieces.push_back({source.rank, source.file, std::move(tensor), tensors.codec});
    known->second.files.push_back(source.path);
  }
  for (const UnreadableTensor& one : tensors.unreadable)
    unread_[one.error.message].emplace_back(source.item + "." + dotted_path(one.path), source.path);
}

// Checks the rank that every DTensor records. Python's hash of a mesh is constant in a process:
// another hash in a file of the same rank comes from another run of the program.
void ItemsTensors::check_recorded_rank(const ItemSource& source, const TorchFileTensor& tensor) {
  const DTensorSharding& sharding = *tensor.sharding;
  if (sharding.rank && *sharding.rank != source.rank)
    swapped_.emplace(source.path, fmt::format("rank {}", *sharding.rank));
  if (!sharding.mesh_hash) return;
  std::string mesh = fmt::format("{}:{}", source.rank, to_text(sharding.mesh.shape));
  for (std::int64_t rank : sharding.mesh.ranks) mesh += fmt::format(",{}", rank);
  for (const std::string& name : sharding.mesh.dim_names) mesh += "/" + name;
  auto [known, is_new] = hashes_.try_emplace(mesh, *sharding.mesh_hash, source.path);
  if (!is_new && known->second.first != *sharding.mesh_hash && known->second.second != source.path)
    stale_.emplace(source.path, known->second.second);
}

const ItemGroup* ItemsTensors::group_of(const Named& named, std::uint32_t rank) const {
  if (metadata_ == nullptr) return nullptr;
  auto item = metadata_->items.find(named.item);
  if (item == metadata_->items.end()) return nullptr;
  auto groups = item->second.tensors.find(named.path);
  if (groups == item->second.tensors.end()) return nullptr;
  for (const ItemGroup& group : groups->second) {
    const bool is_of = std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
    if (is_of && group.is_known) return &group;
  }
  return nullptr;
}

void ItemsTensors::finish(const ItemsMetadata* metadata, std::uint32_t ranks) {
  metadata_ = metadata;
  for (const std::string& fqn : order_) add_tensor(fqn, named_.at(fqn));
  if (metadata_ != nullptr) add_lost(ranks);
  report_wrong_items();
}

void ItemsTensors::add_tensor(const std::string& fqn, Named& named) {
  check_recorded(fqn, named);
  const RankPiece& first = named.pieces.front();
  const ItemGroup* group = group_of(named, first.rank);
  const Extents shape = group != nullptr        ? group->sharding.global_shape
                        : first.tensor.sharding ? first.tensor.sharding->global_shape
                                                : first.tensor.sizes;
  builder_.add_tensor(fqn, first.tensor.dtype, shape);
  chunks_.begin_tensor();
  for (std::size_t i = 0; i < named.pieces.size(); ++i)
    add_piece(fqn, named, i, first.tensor.dtype, shape);
}

void ItemsTensors::add_piece(const std::string& fqn, const Named& named, std::size_t at,
                             Dtype dtype, const Extents& shape) {
  const RankPiece& piece = named.pieces[at];
  const std::string& file = named.files[at];
  const ItemGroup* group = group_of(named, piece.rank);
  const auto& own = piece.tensor.sharding;
  if (own && group != nullptr && !is_same_sharding(*own, group->sharding))
    note(fmt::format("is {} by {} in its file, but {} by {} in metadata.pkl",
                     to_text(own->global_shape), placements_of(*own),
                     to_text(group->sharding.global_shape), placements_of(group->sharding)),
         fqn, file);
  if (group != nullptr && group->dtype != piece.tensor.dtype)
    note(fmt::format("is {} in its file, but {} in metadata.pkl", name(piece.tensor.dtype),
                     name(group->dtype)),
         fqn, file);
  if (piece.tensor.dtype != dtype)
    return note("has different dtypes on different ranks", fqn, file);
  const DTensorSharding* sharding = own ? &*own : group != nullptr ? &group->sharding : nullptr;
  auto boxes = sharding != nullptr ? boxes_of_sharding(*sharding, piece.rank)
                                   : Result<std::vector<Box>>({whole(shape)});
  if (!boxes) {
    unread_[boxes.error().message].emplace_back(fqn, file);
    return;
  }
  const bool fits = std::all_of(boxes->begin(), boxes->end(), [&](const Box& box) {
    return is_inside(box.offsets, box.sizes, shape);
  });
  if (!fits || !chunks_.add(piece, *boxes))
    note(fmt::format("has the shape {} on rank {}, which is not that rank's shard of {}",
                     to_text(piece.tensor.sizes), piece.rank, to_text(shape)),
         fqn, file);
}

// Reports a tensor that is in a file but not in metadata.pkl: resharding loses it.
void ItemsTensors::check_recorded(const std::string& fqn, const Named& named) {
  if (metadata_ == nullptr) return;
  auto item = metadata_->items.find(named.item);
  if (item != metadata_->items.end() && !item->second.tensors.contains(named.path))
    unrecorded_.push_back(fqn);
}

// Reports tensors of metadata.pkl that no readable file contains.
void ItemsTensors::add_lost(std::uint32_t) {
  std::vector<std::string> lost;
  for (const auto& [item, saved] : metadata_->items) {
    for (const auto& [path, groups] : saved.tensors) {
      const std::string fqn = path.empty() ? item : item + "." + path;
      if (named_.contains(fqn) || groups.empty()) continue;
      const ItemGroup& group = groups.front();
      if (!volume(group.sharding.global_shape) || group.dtype == Dtype::kUnknown) continue;
      builder_.add_tensor(fqn, group.dtype, group.sharding.global_shape);
      lost.push_back(fqn);
    }
  }
  if (lost.empty()) return;
  Finding finding = bad_record_finding(
      lost.front(), fmt::format("{} that metadata.pkl has {} in no file that could be read: {}.",
                                plural(lost.size(), "tensor"), lost.size() == 1 ? "is" : "are",
                                short_list_text(lost)));
  finding.subjects = std::move(lost);
  builder_.add_finding(std::move(finding));
}

void ItemsTensors::note(const std::string& reason, const std::string& fqn,
                        const std::string& file) {
  wrong_[reason].emplace_back(fqn, file);
}

void ItemsTensors::report_wrong_items() {
  std::size_t noted = 0;
  auto add = [&](std::string subject, std::string cause, Severity severity) {
    if (++noted > kMaxItemFindings) return;
    Finding finding = bad_record_finding(std::move(subject), std::move(cause));
    finding.severity = severity;
    builder_.add_finding(std::move(finding));
  };
  for (const auto& [file, rank] : swapped_)
    add(file,
        fmt::format("{} was written by {}, according to its DTensors: the file has another rank's "
                    "name. Its shards would load at that rank's positions.",
                    file, rank),
        Severity::kError);
  for (const auto& [file, other] : stale_)
    add(file,
        fmt::format(
            "{} and {} were not written by the same process: Python's hash of the mesh differs. "
            "One of them is left over from another run, so the items come from two steps.",
            file, other),
        Severity::kError);
  for (const auto& [reason, where] : wrong_)
    add(where.front().first,
        fmt::format(
            "{} in {} {}{}.", where.front().first, where.front().second, reason,
            where.size() == 1 ? std::string() : fmt::format(" (and {} more)", where.size() - 1)),
        Severity::kError);
  if (!unrecorded_.empty())
    add(unrecorded_.front(),
        fmt::format("{} in the rank files {} not in metadata.pkl: {}. A load on the same ranks "
                    "reads them; a load on any other mesh skips them.",
                    plural(unrecorded_.size(), "tensor"), unrecorded_.size() == 1 ? "is" : "are",
                    short_list_text(unrecorded_)),
        Severity::kWarning);
  for (const auto& [reason, where] : unread_) {
    if (++noted > kMaxItemFindings) return;
    Finding finding = bad_record_finding(
        where.front().first,
        fmt::format("{} in {}: {}.", where.front().first, where.front().second, reason));
    finding.rule = "not-looked-at";
    finding.severity = Severity::kInfo;
    builder_.add_finding(std::move(finding));
  }
}

}  // namespace shw
