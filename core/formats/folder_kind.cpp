#include "core/formats/folder_kind.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "core/base/natural_order.h"
#include "core/base/words.h"
#include "core/formats/common/trainer_names.h"

namespace shw {
namespace {

// An index of 1 MB lists about 7,000 chunks and is read in milliseconds.
constexpr std::uint64_t kSmallIndex = 1 << 20;
constexpr std::size_t kFewFiles = 64;

// A directory view with a limited listing; larger folders are recognised by known names only.
class BoundedListingDirectory final : public Directory {
 public:
  BoundedListingDirectory(std::shared_ptr<const Directory> inner, std::size_t most)
      : inner_(std::move(inner)), most_(most) {}
  const std::string& name() const override { return inner_->name(); }
  Result<std::vector<Entry>> list(std::size_t) const override {
    auto entries = inner_->list(most_);
    if (entries || entries.error().kind != ErrorKind::kUnsupported) return entries;
    has_more = true;
    return std::vector<Entry>{};
  }
  Entry stat(const std::string& path) const override { return inner_->stat(path); }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    return inner_->open(path);
  }
  mutable bool has_more = false;

 private:
  std::shared_ptr<const Directory> inner_;
  std::size_t most_;
};

struct NaturalLess {
  bool operator()(std::string_view a, std::string_view b) const { return natural_less(a, b); }
};
using FoldersBelow = std::map<std::string, const FormatRow*, NaturalLess>;

// Names that libraries use for models, with suffixes that other files have too.
bool is_model_name(std::string_view name) {
  for (std::string_view model :
       {"pytorch_model.bin", "adapter_model.bin", "diffusion_pytorch_model.bin", "model.onnx"}) {
    if (name == model || name == std::string(model) + ".index.json") return true;
  }
  return false;
}

// True for names of models that other programs use too: "model.pt", "epoch=3.ckpt". False for other
// files of a training run.
bool is_common_model_name(std::string_view name) {
  constexpr std::string_view kModelEndings[] = {".pt", ".pth", ".ckpt", ".bin"};
  const bool ends = std::any_of(std::begin(kModelEndings), std::end(kModelEndings),
                                [&](std::string_view ending) { return name.ends_with(ending); });
  return ends && trainer_file(name) == TrainerFile::kNone;
}

// Groups files by folder, with the format row that would open each folder.
FoldersBelow format_rows_by_subfolder(std::span<const Entry> entries,
                                      std::span<const FormatRow> rows,
                                      bool (*is_model)(std::string_view name) = is_model_name) {
  FoldersBelow kinds;
  auto offer = [&](const std::string& folder, const FormatRow& row) {
    const FormatRow*& kind = kinds[folder];
    if (kind == nullptr || &row < kind) kind = &row;
  };
  for (const Entry& entry : entries) {
    std::size_t slash = entry.path.rfind('/');
    if (slash == std::string::npos) continue;
    std::string_view name = std::string_view(entry.path).substr(slash + 1);
    for (const FormatRow& row : rows) {
      bool tells = row.named != nullptr && (!row.names_are_common || is_model(name));
      const FileRole named = tells ? row.named(name) : FileRole::kNothing;
      if (named == FileRole::kCheckpoint || named == FileRole::kSingleFile)
        offer(entry.path.substr(0, slash), row);
    }
  }
  return kinds;
}

// Folders with specific file names; if there are none, folders with files that have suffixes of
// models.
FoldersBelow likely_kinds_below(std::span<const Entry> entries, std::span<const FormatRow> rows) {
  FoldersBelow kinds = format_rows_by_subfolder(entries, rows);
  return kinds.empty() ? format_rows_by_subfolder(entries, rows, is_common_model_name) : kinds;
}

}  // namespace

std::vector<std::string> checkpoints_below(std::span<const Entry> entries,
                                           std::span<const FormatRow> rows) {
  std::vector<std::string> found;
  for (const auto& [folder, kind] : format_rows_by_subfolder(entries, rows))
    found.push_back(folder + " (" + std::string(kind->format->title) + ")");
  return found;
}

std::vector<std::string> folders_with_checkpoints(std::span<const Entry> entries,
                                                  std::span<const FormatRow> rows) {
  std::vector<std::string> found;
  for (const auto& [folder, kind] : likely_kinds_below(entries, rows)) found.push_back(folder);
  return found;
}

std::optional<Finding> other_checkpoints_below(std::span<const Entry> entries, const Format& opened,
                                               std::span<const FormatRow> rows) {
  Finding finding;
  std::vector<std::string> told;
  for (const auto& [folder, kind] : format_rows_by_subfolder(entries, rows)) {
    if (kind->format == &opened) continue;
    told.push_back(folder + " (" + std::string(kind->format->title) + ")");
    finding.subjects.push_back(folder);
  }
  if (told.empty()) return std::nullopt;
  finding.rule = "how-read";
  finding.severity = Severity::kInfo;
  finding.cause = fmt::format(
      "Only the files at the top of this folder were opened ({}). Below it {} not opened: {}. To "
      "open {} instead, give the path of the subfolder.",
      opened.title, told.size() == 1 ? "a checkpoint was" : "checkpoints were",
      short_list_text(told), told.size() == 1 ? "it" : "one of them");
  finding.evidence = {{"below", static_cast<std::int64_t>(told.size())}};
  return finding;
}

IncompleteSubfolders incomplete_subfolders(std::span<const Entry> entries,
                                           std::span<const FormatRow> rows) {
  const FoldersBelow whole = format_rows_by_subfolder(entries, rows);
  std::map<std::string, std::vector<Entry>, NaturalLess> held;
  for (const Entry& entry : entries) {
    const std::size_t slash = entry.path.rfind('/');
    if (slash == std::string::npos) continue;
    std::string folder = entry.path.substr(0, slash);
    if (whole.contains(folder)) continue;
    Entry inside = entry;
    inside.path = entry.path.substr(slash + 1);
    held[std::move(folder)].push_back(std::move(inside));
  }
  IncompleteSubfolders found;
  for (const auto& [folder, inside] : held) {
    for (const FormatRow& row : rows) {
      const auto why = row.unfinished == nullptr ? std::nullopt : row.unfinished(inside);
      if (!why) continue;
      (why->kind == ErrorKind::kDamaged ? found.unfinished : found.lacking).push_back(folder);
      break;
    }
  }
  return found;
}

const UnsupportedFormat* unsupported_format_of(std::span<const Entry> entries) {
  for (const UnsupportedFormat& format : unsupported_formats()) {
    bool matches = std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
      std::string_view path = entry.path;
      return format.matches(path, path.substr(path.rfind('/') + 1));
    });
    if (matches) return &format;
  }
  return nullptr;
}

Result<FolderKind> kind_of_folder(std::shared_ptr<const Directory> directory, std::size_t most,
                                  std::span<const FormatRow> rows) {
  BoundedListingDirectory shortened(std::move(directory), most);
  DirectoryContents look(shortened);
  FolderKind kind;
  for (const FormatRow& row : rows) {
    if (row.recognises == nullptr) continue;
    SHW_TRY(bool recognised, row.recognises(look));
    if (!recognised) continue;
    kind.format = row.format;
    break;
  }
  SHW_TRY(auto entries, look.entries());
  kind.has_many = shortened.has_more;
  if (kind.format != nullptr) {
    kind.is_fast_to_open = !kind.has_many && entries.size() <= kFewFiles;
    std::string_view index = kind.format->traits.index_file;
    if (!index.empty() && look.entry(index).size > kSmallIndex) kind.is_fast_to_open = false;
    return kind;
  }
  kind.below = checkpoints_below(entries, rows).size();
  const UnsupportedFormat* unread = kind.below > 0 ? nullptr : unsupported_format_of(entries);
  if (unread != nullptr) kind.unread = unread->title;
  return kind;
}

bool is_file_of_checkpoint(std::string_view name, std::span<const FormatRow> rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const FormatRow& row) {
    return row.named != nullptr && row.named(name) == FileRole::kSingleFile;
  });
}

}  // namespace shw
