#include "core/formats/numbered_models.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "core/base/words.h"
#include "core/formats/common/how_read_finding.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/trainer_names.h"
#include "core/formats/joined_folders.h"
#include "core/formats/open_nested.h"
#include "core/formats/single_file_directory.h"
#include "core/model/builder.h"

namespace shw {
namespace {

struct NumberedNames {
  std::string_view stem, ending;
};
constexpr auto kNumberedNames =
    std::to_array<NumberedNames>({{"model", ".safetensors"}, {"pytorch_model", ".bin"}});
// Limit; GANs and distillation have two or three models.
constexpr std::size_t kMaxModels = 64;

// The stems "model" and "model_1", ...; empty if there is no second model.
std::vector<std::string> numbered_stems(std::span<const Entry> entries,
                                        const NumberedNames& names) {
  auto has = [&](const std::string& path) {
    return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
      return entry.kind == EntryKind::kFile && entry.path == path;
    });
  };
  std::vector<std::string> stems = {std::string(names.stem)};
  if (!has(stems.front() + std::string(names.ending))) return {};
  while (stems.size() < kMaxModels) {
    std::string next = fmt::format("{}_{}", names.stem, stems.size());
    if (!has(next + std::string(names.ending))) break;
    stems.push_back(std::move(next));
  }
  return stems.size() > 1 ? stems : std::vector<std::string>{};
}

Finding several_models_finding(const std::vector<std::string>& files) {
  Finding finding = how_read_finding(
      files.front(),
      fmt::format(
          "The folder holds {} models, numbered as accelerate's save_state does ({}). Tensor names "
          "begin with the file's name; to open only one, give the path of its file.",
          files.size(), short_list_text(files)));
  finding.subjects = files;
  return finding;
}

}  // namespace

OpenedCheckpoint open_numbered_models(const std::shared_ptr<const Directory>& around,
                                      std::span<const Entry> entries, Progress* progress) {
  for (const NumberedNames& names : kNumberedNames) {
    const std::vector<std::string> stems = numbered_stems(entries, names);
    std::vector<JoinedPart> parts;
    std::vector<std::string> files;
    for (const std::string& stem : stems) {
      files.push_back(stem + std::string(names.ending));
      SHW_TRY(auto opened,
              open_nested(std::make_shared<SingleFileDirectory>(around, files.back()), progress));
      parts.push_back({std::move(opened), "", stem + "."});
    }
    if (parts.empty()) continue;
    SHW_TRY(auto joined, join_folders(around, parts));
    return CheckpointBuilder::with_finding(*joined, several_models_finding(files));
  }
  return std::shared_ptr<const Checkpoint>();
}

OpenedCheckpoint open_state_of_models(const std::shared_ptr<const Directory>& around,
                                      const DirectoryContents& look, Progress* progress) {
  const bool has_second =
      std::any_of(kNumberedNames.begin(), kNumberedNames.end(), [&](const NumberedNames& names) {
        const std::string second = fmt::format("{}_1{}", names.stem, names.ending);
        return look.entry(second).kind == EntryKind::kFile;
      });
  if (!has_second) return std::shared_ptr<const Checkpoint>();
  SHW_TRY(auto entries, look.entries());
  bool has_state = false, has_index = false;
  for (const Entry& entry : entries) {
    if (!is_top_file(entry)) continue;
    has_state = has_state || trainer_file(entry.path) != TrainerFile::kNone;
    has_index = has_index || entry.path.ends_with(".index.json");
  }
  if (!has_state || has_index) return std::shared_ptr<const Checkpoint>();
  return open_numbered_models(around, entries, progress);
}

}  // namespace shw
