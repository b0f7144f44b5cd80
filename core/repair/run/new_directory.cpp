// A repair into a new directory: what it will hold, which files come along, and how it is proved.
// core/exec makes the folder.
#include <algorithm>
#include <optional>
#include <set>

#include "core/base/hash.h"
#include "core/exec/align_outputs.h"
#include "core/exec/folder_run.h"
#include "core/facts/storage/filled.h"
#include "core/facts/storage/integrity.h"
#include "core/io/rights.h"
#include "core/repair/lower/item_place.h"
#include "core/repair/lower/lower.h"
#include "core/repair/lower/lower_to_program.h"
#include "core/repair/lower/outputs.h"
#include "core/repair/plan/json.h"
#include "core/repair/plan/kept_plan.h"
#include "core/repair/plan/plan.h"
#include "core/repair/proof/prove_result.h"
#include "core/repair/run/carry_out.h"
#include "core/repair/run/outlook.h"
#include "core/repair/run/outlook_devices.h"
#include "core/repair/run/request.h"
#include "core/repair/run/touched.h"

namespace shw {
namespace {

struct Repair {
  const Checkpoint& checkpoint;
  const Plan& plan;
  FolderRun run{};
  std::vector<std::string> left_out{};  // files that lie there and do not come along
};

bool files_change(const Repair& repair) {
  return repair.checkpoint.format().rewrite == Rewrite::kFiles;
}

// Data files that are pointed to afterwards, and those of copies.
std::set<std::string> files_needed(const Repair& repair) {
  std::set<std::string> needed;
  FileId last = FileId::kNone;
  auto need = [&](const std::optional<ItemPlace>& place) {
    if (!place || place->file == last) return;
    last = place->file;
    needed.insert(repair.checkpoint.file(place->file).path);
  };
  for (const OutputTensor& tensor : repair.run.outputs.tensors) {
    for (const OutputTile& tile : tensor.tiles) need(kept_place(repair.run.outputs, tile));
  }
  for (const OutputObject& object : repair.run.outputs.objects) need(object.place);
  for (const OutputUnclaimedRecord& unclaimed : repair.run.outputs.unclaimed_records)
    need(unclaimed.place);
  // Nobody has compared the copies that other ranks saved of a tile: they come along.
  const Checkpoint& checkpoint = repair.checkpoint;
  for (std::uint32_t chunk = 0; chunk < checkpoint.chunk_count(); ++chunk) {
    for (const Replica& replica : checkpoint.replicas(ChunkId{chunk}))
      need(checkpoint.place(replica.storage));
  }
  return needed;
}

// Everything that lies there comes along, but old certificates, leftovers of ours, what is written
// anew, and data files that nothing points to any more.
void choose_files(Repair& repair) {
  std::set<std::string> needed = files_needed(repair), referenced;
  std::set<std::string> anew = repair.run.laid_out.replaced;
  for (const LaidOut::File& file : repair.run.laid_out.files) anew.insert(file.path);
  for (const FileRow& row : repair.checkpoint.files()) {
    if (row.referenced) referenced.insert(row.path);
  }
  for (const auto& [input, entry] : repair.run.watched) {
    if (input != 0) continue;
    bool ours = entry.path == kCertificateFile || entry.path == kLostFile ||
                entry.path.find(kOurMark) != std::string::npos ||
                entry.path == kIntegrityFile;  // of other bytes: it would call the result broken
    // Where files themselves say what they hold, none is left out.
    bool dropped =
        !files_change(repair) && referenced.contains(entry.path) && !needed.contains(entry.path);
    if (ours || dropped || anew.contains(entry.path)) continue;
    if (entry.kind != EntryKind::kFile) continue;
    // What it points to is no part of the checkpoint, and may be for other eyes than its result.
    if (!referenced.contains(entry.path) &&
        leads_outside(repair.checkpoint.directory()->name(), entry.path))
      repair.left_out.push_back(entry.path + ", a link out of the checkpoint");
    else
      repair.run.copied.push_back(entry);
  }
}

// Where everything goes, before anything is there.
Status lay_out(Repair& repair) {
  SHW_TRY(repair.run.outputs, outputs_after(repair.checkpoint, repair.plan, repair.run.out));
  SHW_TRY(repair.run.laid_out, repair.run.writer->lay_out(repair.run.outputs));
  return {};
}

Status lower_payloads(Repair& repair) {
  FolderRun& run = repair.run;
  std::vector<PayloadPlace> places;
  auto planned = planned_by_id(repair.plan);
  for (const MadeTile& made : run.laid_out.made) {
    places.push_back(
        {planned.at(made.tensor), made.tile, run.laid_out.files[made.file].path, made.offset});
  }
  SHW_TRY(LoweredPlan lowered, lower_to_program(repair.checkpoint, repair.plan, places));
  run.program = std::move(lowered.program);
  run.inputs = std::move(lowered.inputs);
  run.made = std::move(lowered.outputs);
  SHW_TRY(bool is_moved, align_outputs(*run.writer, run.made, run.laid_out, run.program));
  return is_moved ? prove(run.program) : Status{};
}

// All that is decided before anything is written.
Status finalize_options(Repair& repair, const ApplyOptions& options) {
  const Checkpoint& checkpoint = repair.checkpoint;
  for (const PlannedTensor& tensor : repair.plan.tensors)
    SHW_CHECK(prove_planned(checkpoint, tensor));
  repair.run.writer = checkpoint.format().writer;
  repair.run.out = options.out;
  repair.run.partial = options.partial;
  repair.run.team = options.team;
  repair.run.memory = options.memory;
  repair.run.device = options.device;
  // Without an index of its own there is nothing that a plan of nothing could write.
  if (repair.run.writer == nullptr || (files_change(repair) && repair.plan.empty())) {
    return fail(ErrorKind::kUnsupported, std::string("repairs of ") +
                                             std::string(checkpoint.format().title) +
                                             " are not written yet");
  }
  SHW_CHECK(lay_out(repair));
  SHW_CHECK(lower_payloads(repair));
  SHW_TRY(repair.run.watched, watch_inputs(repair.run.inputs));
  choose_files(repair);
  return {};
}

}  // namespace

Result<RepairOutlook> outlook_of(const Checkpoint& checkpoint, const Plan& plan,
                                 const ApplyOptions& options) {
  if (checkpoint.directory() == nullptr)
    return fail(ErrorKind::kUsage, "the checkpoint lies in no directory");
  std::optional<Plan> changed;
  const Plan& formed = adapt_plan_to_format(checkpoint, plan, changed);
  Repair repair{checkpoint, formed};
  SHW_CHECK(finalize_options(repair, options));
  const FolderRun& run = repair.run;
  RepairOutlook outlook;
  outlook.files_copied = run.copied.size();
  outlook.files_made = run.laid_out.files.size();
  outlook.tiles_made = run.laid_out.made.size();
  for (const OutputTensor& tensor : run.outputs.tensors) outlook.tiles_kept += tensor.tiles.size();
  outlook.tiles_kept -= std::min(outlook.tiles_kept, outlook.tiles_made);
  for (const Entry& entry : run.copied) outlook.bytes_copied += entry.size;
  std::uint64_t along = outlook.bytes_copied;
  for (const OutputCopy& copy : run.laid_out.copies) along += copy.length;
  outlook.bytes_read = outlook.bytes_written = along;
  for (const ProgramJob& job : run.program.jobs) {
    if (job.source == SourceId::kNone) continue;
    outlook.bytes_read +=
        static_cast<std::uint64_t>(volume(run.program.sizes(job)).value_or(0)) * size_of(job.from);
  }
  for (const MadeTile& made : run.laid_out.made) outlook.bytes_written += made.length;
  outlook.program = to_hex(hash_of(run.program));
  SHW_TRY(outlook.forecast, forecast(run.program, run.inputs, along, options.memory));
  predict_devices(run.program, options.device, outlook);
  return outlook;
}

Result<RepairResult> repair_into_new_directory(Store& store, const Checkpoint& checkpoint,
                                               const Plan& plan, const ApplyOptions& options,
                                               Progress* progress) {
  std::optional<Plan> changed;
  const Plan& formed = adapt_plan_to_format(checkpoint, plan, changed);
  Repair repair{checkpoint, formed};
  SHW_CHECK(finalize_options(repair, options));
  const std::string& said =
      options.checkpoint.empty() ? checkpoint.directory()->name() : options.checkpoint;
  ProofExtras extras{keep_plan(plan_text(checkpoint, plan, -1)), options.integrity};
  SHW_TRY(repair.run.request,
          request_to_json(store, "repair", extras.plan, said, options.integrity));
  MadeChunks made_chunks(formed);
  auto planned = planned_by_id(formed);
  for (std::size_t i = 0; i < repair.run.laid_out.made.size(); ++i) {
    const MadeTile& made = repair.run.laid_out.made[i];
    made_chunks.add(planned.at(made.tensor), made.tile, i);
  }
  // It is there as long as this is.
  const std::shared_ptr<const Checkpoint> source(std::shared_ptr<void>(), &checkpoint);
  const TouchCheck touch{repair.run.watched, repair.run.inputs, source, options.memory};
  RepairResult told{options.out, options.out + "/" + kCertificateFile};
  auto prove = [&](const WrittenFolder& written) -> Status {
    SHW_TRY(told.lossless,
            prove_result(checkpoint, formed, extras, written, made_chunks, told, progress));
    return prove_touched(touch, written, progress);
  };
  SHW_TRY(FolderMade made, make_folder(store, std::move(repair.run), prove, progress));
  told.left_out = std::move(repair.left_out);
  told.files_kept = made.files_kept;
  told.device = made.device;
  told.traffic = made.traffic;
  return told;
}

}  // namespace shw
