#include "core/formats/deepspeed/zero_save.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/steps_of_files.h"
#include "core/formats/common/top_file.h"
#include "core/formats/single_file_directory.h"

namespace shw {
namespace {

// Limit, above any real number of ranks: a larger number is damage.
constexpr std::int64_t kMaxZeroRanks = 1 << 16;
constexpr std::size_t kMaxUnreadFindings = 16;

class ZeroSaveReader {
 public:
  ZeroSaveReader(CheckpointBuilder& builder, const Directory& directory, const ZeroFiles& files,
                 ZeroPickleFindings& notes, Progress* progress)
      : builder_(builder),
        directory_(directory),
        files_(files),
        notes_(notes),
        progress_(progress) {}

  Result<ZeroSave> run() {
    SHW_CHECK(read_models());
    SHW_CHECK(read_optimizers());
    resolve_stage();
    resolve_ranks();
    if (zero_save_.ranks > kMaxZeroRanks)
      return fail(ErrorKind::kDamaged,
                  fmt::format("says that {} ranks saved, which is impossible", zero_save_.ranks),
                  {first_known_file()});
    ignore_other_saves();
    add_missing_rank_files();
    report_mixed_steps();
    return std::move(zero_save_);
  }

 private:
  std::string first_known_file() const {
    if (zero_save_.model) return zero_save_.model->path;
    return zero_save_.optimizers.empty() ? std::string()
                                         : zero_save_.optimizers.begin()->second.path;
  }

  Status step() {
    if (is_cancelled(progress_)) return cancelled_error();
    if (progress_ != nullptr) progress_->add(1);
    return {};
  }

  void note_unread(const std::string& path, Error error) {
    builder_.file(path);
    zero_save_.unread.insert(path);
    if (zero_save_.unread.size() <= kMaxUnreadFindings) {
      Finding finding = bad_record_finding(
          path, "The file " + path + " cannot be read: " + error.message + ".", error.place.offset);
      if (error.kind == ErrorKind::kUnsupported) {
        finding.rule = "not-looked-at";
        finding.severity = Severity::kInfo;
      }
      notes_.findings.push_back(std::move(finding));
    }
    if (!zero_save_.error) zero_save_.error = std::move(error);
  }

  Result<ZeroModel> model_of(const std::string& path, bool whole) {
    SHW_TRY(ZeroFile file, ZeroFile::open(builder_, directory_, path, notes_));
    return read_zero_model(file, whole, notes_);
  }

  Status read_models() {
    std::map<std::uint32_t, std::string> paths = files_.rank_models;
    // A leftover file of stage 1 or 2 next to files of stage 3 belongs to another save.
    if (files_.model && paths.empty()) paths.emplace(0, *files_.model);
    for (const auto& [rank, path] : paths) {
      SHW_CHECK(step());
      auto model = model_of(path, !zero_save_.model);
      if (model) model_steps_[rank] = {path, model->step};
      if (!model) {
        note_unread(path, std::move(model).error());
      } else if (!zero_save_.model) {
        zero_save_.model = std::move(*model);
        model_rank_ = rank;
      } else if (!model->fragments.empty()) {
        model->groups.clear();
        zero_save_.rank_models.emplace(rank, std::move(*model));
      }
    }
    if (zero_save_.model && !zero_save_.model->fragments.empty() && !files_.rank_models.empty()) {
      ZeroModel own;
      own.path = zero_save_.model->path;
      own.fragments = zero_save_.model->fragments;
      zero_save_.rank_models.emplace(model_rank_, std::move(own));
    }
    return {};
  }

  Status read_optimizers() {
    for (const auto& [rank, path] : files_.optimizers) {
      SHW_CHECK(step());
      auto read = [&, at = rank, &file_path = path]() -> Result<ZeroOptimizer> {
        SHW_TRY(ZeroFile file, ZeroFile::open(builder_, directory_, file_path, notes_));
        return read_zero_optimizer(file, at, notes_);
      }();
      if (read)
        zero_save_.optimizers.emplace(rank, std::move(*read));
      else
        note_unread(path, std::move(read).error());
    }
    return {};
  }

  void resolve_stage() {
    std::optional<std::int64_t> stage;
    for (const auto& [rank, optimizer] : zero_save_.optimizers) {
      if (!stage) stage = optimizer.stage;
    }
    if (!stage && zero_save_.model) stage = zero_save_.model->stage;
    zero_save_.stage_is_known = stage.has_value();
    zero_save_.stage = stage.value_or(files_.optimizers.empty() ? 0 : 1);
    if (!files_.rank_models.empty()) zero_save_.stage = 3;
  }

  void resolve_ranks() {
    for (const auto& [rank, optimizer] : zero_save_.optimizers)
      zero_save_.ranks = zero_save_.ranks == 0 ? optimizer.ranks() : zero_save_.ranks;
    if (zero_save_.ranks == 0 && zero_save_.model)
      zero_save_.ranks = zero_save_.model->ranks.value_or(0);
    if (zero_save_.ranks <= 0 && !files_.optimizers.empty())
      zero_save_.ranks = std::int64_t{files_.optimizers.rbegin()->first} + 1;
    zero_save_.ranks = std::max<std::int64_t>(zero_save_.ranks, 1);
  }

  // Ignores and reports files of ranks that this save does not have, and files of a save by another
  // number of ranks.
  void ignore_other_saves() {
    std::vector<std::string> beyond, other;
    std::erase_if(zero_save_.optimizers, [&](const auto& at) {
      const bool is_beyond = std::int64_t{at.first} >= zero_save_.ranks;
      const std::int64_t own = at.second.ranks();
      const bool is_other = !is_beyond && own != 0 && own != zero_save_.ranks;
      if (is_beyond) beyond.push_back(at.second.path);
      if (is_other) other.push_back(at.second.path);
      return is_beyond || is_other;
    });
    for (const auto& [rank, path] : files_.rank_models) {
      if (std::int64_t{rank} >= zero_save_.ranks) beyond.push_back(path);
    }
    std::erase_if(zero_save_.rank_models,
                  [&](const auto& at) { return std::int64_t{at.first} >= zero_save_.ranks; });
    if (!beyond.empty())
      report_ignored_files(beyond,
                           fmt::format("of ranks that this save does not have: "
                                       "{} saved, so the highest is rank {}",
                                       plural(static_cast<std::uint64_t>(zero_save_.ranks), "rank"),
                                       zero_save_.ranks - 1));
    if (!other.empty())
      report_ignored_files(other,
                           fmt::format("from a save with a number of ranks other than the {} of {}",
                                       zero_save_.ranks, first_known_file()));
  }

  void report_ignored_files(const std::vector<std::string>& paths, const std::string& what) {
    Finding finding = bad_record_finding(
        paths.front(), fmt::format("{} {} {}. {} left there by another save into this folder, and "
                                   "DeepSpeed's tools fail at the wrong number of files.",
                                   short_list_text(paths), paths.size() == 1 ? "is" : "are", what,
                                   paths.size() == 1 ? "It was" : "They were"));
    finding.severity = Severity::kWarning;
    finding.subjects = paths;
    finding.evidence = {{"ranks", zero_save_.ranks},
                        {"files", static_cast<std::int64_t>(paths.size())}};
    notes_.findings.push_back(std::move(finding));
  }

  // Only compares steps of files that were not ignored.
  void report_mixed_steps() {
    MixedStepsCheck models, optimizers;
    for (const auto& [rank, saved] : model_steps_) {
      if (std::int64_t{rank} < zero_save_.ranks) models.add(saved.first, saved.second);
    }
    for (const auto& [rank, optimizer] : zero_save_.optimizers)
      optimizers.add(optimizer.path, optimizer.step);
    if (auto mixed = models.finding("global step")) notes_.findings.push_back(std::move(*mixed));
    if (auto mixed = optimizers.finding("optimizer step"))
      notes_.findings.push_back(std::move(*mixed));
  }

  void add_missing_rank_files() {
    // A single file, or stage 0, has no data per rank.
    if (is_single_file_directory(directory_) ||
        (files_.optimizers.empty() && zero_save_.stage != 3))
      return;
    std::string like;
    if (!files_.optimizers.empty()) like = files_.optimizers.begin()->second;
    for (std::uint32_t rank = 0; std::int64_t{rank} < zero_save_.ranks; ++rank) {
      if (files_.optimizers.contains(rank)) continue;
      const std::string path = like.empty() ? "" : zero_name_of_rank(like, rank);
      if (path.empty()) continue;
      builder_.file(path);
      zero_save_.lost.emplace(rank, path);
    }
    if (files_.rank_models.empty()) return;
    const std::string& model = files_.rank_models.begin()->second;
    for (std::uint32_t rank = 0; std::int64_t{rank} < zero_save_.ranks; ++rank) {
      if (!files_.rank_models.contains(rank)) builder_.file(zero_name_of_rank(model, rank));
    }
  }

  CheckpointBuilder& builder_;
  const Directory& directory_;
  const ZeroFiles& files_;
  ZeroPickleFindings& notes_;
  Progress* progress_;
  ZeroSave zero_save_ = {};
  std::uint32_t model_rank_ = 0;
  std::map<std::uint32_t, std::pair<std::string, std::optional<std::int64_t>>>
      model_steps_;  // by rank: the file, and its recorded step
};

}  // namespace

ZeroStep zero_step_of(std::span<const Entry> entries) {
  ZeroStep step;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry)) continue;
    auto name = parse_zero_name(entry.path);
    if (!name) continue;
    if (name->is_layer) {
      step.layers.push_back({entry.path, name->prefix, name->mp_rank});
      continue;
    }
    ZeroFiles& files = step.by_mp_rank[name->mp_rank];
    switch (name->kind) {
      case ZeroFileKind::kOptimizer:
        files.optimizers.emplace(name->rank, entry.path);
        break;
      case ZeroFileKind::kRankModel:
        files.rank_models.emplace(name->rank, entry.path);
        break;
      case ZeroFileKind::kModel:
        files.model = entry.path;
        break;
      case ZeroFileKind::kPart:
        files.parts.emplace_back(entry.path, name->prefix);
        break;
      case ZeroFileKind::kExpertOptimizer:
        files.expert_optimizers.emplace(name->rank, entry.path);
        break;
    }
  }
  return step;
}

Result<ZeroSave> read_zero_save(CheckpointBuilder& builder, const Directory& directory,
                                const ZeroFiles& files, ZeroPickleFindings& notes,
                                Progress* progress) {
  return ZeroSaveReader(builder, directory, files, notes, progress).run();
}

}  // namespace shw
