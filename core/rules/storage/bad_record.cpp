#include <fmt/core.h>

#include <unordered_map>

#include "core/base/words.h"
#include "core/facts/evidence.h"
#include "core/facts/facts.h"
#include "core/rules/rules.h"
#include "core/rules/storage/flipped_element.h"
#include "core/rules/unreadable.h"

namespace shw {
namespace {

void add_record(Finding& finding, std::vector<std::string>& records, std::string_view fqn,
                std::string record) {
  add_subject(finding.subjects, fqn);
  records.push_back(std::move(record));
}

std::string where(const Error& error) {
  std::string text = error.place.file;
  if (error.place.offset) text += " at byte " + human_count(*error.place.offset);
  return text;
}

void finish_records(Finding& finding, std::vector<std::string> records, std::string cause,
                    std::vector<Finding>& findings) {
  if (finding.subjects.empty()) return;
  finding.rule = "bad-record";
  finding.cause = std::move(cause);
  finding.evidence.emplace_back("records", capped(records));
  finding.evidence.emplace_back("record_count", count_of(records.size()));
  findings.push_back(std::move(finding));
}

// Reports items whose header is invalid although the file is long enough.
void report_headers(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding;
  std::vector<std::string> records;
  std::string first;
  UnreadableCount unreadable;
  if (facts.headers.empty()) return;
  for (TensorId tensor : each_tensor(facts)) {
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      const Result<ItemHeader>& header = facts.headers[index_of(chunk)];
      if (header || header.error().kind != ErrorKind::kDamaged) continue;
      auto item = checkpoint.item(chunk);
      if (!item || !is_reachable(checkpoint, *item)) continue;
      if (first.empty()) first = header.error().message + " (" + where(header.error()) + ")";
      unreadable.add(checkpoint, tensor, chunk);
      add_record(finding, records, checkpoint.fqn(tensor),
                 where(header.error()) + ": " + header.error().message);
    }
  }
  std::string count = plural(records.size(), "item");
  unreadable.write(finding);
  finish_records(finding, records,
                 count + (records.size() == 1 ? " is" : " are") +
                     " not what torch writes, so the chunk cannot be read: " + first,
                 findings);
}

std::string crc_text(const Checkpoint& checkpoint, FileId file, const DataCheck& check) {
  return fmt::format("{} [{}, {}): record {}", checkpoint.file(file).path, check.record_offset,
                     check.record_offset + check.record_length, check.record);
}

// Adds the single flipped bits that would explain the difference, and how probable that is.
void add_flipped(const std::vector<FlippedElement>& flipped, std::string& cause, Finding& finding) {
  if (flipped.empty()) return;
  std::vector<std::string> texts;
  for (const FlippedElement& one : flipped) texts.push_back(one.text);
  const std::string more =
      flipped.size() == 1 ? "" : fmt::format(", and {} more are the same", flipped.size() - 1);
  cause += fmt::format(
      " One flipped bit would explain {}{} (the chance that other damage looks the same is {:.2g} "
      "%).",
      texts.front(), more, 100 * flipped.front().chance);
  finding.evidence.emplace_back("flipped_bits", std::move(texts));
}

// Reports data that differs from its checksum.
void report_data(const Facts& facts, std::vector<Finding>& findings) {
  const Checkpoint& checkpoint = facts.checkpoint;
  Finding finding;
  std::vector<std::string> records;
  std::string first;  // the damage of the first item
  std::vector<FlippedElement> flipped;
  UnreadableCount damaged, unreadable;
  auto look = [&](std::string_view fqn, const ItemPlace& item, const Result<DataCheck>& data,
                  bool header_is_good) {
    if (!is_reachable(checkpoint, item)) return;
    if (!data) {
      // An invalid header has been reported already.
      if (data.error().kind != ErrorKind::kDamaged || !header_is_good) return;
      std::string record = where(data.error()) + ": " + data.error().message;
      if (first.empty()) first = record;
      add_record(finding, records, fqn, std::move(record));
    } else if (data->crc == DataCheck::Crc::kDiffers) {
      std::string record = crc_text(checkpoint, item.file, *data);
      if (first.empty()) first = record + " does not match its checksum";
      add_record(finding, records, fqn, std::move(record));
    }
  };
  for (TensorId tensor : each_tensor(facts)) {
    if (facts.data.empty()) break;
    for (ChunkId chunk : checkpoint.chunks(tensor)) {
      auto item = checkpoint.item(chunk);
      std::size_t i = index_of(chunk);
      bool header_is_good = facts.headers.empty() || facts.headers.has_value(i);
      const Result<DataCheck> data = facts.data[i];
      if (!item) continue;
      look(checkpoint.fqn(tensor), *item, data, header_is_good);
      const bool differs = data && data->crc == DataCheck::Crc::kDiffers;
      if (differs && is_reachable(checkpoint, *item)) damaged.add(checkpoint, tensor, chunk);
      if (!data && data.error().kind == ErrorKind::kDamaged && header_is_good &&
          is_reachable(checkpoint, *item))
        unreadable.add(checkpoint, tensor, chunk);
      if (!differs || flipped.size() == kMaxEvidence) continue;
      if (auto one = flipped_element(facts, tensor, chunk, *data)) flipped.push_back(*one);
    }
  }
  for (std::size_t i = 0; i < facts.object_data.size(); ++i) {
    const NonTensorEntry& object = checkpoint.objects()[i];
    const Result<DataCheck>& data = facts.object_data[i];
    if (object.item) {
      look(object.fqn, *object.item, data, true);
    } else if (object.inlined && !data && data.error().kind == ErrorKind::kDamaged) {
      std::string record = where(data.error()) + ": " + data.error().message;
      if (first.empty()) first = record;
      add_record(finding, records, object.fqn, std::move(record));
    }
  }
  std::string count = plural(records.size(), "item");
  std::string cause = "The bytes of " + count + " differ from what was written: " + first + ".";
  unreadable.write(finding);
  damaged.add_damage_evidence(finding);
  add_flipped(flipped, cause, finding);
  finish_records(finding, records, std::move(cause), findings);
}

// If checksums cover files rather than items, every tensor of such a file may be affected.
void report_files(const Facts& facts, std::vector<Finding>& findings) {
  Finding finding;
  std::vector<std::string> records;
  std::string first;
  for (std::size_t i = 0; i < facts.file_data.size(); ++i) {
    const FileId file{static_cast<std::uint32_t>(i)};
    const Result<DataCheck>& data = facts.file_data[i];
    std::string record;
    if (!data && data.error().kind == ErrorKind::kDamaged)
      record = where(data.error()) + ": " + data.error().message;
    else if (data && data->crc == DataCheck::Crc::kDiffers)
      record = crc_text(facts.checkpoint, file, *data) + " does not match its checksum";
    else
      continue;
    if (first.empty()) first = record;
    add_record(finding, records, facts.checkpoint.file(file).path, std::move(record));
  }
  std::string count = plural(records.size(), "file");
  finish_records(finding, records,
                 "The bytes of " + count + " differ from what was written: " + first +
                     ". It is not known which of its tensors are damaged.",
                 findings);
}

void find_bad_records(const Facts& facts, std::vector<Finding>& findings) {
  report_headers(facts, findings);
  report_data(facts, findings);
  report_files(facts, findings);
}

}  // namespace

const Rule kBadRecord = {
    .id = "bad-record",
    .depth = Depth::kHeaders,
    .title = "The bytes of an item are damaged",
    .teaches =
        "Each chunk is stored as a small archive: a header with shape and dtype, the bytes, and "
        "checksums. This archive cannot be read, or its bytes do not match their checksum. torch "
        "does not verify the checksum on load, so the damaged values enter the model without an "
        "error. The disk, the network or an interrupted copy changed the bytes. If one flipped bit "
        "(usually in memory) would explain the mismatch, the element and its former value are "
        "named; other damage can look the same, so nothing is restored from that. Copy the file "
        "again from the original. If every copy is damaged, this chunk is lost; other chunks are "
        "not lost.",
    .lesson = {.drawing = R"(
  item of a tile    ┌────────┬──────────────┬────────┬───────────┐
                    │ header │ elements     │ CRC-32 │ directory │
                    └────────┴──────────────┴────────┴───────────┘
  recorded CRC 0x1c291ca3     computed 0x8d3f0b52: the elements changed
)",
               .remedy = "Copy the file again from the original. If every copy is damaged, this "
                         "chunk is lost; other chunks are not lost.",
               .link = "https://github.com/pytorch/pytorch/pull/170244"},
    .words = {.text = "the bytes are damaged",
              .as_warning = "other programs may read it differently"},
    .outcome = RunOutcome::kLoadFails,
    .damages_bytes = true,
    .run = find_bad_records,
};

}  // namespace shw
