#include "core/repair/proof/agreement.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/exec/journal.h"
#include "core/facts/storage/integrity.h"
#include "core/formats/items/item_hash.h"
#include "core/formats/non_item_bytes.h"
#include "core/io/owner.h"
#include "core/io/read_whole.h"
#include "core/repair/plan/operations.h"
#include "core/repair/proof/digests.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/in_place_files.h"
#include "core/repair/run/lost.h"

namespace shw {
namespace {

// True for files that a repair keeps in the folder for itself.
bool is_repair_work_file(std::string_view path) {
  static constexpr std::array<std::string_view, 10> kOwnFileNames = {
      ".metadata.shardwright-undo",
      ".metadata.shardwright-new",
      ".metadata.shardwright-half",
      "certificate.json.shardwright-undo",
      "certificate.json.shardwright-new",
      "certificate.json.shardwright-half",
      kOwnerFile,
      kJournalFile,
      in_place::kRequest,
      in_place::kHalfRequest};
  return path == kCertificateFile ||
         std::find(kOwnFileNames.begin(), kOwnFileNames.end(), path) != kOwnFileNames.end();
}

// All files of the folder, also those below linked folders, which a listing does not enter.
Result<std::set<std::string>> certified_paths(const Checkpoint& checkpoint) {
  SHW_TRY(auto listed, checkpoint.directory()->list());
  std::set<std::string> paths;
  for (const Entry& entry : listed) {
    if (entry.kind == EntryKind::kFile && !is_repair_work_file(entry.path))
      paths.insert(entry.path);
  }
  for (const FileRow& file : checkpoint.files()) {
    if (file.referenced && file.safe && file.kind == EntryKind::kFile) paths.insert(file.path);
  }
  return paths;
}

std::string in_words(std::int64_t lost, const std::string& fill) {
  return fill.empty() ? fmt::format("{} lost", lost)
                      : fmt::format("{} lost, filled with \"{}\"", lost, fill);
}

Status compare_loss_records(const Certificate& certificate, const Checkpoint& checkpoint,
                            const Progress* progress, CertificateContradictions& found) {
  FilledText inside = read_filled_record_text(checkpoint);
  bool one_file = checkpoint.format().traits.has_index;
  bool sealed = certificate.seal != Certificate::Seal::kMissing;
  for (const std::string& text : inside.texts) {
    auto record = filled_from_json(text, progress);
    if (is_cancelled(progress)) return cancelled_error();
    inside.damaged = inside.damaged || !record;
    if (record) compare_loss_record(certificate, inside.place, *record, one_file, found.broken);
  }
  // Earlier versions wrote no record into the checkpoint.
  if (inside.texts.empty() && one_file && sealed)
    compare_loss_record(certificate, inside.place, {}, true, found.broken);
  if (inside.damaged)
    found.broken.push_back(inside.place + ": its record of what was filled cannot be read");
  const Directory& directory = *checkpoint.directory();
  if (directory.stat(kLostFile).kind != EntryKind::kFile) return {};
  SHW_TRY(auto source, directory.open(kLostFile));
  SHW_TRY(Bytes bytes, read_whole(*source));
  auto record =
      filled_from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, progress);
  if (is_cancelled(progress)) return cancelled_error();
  if (record) {
    compare_loss_record(certificate, kLostFile, *record, true, found.broken);
  } else {
    found.broken.push_back(std::string(kLostFile) + ": cannot be read");
  }
  return {};
}

Status compare_objects(const Certificate& certificate, const Checkpoint& checkpoint,
                       Progress* progress, CertificateContradictions& found) {
  SHW_TRY(auto now, certify_objects(checkpoint, progress));
  std::map<std::string_view, const ObjectCertificate*> items;
  for (const ObjectCertificate& object : now) items[object.fqn] = &object;
  for (const ObjectCertificate& object : certificate.objects) {
    auto at = items.find(object.fqn);
    if (at == items.end()) {
      found.broken.push_back(object.fqn + ": is certified, but missing");
    } else if (at->second->item != object.item) {
      found.broken.push_back(object.fqn + ": the entry differs from the certified one");
    } else if (!at->second->damage.empty()) {
      found.unknown.push_back(object.fqn + ": " + at->second->damage +
                              ": it cannot be proved that its values are those that were saved");
    }
    if (at != items.end()) items.erase(at);
  }
  for (const auto& [fqn, item] : items)
    found.broken.push_back(std::string(fqn) + ": is present, but not in the certificate");
  return {};
}

// Reads files for which `is_read(path, size)` is true; other files get no `rest`.
Result<std::vector<FileCertificate>> certify_files_where(
    const Checkpoint& result, const ItemHashes& hashes,
    const std::function<bool(const std::string&, std::uint64_t)>& is_read, Progress* progress) {
  SHW_TRY(std::set<std::string> paths, certified_paths(result));
  std::map<std::string_view, std::string> digests;
  std::vector<std::string> by_file = digests_of_files(result, hashes);
  for (std::size_t i = 0; i < by_file.size(); ++i)
    digests[result.files()[i].path] = std::move(by_file[i]);
  const NonItemBytes non_item_bytes(result);
  std::vector<FileCertificate> files;
  for (const std::string& path : paths) {
    files.push_back({path, result.directory()->stat(path).size, {}, std::move(digests[path])});
    // The bytes next to the items may be larger than the items.
    if (progress == nullptr || !is_read(path, files.back().size)) continue;
    for (const ByteRange& range : non_item_bytes.of(path, files.back().size))
      progress->total += range.length;
  }
  SHW_CHECK(parallel_for(files.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(progress)) return cancelled_error();
    SHW_TRY(auto source, result.directory()->open(files[i].path));
    files[i].size = source->size();
    if (!is_read(files[i].path, files[i].size)) return {};
    SHW_TRY(files[i].rest,
            hash_ranges(*source, non_item_bytes.of(files[i].path, source->size()), progress));
    return {};
  }));
  return files;
}

Status compare_files(const Certificate& certificate, const Checkpoint& checkpoint,
                     const ItemHashes& hashes, Progress* progress,
                     CertificateContradictions& found) {
  std::map<std::string_view, std::uint64_t> sizes;
  for (const FileCertificate& file : certificate.files) sizes[file.path] = file.size;
  // A differing size suffices to reject a file, and a stray file may be huge.
  const auto is_of_its_size = [&](const std::string& path, std::uint64_t size) {
    const auto named = sizes.find(path);
    return named != sizes.end() && named->second == size;
  };
  SHW_TRY(auto now, certify_files_where(checkpoint, hashes, is_of_its_size, progress));
  std::map<std::string_view, const FileCertificate*> files;
  for (const FileCertificate& file : now) files[file.path] = &file;
  for (const FileCertificate& file : certificate.files) {
    auto at = files.find(file.path);
    if (at == files.end()) {
      found.broken.push_back(file.path + ": is certified, but missing");
      continue;
    }
    if (at->second->size != file.size) {
      found.broken.push_back(fmt::format("{}: has {} bytes, but {} were certified", file.path,
                                         at->second->size, file.size));
    } else if (at->second->rest != file.rest) {
      found.broken.push_back(file.path + ": differs from the certified file");
    }
    files.erase(at);
  }
  for (const auto& [path, file] : files) {
    found.unknown.push_back(std::string(path) +
                            ": is present, but the certificate does not name it");
  }
  return {};
}

}  // namespace

void compare_loss_record(const Certificate& certificate, const std::string& file,
                         const FilledRecord& record, bool speaks_for_all,
                         std::vector<std::string>& broken) {
  std::map<std::string_view, const FilledTensor*> said;
  for (const FilledTensor& tensor : record.tensors) said[tensor.fqn] = &tensor;
  for (const TensorCertificate& entry : certificate.tensors) {
    auto at = said.find(entry.fqn);
    const FilledTensor* tensor = at == said.end() ? nullptr : at->second;
    if (at != said.end()) said.erase(at);
    if (tensor == nullptr && (!speaks_for_all || entry.lost == 0 || entry.fill.empty())) continue;
    std::int64_t lost = tensor == nullptr ? 0 : tensor->lost;
    std::string fill = tensor == nullptr ? "" : tensor->fill;
    bool same_boxes =
        tensor == nullptr || !tensor->has_all_boxes || tensor->boxes == entry.lost_boxes;
    bool agree = lost == entry.lost && fill == entry.fill && same_boxes &&
                 (tensor == nullptr || (tensor->fill_from == entry.fill_from &&
                                        tensor->fill_checkpoint == entry.fill_checkpoint));
    if (agree) continue;
    broken.push_back(entry.fqn + ": " + file + " says " + in_words(lost, fill) +
                     ", the certificate says " + in_words(entry.lost, entry.fill));
  }
  for (const auto& [fqn, tensor] : said)
    broken.push_back(std::string(fqn) + ": " + file +
                     " says that it lost elements, but it is not in the certificate");
  for (const FilledEntry& entry : record.entries) {
    bool told = std::any_of(certificate.entries.begin(), certificate.entries.end(),
                            [&](const EntryCertificate& one) {
                              return one.fqn == entry.fqn && one.from == entry.from;
                            });
    if (!told || certificate.lossless)
      broken.push_back(entry.fqn + ": " + file + " says that it says what " + entry.from +
                       " said, and the certificate hides it");
  }
}

Result<std::vector<ObjectCertificate>> certify_objects(const Checkpoint& result,
                                                       Progress* progress) {
  std::vector<ObjectCertificate> objects;
  // Entries may be large, because trainers may pickle anything, so their bytes count as progress.
  for (const NonTensorEntry& row : result.objects()) {
    if (progress != nullptr && row.item)
      progress->total += narrow<std::uint64_t>(row.item->length).value_or(0);
  }
  ItemCursor items(result, /*decoded_bytes=*/0);
  for (const NonTensorEntry& row : result.objects()) {
    if (is_cancelled(progress)) return cancelled_error();
    objects.push_back({row.fqn, {}});
    if (!row.item) continue;
    SHW_TRY(VerifiedItem held, hash_and_verify(items, row, progress));
    objects.back().item = to_hex(held.hash);
    objects.back().damage = std::move(held.mismatch);
  }
  return objects;
}

Status write_integrity(const Checkpoint& result, WritableDirectory& folder, Progress* progress) {
  SHW_TRY(std::set<std::string> paths, certified_paths(result));
  paths.erase(kIntegrityFile);
  SHW_TRY(std::string list,
          make_integrity_list(*result.directory(), {paths.begin(), paths.end()}, progress));
  return write_text(folder, kIntegrityFile, list);
}

Result<std::vector<FileCertificate>> certify_files(const Checkpoint& result,
                                                   const ItemHashes& hashes, Progress* progress) {
  return certify_files_where(
      result, hashes, [](const std::string&, std::uint64_t) { return true; }, progress);
}

Result<CertificateContradictions> find_certificate_contradictions(const Certificate& certificate,
                                                                  const Checkpoint& checkpoint,
                                                                  const ItemHashes& hashes,
                                                                  Progress* progress) {
  CertificateContradictions found;
  // Certificates of old versions lack both objects and files; they prove nothing in any case.
  if (certificate.seal != Certificate::Seal::kMissing) {
    SHW_CHECK(compare_objects(certificate, checkpoint, progress, found));
    SHW_CHECK(compare_files(certificate, checkpoint, hashes, progress, found));
    for (const TensorCertificate& entry : certificate.tensors) {
      if (entry.dtype.empty()) found.broken.push_back(entry.fqn + ": its dtype is not certified");
    }
  }
  SHW_CHECK(compare_loss_records(certificate, checkpoint, progress, found));
  return found;
}

}  // namespace shw
