// A repair into a new directory. Everything is made under "<out>.shardwright-partial-<pid>",
// verified there, made durable, and gets its name last; on the way there the source is only read.
#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/formats/items.h"
#include "core/formats/open.h"
#include "core/io/owner.h"
#include "core/io/place.h"
#include "core/io/store.h"
#include "core/repair/compare.h"
#include "core/repair/entries.h"
#include "core/repair/inverse.h"
#include "core/repair/item_place.h"
#include "core/repair/lost.h"
#include "core/repair/lower.h"
#include "core/repair/operations.h"
#include "core/repair/outputs.h"
#include "core/repair/payloads.h"
#include "core/repair/proof.h"
#include "core/repair/steps.h"
#include "core/repair/write_files.h"

namespace shw {
namespace {

struct Job {
  Store& store;
  const Checkpoint& checkpoint;
  const Plan& plan;
  std::string source;   // the directory that was opened
  std::string out;      // the name it gets at the end
  std::string partial;  // the name it has until then
  Progress* progress;

  std::vector<Entry> entries;  // of the source, as they were when it began
  std::vector<Entry> copied;   // those of them that are copied
  std::unique_ptr<WritableDirectory> directory{};
  Outputs outputs{};
  LaidOut laid_out{};
  std::unique_ptr<Payloads> payloads{};
};

bool files_change(const Job& job) {
  return job.checkpoint.format().rewrite == Rewrite::kFiles;
}

// Data files that are pointed to afterwards, and those of copies.
std::set<std::string> files_needed(const Job& job) {
  std::set<std::string> needed;
  FileId last = FileId::kNone;
  auto need = [&](const std::optional<ItemPlace>& place) {
    if (!place || place->file == last) return;
    last = place->file;
    needed.insert(job.checkpoint.file(place->file).path);
  };
  for (const OutputTensor& tensor : job.outputs.tensors) {
    for (const OutputTile& tile : tensor.tiles) need(kept_place(job.outputs, tile));
  }
  for (const OutputObject& object : job.outputs.objects) need(object.place);
  // Nobody has compared the copies that other ranks saved of a tile: they come along.
  const Checkpoint& checkpoint = job.checkpoint;
  for (std::uint32_t chunk = 0; chunk < checkpoint.chunk_count(); ++chunk) {
    for (const Replica& replica : checkpoint.replicas(ChunkId{chunk}))
      need(checkpoint.place(replica.storage));
  }
  return needed;
}

// Everything that lies there comes along, but old certificates, leftovers of ours, what is written
// anew, and data files that nothing points to any more.
Status choose_files(Job& job) {
  SHW_TRY(job.entries, job.checkpoint.directory()->list());
  std::set<std::string> needed = files_needed(job), referenced, listed;
  std::set<std::string> anew = job.laid_out.replaced;
  for (const LaidOut::File& file : job.laid_out.files) anew.insert(file.path);
  for (const FileRow& row : job.checkpoint.files()) {
    if (row.referenced) referenced.insert(row.path);
  }
  for (const Entry& entry : job.entries) listed.insert(entry.path);
  // Below a linked folder, which a listing does not enter.
  for (const std::string& path : needed) {
    if (!listed.contains(path)) job.entries.push_back(job.checkpoint.directory()->stat(path));
  }
  for (const Entry& entry : job.entries) {
    bool ours = entry.path == kCertificateFile || entry.path == kLostFile ||
                entry.path.find(kOurMark) != std::string::npos;
    // Where files themselves say what they hold, none is left out.
    bool dropped =
        !files_change(job) && referenced.contains(entry.path) && !needed.contains(entry.path);
    if (ours || dropped || anew.contains(entry.path)) continue;
    if (entry.kind == EntryKind::kFile) job.copied.push_back(entry);
  }
  return {};
}

Status check_space(const Job& job) {
  std::uint64_t needed = std::uint64_t{1} << 20;
  auto add = [&](std::uint64_t bytes) { needed = checked_add(needed, bytes).value_or(UINT64_MAX); };
  for (const Entry& entry : job.copied) add(std::min(entry.size, entry.disk_bytes));
  std::map<std::string_view, std::uint64_t> kept;  // in files that are made anew
  for (const OutputCopy& copy : job.laid_out.copies) kept[copy.from] += copy.length;
  for (const Entry& entry : job.entries) {
    if (auto found = kept.find(entry.path); found != kept.end())
      add(std::min(found->second, entry.disk_bytes));
  }
  for (const PlannedTensor& tensor : job.plan.tensors) add(bytes_moved(job.checkpoint, tensor));
  add(std::uint64_t{400} * job.checkpoint.chunk_count());
  SHW_TRY(std::uint64_t available, job.store.free_bytes(parent_of(job.out)));
  if (available >= needed) return {};
  return fail(ErrorKind::kIo,
              fmt::format("the repair needs {} bytes there, and {} are free", needed, available),
              {parent_of(job.out)}, "choose a directory on another disk with --out");
}

// Where everything goes, before anything is there.
Status lay_out(Job& job) {
  SHW_TRY(job.outputs, outputs_after(job.checkpoint, job.plan, job.out));
  SHW_TRY(job.laid_out, job.checkpoint.format().writer->lay_out(job.outputs));
  return {};
}

// Every byte that will be made has its place and its origin, and that is proved, before the first
// one is.
Status lower_payloads(Job& job) {
  std::vector<PayloadPlace> places;
  auto planned = planned_by_id(job.plan);
  for (const MadeTile& made : job.laid_out.made)
    places.push_back(
        {{planned.at(made.tensor), made.tile}, job.laid_out.files[made.file].path, made.offset});
  SHW_TRY(LoweredPlan lowered, lower_to_program(job.checkpoint, job.plan, places));
  job.payloads = std::make_unique<Payloads>(std::move(lowered), job.progress);
  return {};
}

Status copy_files(Job& job) {
  return each_in_parallel(job.copied.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(job.progress)) return cancelled_error();
    const std::string& path = job.copied[i].path;
    return job.directory->copy_in(job.source + "/" + path, path, job.progress);
  });
}

Status make_files(Job& job) {
  std::uint64_t bytes = 0;
  for (const Entry& entry : job.copied) bytes += entry.size;
  for (const OutputCopy& copy : job.laid_out.copies) bytes += copy.length;
  for (const MadeTile& made : job.laid_out.made) bytes += made.length;
  if (job.progress != nullptr) job.progress->begin(Phase::kCopying, bytes, true);
  SHW_CHECK(copy_files(job));
  auto planned = planned_by_id(job.plan);
  auto make = [&](const MadeTile& made, OutputFile& file) {
    return job.payloads->write({planned.at(made.tensor), made.tile}, file);
  };
  return write_files(job.outputs, job.laid_out, make, *job.directory, job.progress);
}

Status write_metadata(Job& job) {
  if (is_cancelled(job.progress)) return cancelled_error();
  if (job.progress != nullptr) job.progress->begin(Phase::kWritingMetadata, 0, false);
  return job.checkpoint.format().writer->seal(
      std::move(job.outputs), job.laid_out,
      [&](const std::string& path) { return job.directory->create(path); });
}

// A tile that was made, and where it lies now.
struct MadeChunk {
  const PlannedTensor* tensor;
  const PlannedChunk* chunk;
  ChunkId at;
};

std::vector<MadeChunk> made_chunks(const Job& job, const Checkpoint& result) {
  std::vector<MadeChunk> made;
  for (const PlannedTensor& tensor : job.plan.tensors) {
    auto there = result.find(fqn_after(job.checkpoint, tensor));
    std::map<Extents, ChunkId> by_offsets;
    for (ChunkId chunk : result.chunks(*there)) {
      if (volume(result.sizes(chunk)) != 0) by_offsets[copy_of(result.offsets(chunk))] = chunk;
    }
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (chunk.item || is_empty(chunk.box)) continue;
      made.push_back({&tensor, &chunk, by_offsets.at(chunk.box.offsets)});
    }
  }
  return made;
}

// Tiles that were made, read back and held against what they were made of.
Status compare_made(const Job& job, const Checkpoint& result) {
  std::vector<MadeChunk> made = made_chunks(job, result);
  return each_in_parallel(made.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(job.progress)) return cancelled_error();
    const auto& [tensor, chunk, at] = made[i];
    bool only_zeros = chunk->pieces.empty() && chunk->side.empty() && tensor->fill == Fill::kZero;
    if (only_zeros) {
      // A hole may stand for far more than fits into memory; its CRC covers every byte.
      SHW_TRY(DataCheck check, check_item_data(result, at, job.progress));
      if (check.crc == DataCheck::Crc::kMatches) return {};
      if (check.crc == DataCheck::Crc::kDiffers)
        return fail(ErrorKind::kIo, "a filled tile differs after it was written",
                    Place{.file = {}, .tensor = std::string(fqn_after(job.checkpoint, *tensor))});
    }
    BoxReader source(job.checkpoint), written(result);
    return compare_payload(*tensor, *chunk, source, written, at, job.progress);
  });
}

// Certifies the way back of every tensor whose bytes moved, and goes it once.
Status prove_inverse(const Job& job, const Checkpoint& result, Certificate& certificate) {
  for (const PlannedTensor& planned : job.plan.tensors) {
    TensorCertificate& entry = certificate.tensors[index_of(planned.tensor)];
    SHW_TRY(entry.inverse, inverse_of(planned, job.checkpoint, job.progress));
    if (entry.inverse.empty()) continue;
    SHW_TRY(std::string why,
            contradiction_of_inverse(entry.inverse, *result.find(entry.fqn), result, job.progress));
    if (!why.empty()) return fail(ErrorKind::kIo, why, Place{.file = {}, .tensor = entry.fqn});
  }
  return {};
}

Status compare_objects(const Job& job, const Checkpoint& result) {
  std::map<std::string_view, const ObjectRow*> rows;
  for (const ObjectRow& row : result.objects()) rows[row.fqn] = &row;
  std::map<std::string_view, std::string_view> new_names;
  for (const RenamedObject& object : job.plan.objects)
    new_names[job.checkpoint.objects()[object.object].fqn] = object.fqn;
  std::vector<std::size_t> items = items_after(job.checkpoint, job.plan);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const ObjectRow& row = job.checkpoint.objects()[i];
    const auto& item = job.checkpoint.objects()[items[i]].item;
    auto renamed = new_names.find(row.fqn);
    auto found = rows.find(renamed == new_names.end() ? row.fqn : renamed->second);
    bool there = found != rows.end() && found->second->item && item;
    if (there) {
      SHW_TRY(std::string before, hash_item(job.checkpoint, *item, nullptr));
      SHW_TRY(std::string after, hash_item(result, *found->second->item, nullptr));
      if (before == after) continue;
    }
    return fail(ErrorKind::kIo, "an object differs from its source after it was copied",
                Place{.file = {}, .tensor = row.fqn});
  }
  return {};
}

Status write_text(Job& job, const char* path, const std::string& text) {
  SHW_TRY(auto sink, job.directory->create(path));
  SHW_CHECK(sink->write(std::as_bytes(std::span(text.data(), text.size()))));
  return sink->finish();
}

// lost.json first: it is certified too.
Status write_certificate(Job& job, const Checkpoint& result, Certificate& certificate) {
  if (!certificate.lossless) SHW_CHECK(write_text(job, kLostFile, lost_to_json(certificate)));
  SHW_TRY(certificate.objects, certify_objects(result));
  SHW_TRY(certificate.files, certify_files(result, nullptr));
  return write_text(job, kCertificateFile, certificate_to_json(certificate));
}

// Opens what was written as anybody would, and proves it against the source.
Result<bool> prove(Job& job) {
  if (job.progress != nullptr)
    job.progress->begin(Phase::kVerifying, 2 * item_bytes(job.checkpoint), true);
  SHW_TRY(auto written, job.store.read_folder(job.partial));
  SHW_TRY(auto result, open_checkpoint(written));
  SHW_CHECK(compare_metadata(job.checkpoint, job.plan, *result));
  SHW_TRY(auto before, hash_all_items(job.checkpoint, job.progress));
  SHW_TRY(auto after, hash_all_items(*result, job.progress));
  SHW_TRY(Certificate certificate, certify(job.checkpoint, before, *result, after, job.plan));
  SHW_CHECK(compare_made(job, *result));
  SHW_CHECK(prove_inverse(job, *result, certificate));
  SHW_CHECK(compare_objects(job, *result));
  SHW_CHECK(write_certificate(job, *result, certificate));
  return certificate.lossless;
}

Status check_source_unchanged(const Job& job) {
  for (const Entry& before : job.entries) {
    Entry now = job.checkpoint.directory()->stat(before.path);
    if (now.size == before.size && now.modified_ns == before.modified_ns &&
        now.kind == before.kind) {
      continue;
    }
    return fail(ErrorKind::kIo, "changed while it was being repaired", {before.path},
                "wait until nothing writes to the checkpoint, then repair again");
  }
  return {};
}

Result<RepairResult> build(Job& job) {
  // First of all: without it nobody could tell later that this run was killed.
  SHW_CHECK(write_text(job, kOwnerFile, this_process()));
  SHW_CHECK(lower_payloads(job));
  SHW_CHECK(make_files(job));
  job.payloads.reset();  // and what it holds in memory
  SHW_CHECK(write_metadata(job));
  SHW_TRY(bool lossless, prove(job));
  SHW_CHECK(check_source_unchanged(job));
  if (is_cancelled(job.progress)) return cancelled_error();
  SHW_CHECK(job.directory->remove(kOwnerFile));
  SHW_CHECK(job.directory->sync());
  SHW_CHECK(job.store.publish(job.partial, job.out));
  return RepairResult{job.out, job.out + "/" + kCertificateFile, lossless};
}

}  // namespace

Result<RepairResult> repair_into_new_directory(Store& store, const Checkpoint& checkpoint,
                                               const Plan& plan, const std::string& out,
                                               Progress* progress) {
  Plan formed = in_form_of(checkpoint, plan);
  for (const PlannedTensor& tensor : formed.tensors) SHW_CHECK(prove_planned(checkpoint, tensor));
  Job job{store,    checkpoint,
          formed,   checkpoint.directory()->name(),
          out,      fmt::format("{}{}{}", out, kPartialMark, ::getpid()),
          progress, {},
          {}};
  // Without an index of its own there is nothing that a plan of nothing could write.
  bool writable = checkpoint.format().writer != nullptr && !(files_change(job) && formed.empty());
  if (!writable) {
    return fail(ErrorKind::kUnsupported, std::string("repairs of ") +
                                             std::string(checkpoint.format().title) +
                                             " are not written yet");
  }
  SHW_CHECK(lay_out(job));
  SHW_CHECK(choose_files(job));
  sweep_abandoned(store, job.out, kPartialMark);
  SHW_CHECK(check_space(job));
  SHW_TRY(job.directory, store.make_folder(job.partial));
  auto built = build(job);
  if (built || !store.exists(job.partial)) return built;
  if (auto discarded = store.discard(job.partial, kPartialMark); !discarded) {
    built.error().advice = "what was made so far could not be removed and lies in " + job.partial +
                           " (" + discarded.error().message + ")";
  }
  return built;
}

}  // namespace shw
