// A repair into a new directory. Everything is made under "<out>.shardwright-partial-<pid>",
// verified there, made durable, and gets its name last; on the way there the source is only read.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "core/base/checked.h"
#include "core/formats/dcp/dcp_form.h"
#include "core/formats/items.h"
#include "core/formats/open.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/io/owner.h"
#include "core/io/place.h"
#include "core/repair/compare.h"
#include "core/repair/entries.h"
#include "core/repair/inverse.h"
#include "core/repair/item_place.h"
#include "core/repair/lost.h"
#include "core/repair/lower.h"
#include "core/repair/operations.h"
#include "core/repair/proof.h"
#include "core/repair/steps.h"

namespace shw {
namespace {

struct Job {
  const RepairFileSystem& files;
  const Checkpoint& checkpoint;
  const Plan& plan;
  std::string source;   // the directory that was opened
  std::string out;      // the name it gets at the end
  std::string partial;  // the name it has until then
  Progress* progress;

  std::vector<Entry> entries;  // of the source, as they were when it began
  std::vector<Entry> copied;   // those of them that are copied
  std::unique_ptr<WritableDirectory> directory{};
  NewSafetensors safetensors{};
  std::vector<NewItemFile> new_files{};
  std::unique_ptr<Payloads> payloads{};
  MadeItems made{};
};

bool is_metadata(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  return name == kMetadataFile || (name.starts_with("__") && name.ends_with(kMetadataFile));
}

bool files_change(const Job& job) {
  return job.checkpoint.format().rewrite == Rewrite::kFiles;
}
bool index_changes(const Job& job) {
  return job.checkpoint.format().rewrite == Rewrite::kIndex;
}

// Data files that the plan still points to.
std::set<std::string> files_needed(const Job& job) {
  const Checkpoint& checkpoint = job.checkpoint;
  std::set<std::string> needed;
  std::vector<bool> planned(checkpoint.tensor_count(), false);
  auto need = [&](const std::optional<ItemPlace>& item) {
    if (item) needed.insert(checkpoint.file(item->file).path);
  };
  for (const PlannedTensor& tensor : job.plan.tensors) {
    planned[index_of(tensor.tensor)] = true;
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (chunk.item) need(item_of_planned(checkpoint, chunk));
    }
  }
  FileId last = FileId::kNone;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    if (planned[t]) continue;
    for (ChunkId chunk : checkpoint.chunks(TensorId{t})) {
      auto item = checkpoint.item(chunk);
      if (item && item->file == last) continue;
      if (item) last = item->file;
      need(item);
    }
  }
  for (const ObjectRow& object : checkpoint.objects()) need(object.item);
  return needed;
}

// Everything that lies there comes along, but old certificates, leftovers of ours, the metadata
// that is written anew, and data files that nothing points to any more.
Status choose_files(Job& job) {
  SHW_TRY(job.entries, job.checkpoint.directory()->list());
  std::set<std::string> needed = files_needed(job), referenced, listed;
  for (const FileRow& row : job.checkpoint.files()) {
    if (row.referenced) referenced.insert(row.path);
  }
  for (const Entry& entry : job.entries) listed.insert(entry.path);
  // Below a linked folder, which a listing does not enter.
  for (const std::string& path : needed) {
    if (!listed.contains(path)) job.entries.push_back(job.checkpoint.directory()->stat(path));
  }
  bool new_metadata = index_changes(job);
  for (const Entry& entry : job.entries) {
    bool ours = entry.path == kCertificateFile || entry.path == kLostFile ||
                entry.path.find(kOurMark) != std::string::npos;
    // A file that is written anew where it changes is never left out.
    bool dropped =
        !files_change(job) && referenced.contains(entry.path) && !needed.contains(entry.path);
    if (ours || dropped || (new_metadata && is_metadata(entry.path))) continue;
    if (entry.kind == EntryKind::kFile) job.copied.push_back(entry);
  }
  return {};
}

Status check_space(const Job& job) {
  std::uint64_t needed = std::uint64_t{1} << 20;
  auto add = [&](std::uint64_t bytes) { needed = checked_add(needed, bytes).value_or(UINT64_MAX); };
  for (const Entry& entry : job.copied) add(std::min(entry.size, entry.disk_bytes));
  for (const PlannedTensor& tensor : job.plan.tensors) add(bytes_moved(job.checkpoint, tensor));
  add(std::uint64_t{400} * job.checkpoint.chunk_count());
  SHW_TRY(std::uint64_t available, job.files.free_space(parent_of(job.out)));
  if (available >= needed) return {};
  return fail(ErrorKind::kIo,
              "the repair needs " + std::to_string(needed) + " bytes there, and " +
                  std::to_string(available) + " are free",
              {parent_of(job.out)}, "choose a directory on another disk with --out");
}

Status write_safetensors(const Job& job, const std::string& path, const std::string& from,
                         const SafetensorsChange& change) {
  SHW_TRY(auto source, job.checkpoint.directory()->open(from));
  SHW_TRY(auto sink, job.directory->create(path));
  SHW_CHECK(change.moves_bytes() ? rewrite_safetensors(*source, change, *sink)
                                 : copy_with_sharding_info(*source, change.saved_offsets, *sink));
  return sink->finish();
}

// Tensors whose entries in the index name another file than theirs.
std::map<std::string, std::string> homes_in_index(const Job& job) {
  std::map<std::string, std::string> homes;
  for (const Operation& operation : job.plan.operations) {
    if (operation.rule != "index-misplaced") continue;
    for (const std::string& fqn : operation.subjects) {
      auto tensor = job.checkpoint.find(fqn);
      auto chunks = tensor ? job.checkpoint.chunks(*tensor) : Checkpoint::ChunkRange{};
      auto item = chunks.empty() ? std::nullopt : job.checkpoint.item(chunks[0]);
      if (item) homes[fqn] = job.checkpoint.file(item->file).path;
    }
  }
  return homes;
}

Status write_index(const Job& job, const std::string& path, const NewSafetensors& made,
                   const std::map<std::string, std::string>& homes) {
  SHW_TRY(auto source, job.checkpoint.directory()->open(path));
  SHW_TRY(std::string text, index_with(*source, made.more_bytes, made.more_elements, homes));
  SHW_TRY(auto sink, job.directory->create(path));
  SHW_CHECK(sink->write(std::as_bytes(std::span(text.data(), text.size()))));
  return sink->finish();
}

Status copy_files(Job& job) {
  const NewSafetensors& made = job.safetensors;
  auto homes = homes_in_index(job);
  bool new_index = made.more_bytes != 0 || made.more_elements != 0 || !homes.empty();
  auto index = new_index ? find_safetensors_index(*job.checkpoint.directory()) : std::nullopt;
  std::uint64_t bytes = 0;
  for (const Entry& entry : job.copied) bytes += entry.size;
  if (job.progress != nullptr) job.progress->begin(Phase::kCopying, bytes, true);
  for (const Entry& entry : job.copied) {
    if (is_cancelled(job.progress)) return cancelled_error();
    auto change = made.changes.find(entry.path);
    bool is_index = entry.path == index;
    if (change == made.changes.end() && !is_index) {
      SHW_CHECK(job.directory->copy_in(job.source + "/" + entry.path, entry.path, job.progress));
      continue;
    }
    SHW_CHECK(is_index ? write_index(job, entry.path, made, homes)
                       : write_safetensors(job, entry.path, entry.path, change->second));
    if (job.progress != nullptr) job.progress->add(entry.size);
  }
  for (const auto& [path, from] : made.added)
    SHW_CHECK(write_safetensors(job, path, from, made.changes.at(path)));
  return {};
}

// "__<rank>_<n>.distcp": the first n that no file of this rank has.
std::string next_file(const Job& job, std::uint32_t rank) {
  std::string prefix = "__" + std::to_string(rank) + "_";
  std::uint64_t next = 0;
  auto look = [&](std::string_view path) {
    std::string_view name = path.substr(path.rfind('/') + 1);
    if (!name.starts_with(prefix)) return;
    std::uint64_t n = 0;
    auto [end, code] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), n);
    if (code == std::errc{} && end != name.data() + prefix.size() && n < UINT64_MAX)
      next = std::max(next, n + 1);
  };
  for (const Entry& entry : job.entries) look(entry.path);
  return prefix + std::to_string(next) + ".distcp";
}

// One new file a rank, with the items of all its new tiles.
void choose_new_files(Job& job) {
  std::map<std::uint32_t, std::vector<NewChunk>> by_writer;
  for (std::size_t t = 0; t < job.plan.tensors.size(); ++t) {
    const PlannedTensor& tensor = job.plan.tensors[t];
    for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
      if (!tensor.chunks[c].item) by_writer[tensor.chunks[c].writer].emplace_back(t, c);
    }
  }
  for (auto& [writer, chunks] : by_writer)
    job.new_files.push_back({next_file(job, writer), std::move(chunks)});
}

// Every byte that will be written has its place and its origin, and that is proved, before the
// first one is.
Status lower_payloads(Job& job) {
  std::vector<PayloadPlace> places;
  if (files_change(job)) {
    SHW_TRY(job.safetensors, new_safetensors(job.checkpoint, job.plan));
    SHW_CHECK(lay_out_safetensors(job.checkpoint, job.plan, job.safetensors));
    places = job.safetensors.places;
  } else {
    choose_new_files(job);
    SHW_TRY(places, lay_out_items(job.checkpoint, job.plan, job.new_files));
  }
  SHW_TRY(LoweredPlan lowered, lower_to_program(job.checkpoint, job.plan, places));
  // Files that are written anew are counted as they are copied.
  Progress* progress = files_change(job) ? nullptr : job.progress;
  job.payloads = std::make_unique<Payloads>(std::move(lowered), progress);
  give_payloads(job.checkpoint, job.plan, *job.payloads, job.safetensors);
  return {};
}

Status make_items(Job& job) {
  if (job.new_files.empty()) return {};
  std::uint64_t bytes = 0;
  for (const PlannedTensor& tensor : job.plan.tensors) bytes += bytes_moved(job.checkpoint, tensor);
  if (job.progress != nullptr) job.progress->begin(Phase::kCopying, bytes, true);
  for (const NewItemFile& file : job.new_files) {
    SHW_TRY(auto sink, job.directory->create(file.name));
    for (const NewChunk& id : file.chunks) {
      const PlannedTensor& tensor = job.plan.tensors[id.first];
      std::uint64_t offset = sink->position();
      SHW_TRY(std::uint64_t length,
              write_torch_item(*sink, job.checkpoint.dtype(tensor.tensor),
                               tensor.chunks[id.second].box.sizes, job.payloads->writer_of(id)));
      job.made[id] = DcpItem{file.name, offset, length, {}};
    }
    SHW_CHECK(sink->finish());
  }
  return {};
}

Status write_metadata(Job& job) {
  if (!index_changes(job)) return {};
  if (is_cancelled(job.progress)) return cancelled_error();
  if (job.progress != nullptr) job.progress->begin(Phase::kWritingMetadata, 0, false);
  SHW_TRY(DcpMetadata metadata, new_metadata(job.checkpoint, job.plan, job.made, job.out));
  SHW_TRY(auto sink, job.directory->create(kMetadataFile));
  SHW_TRY(PickledForm form, read_pickled_form(*job.checkpoint.directory()));
  SHW_CHECK(write_dcp_metadata_as(form, metadata, *sink));
  return sink->finish();
}

// Tiles that were made, read back and held against what they were made of.
Status compare_made(const Job& job, const Checkpoint& result) {
  BoxReader source(job.checkpoint), written(result);
  for (std::size_t t = 0; t < job.plan.tensors.size(); ++t) {
    const PlannedTensor& tensor = job.plan.tensors[t];
    auto made = result.find(fqn_after(job.checkpoint, tensor));
    std::map<Extents, ChunkId> by_offsets;
    for (ChunkId chunk : result.chunks(*made)) {
      if (volume(result.sizes(chunk)) != 0) by_offsets[copy_of(result.offsets(chunk))] = chunk;
    }
    for (const PlannedChunk& chunk : tensor.chunks) {
      if (chunk.item || is_empty(chunk.box)) continue;
      if (is_cancelled(job.progress)) return cancelled_error();
      ChunkId at = by_offsets.at(chunk.box.offsets);
      bool only_zeros = chunk.pieces.empty() && chunk.side.empty() && tensor.fill == Fill::kZero;
      if (only_zeros && !files_change(job)) {
        // A hole may stand for far more than fits into memory; its CRC covers every byte.
        SHW_TRY(DataCheck check, check_item_data(result, at, job.progress));
        if (check.crc == DataCheck::Crc::kMatches) continue;
        return fail(ErrorKind::kIo, "a filled tile differs after it was written",
                    Place{.file = {}, .tensor = std::string(result.fqn(*made))});
      }
      SHW_CHECK(compare_payload(tensor, chunk, source, written, at, job.progress));
    }
  }
  return {};
}

// Certifies the way back of every tensor whose bytes moved, and goes it once.
Status prove_inverse(const Job& job, const Checkpoint& result, Certificate& certificate) {
  BoxReader source(job.checkpoint), made(result);
  for (const PlannedTensor& planned : job.plan.tensors) {
    TensorCertificate& entry = certificate.tensors[index_of(planned.tensor)];
    SHW_TRY(entry.inverse, inverse_of(planned, source, job.progress));
    if (entry.inverse.empty()) continue;
    SHW_TRY(std::string why,
            contradiction_of_inverse(entry.inverse, *result.find(entry.fqn), made, job.progress));
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
  SHW_TRY(auto written, job.files.look(job.partial));
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
  SHW_CHECK(copy_files(job));
  SHW_CHECK(make_items(job));
  job.payloads.reset();  // and what it holds in memory
  SHW_CHECK(write_metadata(job));
  SHW_TRY(bool lossless, prove(job));
  SHW_CHECK(check_source_unchanged(job));
  if (is_cancelled(job.progress)) return cancelled_error();
  SHW_CHECK(job.directory->remove(kOwnerFile));
  SHW_CHECK(job.directory->sync());
  SHW_CHECK(job.files.publish(job.partial, job.out));
  return RepairResult{job.out, job.out + "/" + kCertificateFile, lossless};
}

}  // namespace

Result<RepairResult> repair_into_new_directory(const RepairFileSystem& files,
                                               const Checkpoint& checkpoint, const Plan& plan,
                                               const std::string& out, Progress* progress) {
  Plan formed = in_form_of(checkpoint, plan);
  for (const PlannedTensor& tensor : formed.tensors) SHW_CHECK(prove_planned(checkpoint, tensor));
  Job job{files,    checkpoint,
          formed,   checkpoint.directory()->name(),
          out,      out + kPartialMark + std::to_string(::getpid()),
          progress, {},
          {}};
  bool writable = index_changes(job) || (files_change(job) && !formed.empty());
  if (!writable) {
    return fail(ErrorKind::kUnsupported, std::string("repairs of ") +
                                             std::string(checkpoint.format().title) +
                                             " are not written yet");
  }
  SHW_CHECK(choose_files(job));
  sweep_abandoned(job.out, kPartialMark, [&](const std::string& abandoned) {
    return files.discard(abandoned, kPartialMark);
  });
  SHW_CHECK(check_space(job));
  SHW_TRY(job.directory, files.create(job.partial));
  auto built = build(job);
  if (built || !exists(job.partial)) return built;
  if (auto discarded = files.discard(job.partial, kPartialMark); !discarded) {
    built.error().advice = "what was made so far could not be removed and lies in " + job.partial +
                           " (" + discarded.error().message + ")";
  }
  return built;
}

}  // namespace shw
