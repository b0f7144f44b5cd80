// Names that a pickle makes Python import and call. Those of `.metadata` are reported
// while opening, by the pickle reader. This rule reads BYTES entries, if items are opened
// at all.
//
// torch loads BYTES entries with weights_only=False, so any name in them is executed. For the
// danger of each name see severity_of_import.
#include <map>
#include <set>
#include <string_view>

#include "core/base/parallel.h"
#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/formats/common/unsafe_file.h"
#include "core/formats/object_pickle.h"
#include "core/rules/rules.h"

namespace shw {
namespace {

struct ImportGroup {
  Severity severity = Severity::kInfo;
  bool called = false;
  std::string file;  // of the first occurrence
  std::uint64_t at = 0;
  std::vector<std::string> subjects;
};

std::string cause_of(const ImportGroup& group, const std::string& what) {
  std::string verb = group.called ? "call " : "import ";
  std::string where = short_list_text(group.subjects);
  if (group.severity == Severity::kInfo)
    return "Loading " + where + " with torch would " + verb + what +
           ", a class or function of another program: loading needs that program, and torch.load "
           "refuses it "
           "with weights_only=True.";
  return "Loading " + where + " with torch would " + verb + what +
         ". torch unpickles such entries with weights_only=False, so that code would run, and it "
         "is not known to be harmless. Shardwright only parsed it and ran nothing.";
}

Finding pickle_finding(ImportGroup group, const std::string& what) {
  Finding finding{.rule = "unsafe-pickle", .severity = group.severity};
  finding.cause = cause_of(group, what);
  finding.evidence = {{"global", what},
                      {"called", group.called},
                      {"file", group.file},
                      {"offset", static_cast<std::int64_t>(group.at)},
                      {"objects", count_of(group.subjects.size())}};
  finding.subjects = std::move(group.subjects);
  return finding;
}

std::vector<Result<ObjectPickle>> scan_pickled_objects(const Checkpoint& checkpoint) {
  std::vector<Result<ObjectPickle>> scanned(checkpoint.objects().size(), ObjectPickle{});
  parallel_for_ranges(scanned.size(), 1,
                      [&](std::size_t i, std::size_t) { scanned[i] = scan_object(checkpoint, i); });
  return scanned;
}

// True if other rules report the entry: no file, a place outside the file, or (at depth data) bytes
// that differ from their checksum. For an entry that was never completely saved there is no other
// report.
bool is_reported_elsewhere(const Facts& facts, std::size_t object) {
  const NonTensorEntry& row = facts.checkpoint.objects()[object];
  if (!row.item || !is_reachable(facts.checkpoint, *row.item)) return true;
  if (object >= facts.object_data.size()) return false;
  const Result<DataCheck>& data = facts.object_data[object];
  return !data || data->crc == DataCheck::Crc::kDiffers;
}

void add_damaged(const Facts& facts, std::size_t object, const Error& error, Finding& finding) {
  if (error.kind != ErrorKind::kDamaged || is_reported_elsewhere(facts, object)) return;
  const std::string& fqn = facts.checkpoint.objects()[object].fqn;
  if (finding.subjects.empty()) {
    finding.rule = kBadRecord.id;
    finding.cause = fqn + " cannot be loaded: " + error.message + ".";
    finding.evidence = {{"file", error.place.file}};
    if (error.place.offset)
      finding.evidence.emplace_back("offset", static_cast<std::int64_t>(*error.place.offset));
  }
  add_subject(finding.subjects, fqn);
}

// Scans pickles that opening did not read: files next to the checkpoint that a resumed program also
// loads, and the checkpoint's own unreadable files.
void add_unread_files(const Checkpoint& checkpoint, std::vector<Finding>& findings) {
  constexpr std::size_t kMaxFiles = 4096, kMaxTold = 32;
  std::set<std::string_view> unread, told_before;
  for (const Finding& finding : checkpoint.opening_findings()) {
    auto& subjects = finding.rule == "unsafe-pickle" ? told_before : unread;
    subjects.insert(finding.subjects.begin(), finding.subjects.end());
  }
  std::vector<const FileRow*> files;
  for (const FileRow& file : checkpoint.files()) {
    if ((!file.referenced || unread.contains(file.path)) && !told_before.contains(file.path) &&
        file.safe && file.kind == EntryKind::kFile && is_named_as_pickle(file.path) &&
        files.size() < kMaxFiles)
      files.push_back(&file);
  }
  std::vector<std::vector<Finding>> told(files.size());
  parallel_for_ranges(files.size(), 1, [&](std::size_t i, std::size_t) {
    told[i] = unsafe_findings_of_file(*checkpoint.directory(), files[i]->path);
  });
  std::size_t added = 0;
  for (std::vector<Finding>& of_file : told) {
    for (Finding& finding : of_file) {
      if (added++ < kMaxTold) findings.push_back(std::move(finding));
    }
  }
}

void find_unsafe_pickles(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  if (facts.depth < Depth::kHeaders || checkpoint.directory() == nullptr) return;
  add_unread_files(checkpoint, findings);
  const std::string kComputed = "a function that the pickle computes";
  std::map<std::pair<std::string, Severity>, ImportGroup> groups;
  std::vector<std::string> not_read;
  std::string why;
  Finding damaged;
  auto scanned = scan_pickled_objects(checkpoint);
  for (std::size_t i = 0; i < scanned.size(); ++i) {
    if (!scanned[i]) {
      add_damaged(facts, i, scanned[i].error(), damaged);
      continue;
    }
    const ObjectPickle& object = *scanned[i];
    if (object.damaged) add_damaged(facts, i, *object.damaged, damaged);
    const std::string& fqn = checkpoint.objects()[i].fqn;
    auto add = [&](const std::string& what, Severity severity, bool called, std::uint64_t at) {
      ImportGroup& group = groups[{what, severity}];
      if (group.subjects.empty()) group = {severity, called, object.file, at, {}};
      add_subject(group.subjects, fqn);
    };
    for (const UnknownName& name : object.names)
      add(name.module + "." + name.name,
          severity_of_import(name.module, name.name, name.kind, name.called,
                             PickleFileContent::kEntries),
          name.called, name.at);
    if (object.unusual_call_at) add(kComputed, Severity::kError, true, *object.unusual_call_at);
    if (object.not_read.empty()) continue;
    if (not_read.empty()) why = object.not_read;
    not_read.push_back(fqn);
  }
  if (!damaged.subjects.empty()) findings.push_back(std::move(damaged));
  for (auto& [key, group] : groups) findings.push_back(pickle_finding(std::move(group), key.first));
  if (not_read.empty()) return;
  Finding finding{.rule = "unsafe-pickle", .severity = Severity::kInfo};
  finding.cause = "What " + short_list_text(not_read) + " would import was not read: " + why + ".";
  finding.subjects = std::move(not_read);
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kUnsafePickle = {
    .id = "unsafe-pickle",
    .depth = Depth::kMetadata,
    .title = "A pickle refers to code that no checkpoint needs",
    .teaches =
        "A .metadata file is a Python pickle, and so is every entry that is not a tensor; a pickle "
        "can name any function, which Python calls while it loads. A checkpoint needs only a few "
        "classes: sizes, dtypes, storage records. This one names something else. Shardwright never "
        "runs pickle code, so inspecting is safe; torch.load and torch.distributed.checkpoint "
        "would run it. It may be a harmless library class or an attack: find out who made the file "
        "before any Python program opens it.",
    .lesson = {.drawing = R"(
  .metadata, as pickle reads it            what Python would do
  GLOBAL  torch Size                       make a size: needed
  GLOBAL  posix system                     run a command: never needed
  REDUCE  'curl ... | sh'                  ... and which
)",
               .remedy = "Find out who made the file before you load it with torch. Shardwright "
                         "runs none of its code.",
               .link = "https://docs.python.org/3/library/pickle.html"},
    .words = {.text = "do not load it"},
    .outcome = RunOutcome::kRunsForeignCode,
    .blocks = Blocking::kWholeFile,
    .run = find_unsafe_pickles,
};

}  // namespace shw
