#include "core/verbs/export_hdf5.h"

#include "core/io/path_text.h"
#include "core/io/store.h"
#include "core/rules/rules.h"
#include "core/verbs/output_place.h"

namespace shw::verbs {
namespace {

Result<std::string> output_of(const Opened& opened, const VerbOptions& verb_options) {
  if (!verb_options.out.empty()) {
    SHW_CHECK(check_output_place(opened, verb_options, verb_options.out));
    return verb_options.out;
  }
  SHW_TRY(std::string source, posix_store().resolved(verb_options.checkpoint));
  const std::string out = without_trailing_slashes(source) + ".h5";
  SHW_CHECK(check_output_place(opened, verb_options, out));
  return out;
}

// True if all elements are correct and only their place or name is wrong.
bool is_of_location_only(const Finding& finding) {
  const Rule& rule = rule_of(finding);
  return finding.remedy && finding.remedy->kind != "fill" && !rule.damages_bytes &&
         rule.coverage.text.empty();
}

// True for rules about silently changed bytes: no data in the named files is
// trusted.
bool is_silent_corruption_rule(const Rule& rule) {
  return rule.damages_bytes && rule.outcome == RunOutcome::kLoadsWrongValues;
}

std::vector<std::string_view> tensors_in(const Checkpoint& checkpoint, std::string_view path) {
  std::vector<std::string_view> names;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    for (ChunkId chunk : checkpoint.chunks(TensorId{t})) {
      auto item = checkpoint.item(chunk);
      if (!item || item->file == FileId::kNone || checkpoint.file(item->file).path != path)
        continue;
      names.push_back(checkpoint.fqn(TensorId{t}));
      break;
    }
  }
  return names;
}

// Marks tensors with errors in the export.
void mark_doubtful_tensors(const Checkpoint& checkpoint, ExportOptions& options) {
  for (const Finding& finding : options.findings) {
    if (finding.severity != Severity::kError || is_of_location_only(finding)) continue;
    std::string why = finding.rule + ": " + finding.cause;
    if (why.ends_with('.')) why.pop_back();
    for (const std::string& subject : finding.subjects) {
      options.doubts.emplace(subject, why);
      if (!is_silent_corruption_rule(rule_of(finding))) continue;
      for (std::string_view fqn : tensors_in(checkpoint, subject)) options.doubts.emplace(fqn, why);
    }
  }
}

}  // namespace

Result<Exported> export_hdf5(const Opened& opened, const VerbOptions& verb_options,
                             ExportOptions options, Progress* progress) {
  SHW_TRY(options.out, output_of(opened, verb_options));
  auto found = check(opened, verb_options.depth, progress);
  if (!found && found.error().kind == ErrorKind::kCancelled)
    return tl::unexpected<Error>(std::move(found).error());
  if (found) options.findings = std::move(found->findings);
  mark_doubtful_tensors(*opened.checkpoint, options);
  auto exported = shw::export_hdf5(*opened.checkpoint, options, progress);
  if (exported && !found)
    exported->notes.push_back("the checkpoint could not be checked: " + found.error().message);
  if (exported) exported->unread = unreadable_subjects(*opened.checkpoint);
  return exported;
}

}  // namespace shw::verbs
