#include "core/formats/deepspeed/universal_open.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/words.h"
#include "core/formats/common/bad_record.h"
#include "core/formats/deepspeed/deepspeed_formats.h"
#include "core/formats/deepspeed/zero_tensors.h"

namespace shw {
namespace {

constexpr std::string_view kUniversalFolder = "zero/";
constexpr std::string_view kUniversalOptimizerFile = "zero/optimizer_state.pt";

// The parts "layers.0.weight" and "exp_avg" of zero/layers.0.weight/exp_avg.pt.
struct UniversalName {
  std::string parameter, kind;
};
std::optional<UniversalName> parse_universal(std::string_view path) {
  if (!path.starts_with(kUniversalFolder) || !path.ends_with(".pt")) return std::nullopt;
  path.remove_prefix(kUniversalFolder.size());
  path.remove_suffix(3);
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos || slash == 0 || path.find('/', slash + 1) != path.npos)
    return std::nullopt;
  return UniversalName{std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

class UniversalReading {
 public:
  UniversalReading(const Directory& directory, CheckpointBuilder& builder)
      : directory_(directory), builder_(builder), storages_(builder) {}

  Status run(std::span<const Entry> entries, Progress* progress) {
    SHW_CHECK(read_weights(entries, progress));
    for (const Entry& entry : entries) {
      if (is_cancelled(progress)) return cancelled_error();
      auto name = parse_universal(entry.path);
      if (entry.kind != EntryKind::kFile || !name) continue;
      if (auto read = read_state(entry.path, *name); !read) note_unread(entry.path, read.error());
      if (progress != nullptr) progress->add(1);
    }
    read_universal_info(entries);
    note_missing();
    report_missing_states();
    for (Finding& finding : notes_.findings) builder_.add_finding(std::move(finding));
    return {};
  }

 private:
  void note_unread(const std::string& path, const Error& error) {
    builder_.file(path);
    Finding finding = bad_record_finding(
        path, "The file " + path + " cannot be read: " + error.message + ".", error.place.offset);
    if (error.kind == ErrorKind::kUnsupported) {
      finding.rule = "not-looked-at";
      finding.severity = Severity::kInfo;
    }
    notes_.findings.push_back(std::move(finding));
  }

  // Adds the weights as the modules have them; each model-parallel rank has its own.
  Status read_weights(std::span<const Entry> entries, Progress* progress) {
    ZeroStep step = zero_step_of(entries);
    for (auto& [mp_rank, files] : step.by_mp_rank) {
      files.optimizers.clear();
      SHW_TRY(ZeroSave world, read_zero_save(builder_, directory_, files, notes_, progress));
      // No partitions: the weights are whole, but for stage 3, whose modules have placeholders.
      if (world.stage != 3) world.stage = 0;
      if (world.model) {
        for (const auto& group : world.model->groups)
          for (const ZeroShape& shape : group) expected_.push_back(shape.name);
      }
      const bool several = step.by_mp_rank.size() > 1;
      add_zero_tensors(builder_, storages_, world,
                       several ? fmt::format("mp_rank_{:02}.", mp_rank) : "", notes_);
    }
    return {};
  }

  Status read_state(const std::string& path, const UniversalName& name) {
    SHW_TRY(ZeroFile file, ZeroFile::open(builder_, directory_, path, notes_));
    const std::string fqn = "optimizer.state." + name.parameter + "." + name.kind;
    NodeId value = file.root();
    if (NodeId inner = file.find(value, "param"); inner != NodeId::kAbsent) value = inner;
    if (name.kind == "fp32") masters_.insert(name.parameter);
    kinds_[name.parameter].insert(name.kind);
    if (file.is_tensor(value)) {
      SHW_TRY(ZeroTensor tensor, file.tensor(value));
      storages_.add_whole(fqn, tensor);
    } else {
      storages_.add_value({fqn, file.value(value)});
    }
    return {};
  }

  void read_universal_info(std::span<const Entry> entries) {
    const bool is_there = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
      return entry.path == kUniversalOptimizerFile;
    });
    if (!is_there) return;
    const std::string path(kUniversalOptimizerFile);
    auto file = ZeroFile::open(builder_, directory_, path, notes_);
    if (!file) return note_unread(path, file.error());
    if (NodeId groups = file->find(file->root(), "param_groups"); groups != NodeId::kAbsent)
      storages_.add_value({"optimizer.param_groups", file->value(groups)});
  }

  // Reports parameters that the model's file names but that have no folder.
  void note_missing() {
    std::vector<std::string> missing;
    for (const std::string& name : expected_) {
      if (!masters_.contains(name)) missing.push_back(name);
    }
    if (missing.empty()) return;
    Finding finding = bad_record_finding(
        missing.front(), fmt::format("{} of {} parameters have no zero/NAME/fp32.pt: {}. The "
                                     "conversion was interrupted, or a copy left out folders.",
                                     missing.size(), expected_.size(), short_list_text(missing)));
    finding.evidence = {{"missing", static_cast<std::int64_t>(missing.size())}};
    finding.subjects = std::move(missing);
    notes_.findings.push_back(std::move(finding));
  }

  // Reports parameters that lack states which others have. If there are several kinds of optimizers
  // (Muon and Adam), neither kind has all states of the other.
  void report_missing_states() {
    std::set<std::set<std::string>> all;
    for (const auto& [parameter, kinds] : kinds_) all.insert(kinds);
    std::vector<std::string> lacking;
    for (const auto& [parameter, kinds] : kinds_) {
      for (const std::set<std::string>& more : all) {
        if (kinds.size() >= more.size() ||
            !std::includes(more.begin(), more.end(), kinds.begin(), kinds.end()))
          continue;
        for (const std::string& kind : more) {
          if (!kinds.contains(kind)) lacking.push_back("zero/" + parameter + "/" + kind + ".pt");
        }
        break;
      }
    }
    if (lacking.empty()) return;
    Finding finding = bad_record_finding(
        lacking.front(),
        fmt::format("{} missing, which other parameters have: {}. The conversion was interrupted, "
                    "or a copy left out files. A run fails when it loads these states.",
                    lacking.size() == 1 ? "A file is" : plural(lacking.size(), "file") + " are",
                    short_list_text(lacking)));
    finding.evidence = {{"missing", static_cast<std::int64_t>(lacking.size())}};
    finding.subjects = std::move(lacking);
    notes_.findings.push_back(std::move(finding));
  }

  const Directory& directory_;
  CheckpointBuilder& builder_;
  ZeroStorages storages_;
  ZeroPickleFindings notes_;
  std::map<std::string, std::set<std::string>> kinds_;  // by parameter
  std::vector<std::string> expected_;
  std::set<std::string> masters_;
};

}  // namespace

bool is_universal(std::span<const Entry> entries) {
  return std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.kind == EntryKind::kFile && entry.path.starts_with(kUniversalFolder) &&
           entry.path.ends_with("/fp32.pt");
  });
}

OpenedCheckpoint open_universal(std::shared_ptr<const Directory> directory, Progress* progress) {
  SHW_TRY(auto entries, directory->list());
  if (progress != nullptr) progress->begin(Phase::kOpening, entries.size(), false);
  CheckpointBuilder builder;
  builder.set_format(kUniversalFormat);
  builder.set_directory(directory);
  SHW_CHECK(UniversalReading(*directory, builder).run(entries, progress));
  return builder.finish();
}

}  // namespace shw
