#include "core/formats/megatron_legacy/legacy_open.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/common/record_reader.h"
#include "core/formats/common/steps_of_files.h"
#include "core/formats/megatron_legacy/legacy_file.h"
#include "core/formats/megatron_legacy/legacy_tensors.h"
#include "core/model/builder.h"

namespace shw {
namespace {

constexpr Format kMegatronLegacyFormat = {
    .name = "megatron-legacy",
    .title = "Megatron torch checkpoint",
    .codec = &kZipRecordCodec,
};
constexpr std::size_t kMaxLegacyFindings = 32;

class LegacyReading {
 public:
  LegacyReading(std::shared_ptr<const Directory> directory,
                std::map<std::string, std::vector<std::string>> folders)
      : directory_(*directory), folders_(std::move(folders)) {
    builder_.set_format(kMegatronLegacyFormat);
    builder_.set_directory(std::move(directory));
  }

  OpenedCheckpoint run(Progress* progress) {
    for (const auto& [folder, names] : folders_) {
      for (const std::string& name : names) {
        if (is_cancelled(progress)) return cancelled_error();
        read_file(folder, name);
      }
      if (progress != nullptr) progress->add(1);
    }
    if (read_.empty() && error_) return tl::unexpected<Error>(std::move(*error_));
    find_sizes();
    LegacyTensors tensors(builder_, args_, sizes_);
    for (LegacyRankFile& file : read_) tensors.add(std::move(file));
    tensors.finish();
    for (LegacyValue& value : values_)
      builder_.add_object(
          {.fqn = std::move(value.name), .item = {}, .inlined = std::move(value.value)});
    add_missing();
    add_missing_siblings();
    for (Finding& finding : notes_.findings) builder_.add_finding(std::move(finding));
    if (auto mixed = steps_.finding("iteration")) builder_.add_finding(std::move(*mixed));
    note_unreadable();
    return builder_.finish();
  }

 private:
  void read_file(const std::string& folder, const std::string& name) {
    const std::string path = folder + "/" + name;
    const FileId id = builder_.file(path);
    auto file = read_legacy_file(directory_, path, notes_);
    if (!file) {
      builder_.add_finding(bad_record_finding(
          path, "The file " + path + " cannot be read: " + file.error().message + ".",
          file.error().place.offset));
      if (!error_) error_ = std::move(file).error();
      return;
    }
    steps_.add(path, file->iteration);
    for (const UnreadableTensor& one : file->unreadable)
      unreadable_[one.error.message].push_back(path);
    if (is_legacy_model_file(name) && !has_args_) {
      has_args_ = true;
      args_ = file->args;
      values_ = std::move(file->values);
    }
    const bool is_model = is_legacy_model_file(name);
    std::string prefix = folder + "." + (is_model ? "" : name.substr(0, name.rfind('.')) + ".");
    read_.push_back({folder,
                     std::move(prefix),
                     *parse_legacy_folder(folder),
                     id,
                     is_model,
                     std::move(file->tensors),
                     {}});
  }

  // Sizes of the parallel groups from args, at least as large as the existing folders require.
  void find_sizes() {
    sizes_ = {args_.tensor.value_or(1), args_.pipeline.value_or(1), args_.expert.value_or(1)};
    for (LegacyRankFile& file : read_) {
      file.place = legacy_place(file.folder, sizes_);
      sizes_.tensor = std::max(sizes_.tensor, file.place.tensor + 1);
      sizes_.pipeline = std::max(sizes_.pipeline, file.place.pipeline + 1);
      sizes_.expert = std::max(sizes_.expert, file.place.expert + 1);
    }
  }

  void add_missing() {
    const std::uint64_t all = std::uint64_t{sizes_.tensor} * sizes_.pipeline * sizes_.expert;
    // Numbers in args that exceed the existing folders by far are not trusted.
    if (all > 64 * folders_.size() + 1024) return;
    const bool is_apart = std::any_of(folders_.begin(), folders_.end(), [](const auto& folder) {
      const auto& names = folder.second;
      return std::find(names.begin(), names.end(), "model_rng.pt") != names.end();
    });
    LegacyPlace place;
    for (place.tensor = 0; place.tensor < sizes_.tensor; ++place.tensor) {
      for (place.pipeline = 0; place.pipeline < sizes_.pipeline; ++place.pipeline) {
        for (place.expert = 0; place.expert < sizes_.expert; ++place.expert) {
          const std::string folder = legacy_folder_name(place, sizes_);
          if (!folders_.contains(folder))
            builder_.file(folder + (is_apart ? "/model_rng.pt" : "/model_optim_rng.pt"));
        }
      }
    }
  }

  // Every model-parallel rank writes files of the same names. A name found in one rank's folder is
  // therefore reported as missing in folders that lack it, such as the optimizer's file.
  void add_missing_siblings() {
    std::set<std::string> names;
    for (const auto& [folder, own] : folders_) names.insert(own.begin(), own.end());
    for (const auto& [folder, own] : folders_) {
      for (const std::string& name : names) {
        if (std::find(own.begin(), own.end(), name) == own.end())
          builder_.file(folder + "/" + name);
      }
    }
  }

  void note_unreadable() {
    std::size_t noted = 0;
    for (auto& [reason, paths] : unreadable_) {
      if (++noted > kMaxLegacyFindings) return;
      Finding finding = bad_record_finding(
          paths.front(), fmt::format("{} in {} cannot be read: {}.", plural(paths.size(), "tensor"),
                                     short_list_text(paths), reason));
      finding.rule = "not-looked-at";
      finding.severity = Severity::kInfo;
      finding.evidence = {{"count", static_cast<std::int64_t>(paths.size())}};
      builder_.add_finding(std::move(finding));
    }
  }

  const Directory& directory_;
  std::map<std::string, std::vector<std::string>> folders_;
  CheckpointBuilder builder_;
  std::vector<LegacyRankFile> read_;
  std::vector<LegacyValue> values_;
  LegacyArgs args_;
  LegacySizes sizes_;
  PickleFindings notes_;
  MixedStepsCheck steps_;
  std::map<std::string, std::vector<std::string>> unreadable_;
  std::optional<Error> error_;
  bool has_args_ = false;
};

bool has_legacy_model(std::span<const Entry> entries) {
  const auto folders = legacy_folders(entries);
  return std::any_of(folders.begin(), folders.end(), [](const auto& folder) {
    return std::any_of(folder.second.begin(), folder.second.end(), is_legacy_model_file);
  });
}

Result<bool> recognises_legacy(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  return has_legacy_model(entries);
}

FileRole legacy_file_role(std::string_view file) {
  return is_legacy_model_file(file) ? FileRole::kCheckpoint : FileRole::kNothing;
}

}  // namespace

OpenedCheckpoint open_megatron_legacy(std::shared_ptr<const Directory> directory,
                                      Progress* progress) {
  SHW_TRY(auto entries, directory->list());
  auto folders = legacy_folders(entries);
  if (progress != nullptr) progress->begin(Phase::kOpening, folders.size(), false);
  return LegacyReading(std::move(directory), std::move(folders)).run(progress);
}

constexpr FormatRow kMegatronLegacyRow = {
    .format = &kMegatronLegacyFormat,
    .sign = "mp_rank_TT/model_optim_rng.pt",
    .recognises = recognises_legacy,
    .open = open_megatron_legacy,
    .named = legacy_file_role,
};

}  // namespace shw
