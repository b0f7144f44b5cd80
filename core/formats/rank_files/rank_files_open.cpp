#include "core/formats/rank_files/rank_files_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/rank_boxes.h"
#include "core/formats/common/record_reader.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/torch_file_tensors.h"
#include "core/formats/common/torch_file_with_findings.h"
#include "core/formats/rank_chunks.h"
#include "core/formats/rank_files/rank_names.h"
#include "core/model/builder.h"
#include "core/model/state_path.h"

namespace shw {
namespace {

constexpr Format kRankFilesFormat = {
    .name = "rank-files",
    .title = "torch.save file per rank",
    .codec = &kZipRecordCodec,
    .traits = {.writer_of_file = rank_of_file},
};
constexpr std::size_t kMaxRankFindings = 32;

class RankFilesReading {
 public:
  RankFilesReading(std::shared_ptr<const Directory> directory, const RankFiles& files)
      : directory_(*directory), files_(files) {
    builder_.set_format(kRankFilesFormat);
    builder_.set_directory(std::move(directory));
  }

  OpenedCheckpoint run(Progress* progress) {
    for (const auto& [kind, paths] : files_.by_kind) {
      pieces_.clear();
      order_.clear();
      for (std::uint32_t rank = 0; rank < files_.ranks; ++rank) {
        if (is_cancelled(progress)) return cancelled_error();
        auto path = paths.find(rank);
        // Adds the file as missing under its expected name.
        if (path == paths.end())
          builder_.file(rank_file_name({kind, files_.ranks, rank}));
        else
          read_file(kind, rank, path->second);
        if (progress != nullptr) progress->add(1);
      }
      for (const std::string& fqn : order_) add_tensor(fqn, pieces_.at(fqn));
    }
    if (!is_read_ && error_) return tl::unexpected<Error>(std::move(*error_));
    report_other_saves();
    for (Finding& finding : notes_.findings) builder_.add_finding(std::move(finding));
    for (auto& [reason, names] : unreadable_) note_unreadable(reason, names);
    return builder_.finish();
  }

 private:
  void read_file(const std::string& kind, std::uint32_t rank, const std::string& path) {
    auto file = read_torch_file_with_findings(directory_, path, notes_);
    const FileId id = builder_.file(path);
    if (!file) {
      Error& error = file.error();
      builder_.add_finding(
          bad_record_finding(path, "The file " + path + " cannot be read: " + error.message + ".",
                             error.place.offset));
      if (!error_) error_ = std::move(error);
      return;
    }
    is_read_ = true;
    // Tensors outside of model and optimizer belong to one rank alone: random states.
    std::string prefix = kind == "model" ? "" : kind + ".";
    if (kind != "model" && kind != "optim") prefix += fmt::format("rank_{}.", rank);
    for (TorchFileTensor& tensor : file->tensors) {
      std::string fqn = prefix + dotted_path(tensor.path);
      auto [known, is_new] = pieces_.try_emplace(fqn);
      if (is_new) order_.push_back(fqn);
      known->second.push_back({rank, id, std::move(tensor)});
    }
    for (const UnreadableTensor& one : file->unreadable)
      unreadable_[one.error.message].push_back(prefix + dotted_path(one.path));
  }

  void add_tensor(const std::string& fqn, const std::vector<RankPiece>& pieces) {
    const TorchFileTensor& first = pieces.front().tensor;
    const Extents shape = first.sharding ? first.sharding->global_shape : first.sizes;
    builder_.add_tensor(fqn, first.dtype, shape);
    chunks_.begin_tensor();
    for (const RankPiece& piece : pieces) {
      const TorchFileTensor& tensor = piece.tensor;
      const Extents own = tensor.sharding ? tensor.sharding->global_shape : tensor.sizes;
      if (tensor.dtype != first.dtype || own != shape) {
        unreadable_["has a different shape or dtype on another rank"].push_back(fqn);
        continue;
      }
      auto boxes = tensor.sharding ? boxes_of_sharding(*tensor.sharding, piece.rank)
                                   : Result<std::vector<Box>>({whole(shape)});
      if (!boxes) {
        unreadable_[boxes.error().message].push_back(fqn);
        continue;
      }
      if (auto added = chunks_.add(piece, *boxes); !added)
        unreadable_[added.error().message].push_back(fqn);
    }
  }

  void note_unreadable(const std::string& reason, std::vector<std::string>& names) {
    if (++noted_ > kMaxRankFindings) return;
    Finding finding =
        bad_record_finding(names.front(), fmt::format("{}: {}.", short_list_text(names), reason));
    finding.rule = "not-looked-at";
    finding.severity = Severity::kInfo;
    finding.evidence = {{"count", static_cast<std::int64_t>(names.size())}};
    finding.subjects = std::move(names);
    builder_.add_finding(std::move(finding));
  }

  void report_other_saves() {
    if (files_.others.empty()) return;
    Finding finding = bad_record_finding(
        files_.others.front(),
        fmt::format("This folder also has {} from a save with a different number of ranks, not "
                    "read: {}. The save with {} ranks was chosen because the fewest of its files "
                    "are missing.",
                    plural(files_.others.size(), "file"), short_list_text(files_.others),
                    files_.ranks));
    finding.severity = Severity::kWarning;
    finding.subjects = files_.others;
    builder_.add_finding(std::move(finding));
  }

  const Directory& directory_;
  const RankFiles& files_;
  CheckpointBuilder builder_;
  RankChunks chunks_{builder_};
  std::unordered_map<std::string, std::vector<RankPiece>> pieces_;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<std::string>> unreadable_;
  PickleFindings notes_;
  std::optional<Error> error_;
  std::size_t noted_ = 0;
  bool is_read_ = false;
};

// True if the file has DTensors of a mesh of `ranks` ranks.
bool has_placements(const Directory& directory, const std::string& path, std::uint32_t ranks) {
  auto source = directory.open(path);
  auto opened =
      source ? open_and_decode_torch_file(*source) : tl::unexpected<Error>(source.error());
  auto file = opened ? tensors_of_torch_file(*opened) : tl::unexpected<Error>(opened.error());
  return file && std::any_of(file->tensors.begin(), file->tensors.end(), [&](const auto& tensor) {
           return tensor.sharding && tensor.sharding->mesh.ranks.size() == ranks;
         });
}

Result<bool> has_rank_files(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  const bool are_named = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return is_top_file(entry) && parse_rank_file(entry.path).has_value();
  });
  if (are_named) return true;
  const RankFiles numbered = numbered_rank_files(entries);
  return numbered.ranks != 0 &&
         has_placements(look.directory(), numbered.by_kind.begin()->second.begin()->second,
                        numbered.ranks);
}

FileRole rank_file_role(std::string_view file) {
  return parse_rank_file(file) ? FileRole::kCheckpoint : FileRole::kNothing;
}

}  // namespace

OpenedCheckpoint open_rank_files(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto entries, directory->list());
  RankFiles files = rank_files_of(entries);
  if (files.ranks == 0) files = numbered_rank_files(entries);
  if (progress != nullptr) progress->begin(Phase::kOpening, entries.size(), false);
  return RankFilesReading(std::move(directory), files).run(progress);
}

constexpr FormatRow kRankFilesRow = {
    .format = &kRankFilesFormat,
    .sign = "world_size_W_rank_R.pt",
    .recognises = has_rank_files,
    .open = open_rank_files,
    .named = rank_file_role,
};

}  // namespace shw
