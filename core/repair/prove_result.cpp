#include "core/repair/prove_result.h"

#include <map>

#include "core/base/parallel.h"
#include "core/formats/items.h"
#include "core/repair/compare.h"
#include "core/repair/entries.h"
#include "core/repair/inverse.h"
#include "core/repair/lost.h"
#include "core/repair/lower.h"
#include "core/repair/proof.h"
#include "core/repair/steps.h"

namespace shw {
namespace {

struct Proving {
  const Checkpoint& source;
  const Plan& plan;
  const Checkpoint& result;
  WritableDirectory& folder;
  Progress* progress;
};

// A tile that was made, and where it lies now.
struct MadeChunk {
  const PlannedTensor* tensor;
  const PlannedChunk* chunk;
  ChunkId at;
};

std::vector<MadeChunk> made_chunks(const Proving& proving) {
  std::vector<MadeChunk> made;
  for (const PlannedTensor& tensor : proving.plan.tensors) {
    auto there = proving.result.find(fqn_after(proving.source, tensor));
    std::map<Extents, ChunkId> by_offsets;
    for (ChunkId chunk : proving.result.chunks(*there)) {
      if (volume(proving.result.sizes(chunk)) != 0)
        by_offsets[copy_of(proving.result.offsets(chunk))] = chunk;
    }
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (chunk.item || is_empty(chunk.box)) continue;
      made.push_back({&tensor, &chunk, by_offsets.at(chunk.box.offsets)});
    }
  }
  return made;
}

// Tiles that were made, read back and held against what they were made of.
Status compare_made(const Proving& proving) {
  std::vector<MadeChunk> made = made_chunks(proving);
  return each_in_parallel(made.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(proving.progress)) return cancelled_error();
    const auto& [tensor, chunk, at] = made[i];
    bool only_zeros = chunk->pieces.empty() && chunk->side.empty() && tensor->fill == Fill::kZero;
    if (only_zeros) {
      // A hole may stand for far more than fits into memory; its CRC covers every byte.
      SHW_TRY(DataCheck check, check_item_data(proving.result, at, proving.progress));
      if (check.crc == DataCheck::Crc::kMatches) return {};
      if (check.crc == DataCheck::Crc::kDiffers)
        return fail(ErrorKind::kIo, "a filled tile differs after it was written",
                    Place{.file = {}, .tensor = std::string(fqn_after(proving.source, *tensor))});
    }
    BoxReader source(proving.source), written(proving.result);
    return compare_payload(*tensor, *chunk, source, written, at, proving.progress);
  });
}

// Certifies the way back of every tensor whose bytes moved, and goes it once.
Status prove_inverse(const Proving& proving, Certificate& certificate) {
  for (const PlannedTensor& planned : proving.plan.tensors) {
    TensorCertificate& entry = certificate.tensors[index_of(planned.tensor)];
    SHW_TRY(entry.inverse, inverse_of(planned, proving.source, proving.progress));
    if (entry.inverse.empty()) continue;
    SHW_TRY(std::string why,
            contradiction_of_inverse(entry.inverse, *proving.result.find(entry.fqn), proving.result,
                                     proving.progress));
    if (!why.empty()) return fail(ErrorKind::kIo, why, Place{.file = {}, .tensor = entry.fqn});
  }
  return {};
}

Status compare_objects(const Proving& proving) {
  std::map<std::string_view, const ObjectRow*> rows;
  for (const ObjectRow& row : proving.result.objects()) rows[row.fqn] = &row;
  std::map<std::string_view, std::string_view> new_names;
  for (const RenamedObject& object : proving.plan.objects)
    new_names[proving.source.objects()[object.object].fqn] = object.fqn;
  std::vector<std::size_t> items = items_after(proving.source, proving.plan);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const ObjectRow& row = proving.source.objects()[i];
    const auto& item = proving.source.objects()[items[i]].item;
    auto renamed = new_names.find(row.fqn);
    auto found = rows.find(renamed == new_names.end() ? row.fqn : renamed->second);
    bool there = found != rows.end() && found->second->item && item;
    if (there) {
      SHW_TRY(std::string before, hash_item(proving.source, *item, nullptr));
      SHW_TRY(std::string after, hash_item(proving.result, *found->second->item, nullptr));
      if (before == after) continue;
    }
    return fail(ErrorKind::kIo, "an object differs from its source after it was copied",
                Place{.file = {}, .tensor = row.fqn});
  }
  return {};
}

// lost.json first: it is certified too.
Status write_certificate(const Proving& proving, Certificate& certificate) {
  if (!certificate.lossless)
    SHW_CHECK(write_text(proving.folder, kLostFile, lost_to_json(certificate)));
  SHW_TRY(certificate.objects, certify_objects(proving.result));
  SHW_TRY(certificate.files, certify_files(proving.result, nullptr));
  return write_text(proving.folder, kCertificateFile, certificate_to_json(certificate));
}

}  // namespace

Result<bool> prove_result(const Checkpoint& source, const Plan& plan, const Checkpoint& result,
                          WritableDirectory& folder, Progress* progress) {
  Proving proving{source, plan, result, folder, progress};
  if (progress != nullptr) progress->begin(Phase::kVerifying, 2 * item_bytes(source), true);
  SHW_CHECK(compare_metadata(source, plan, result));
  SHW_TRY(auto before, hash_all_items(source, progress));
  SHW_TRY(auto after, hash_all_items(result, progress));
  SHW_TRY(Certificate certificate, certify(source, before, result, after, plan));
  SHW_CHECK(compare_made(proving));
  SHW_CHECK(prove_inverse(proving, certificate));
  SHW_CHECK(compare_objects(proving));
  SHW_CHECK(write_certificate(proving, certificate));
  return certificate.lossless;
}

}  // namespace shw
