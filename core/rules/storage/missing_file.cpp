#include "core/rules/rules.h"

namespace shw {
namespace {

std::string_view state_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::kDirectory:
      return "is a directory";
    case EntryKind::kDanglingLink:
      return "is a link to nothing";
    case EntryKind::kOther:
      return "is no regular file";
    case EntryKind::kFile:
    case EntryKind::kMissing:
      break;
  }
  return "is not there";
}

void run(const RuleInput& input, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = input.checkpoint;
  if (checkpoint.directory() == nullptr) return;
  std::vector<bool> missing(checkpoint.file_count(), false);
  std::vector<std::string> states;
  Finding finding;
  finding.rule = "missing-file";
  for (std::uint32_t f = 0; f < checkpoint.file_count(); ++f) {
    const FileRow& file = checkpoint.file(FileId{f});
    if (!file.referenced || !file.safe || file.kind == EntryKind::kFile) continue;
    missing[f] = true;
    finding.subjects.push_back(file.path);
    states.push_back(file.path + " " + std::string(state_of(file.kind)));
  }
  if (finding.subjects.empty()) return;

  std::vector<std::string> touched;
  std::uint64_t chunks = 0;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    for (ChunkId chunk : checkpoint.chunks(TensorId{t})) {
      auto item = checkpoint.item(chunk);
      if (!item || !missing[index_of(item->file)]) continue;
      ++chunks;
      add_subject(touched, checkpoint.fqn(TensorId{t}));
    }
  }
  std::vector<std::string> objects;
  for (const ObjectRow& object : checkpoint.objects()) {
    if (object.item && object.item->file != FileId::kNone && missing[index_of(object.item->file)])
      objects.push_back(object.fqn);
  }
  finding.cause = some_of(states) + ": " + plural(chunks, "tile") + " of " +
                  plural(touched.size(), "tensor") +
                  (objects.empty() ? "" : " and " + plural(objects.size(), "object")) +
                  " cannot be read, and a load stops there.";
  finding.evidence = {{"files", capped(states)},
                      {"file_count", count_of(finding.subjects.size())},
                      {"tiles", static_cast<std::int64_t>(chunks)},
                      {"tensors", capped(touched)},
                      {"tensor_count", count_of(touched.size())},
                      {"objects", capped(objects)}};
  findings.push_back(std::move(finding));
}

}  // namespace

const Rule kMissingFile = {
    "missing-file", Depth::kMetadata, "A data file is not there",
    "The metadata says in which file each tile lies, and one of those files is absent, a link to "
    "nothing, or a directory. A copy that was cut off, a clean-up that took too much, or a rank "
    "whose local disk was never collected are the usual reasons. Look for the file where the "
    "checkpoint was written, and copy it beside the others: nothing else has to change. Without it "
    "the tiles in it are lost, all others can still be read.",
    run};

}  // namespace shw
