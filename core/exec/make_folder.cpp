#include "core/exec/folder_run.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/exec/payloads.h"
#include "core/exec/write_files.h"
#include "core/formats/open.h"
#include "core/io/owner.h"
#include "core/io/place.h"

namespace shw {
namespace {

struct Making {
  Store& store;
  FolderRun& run;
  const ProveFolder& prove;
  Progress* progress;
  std::string partial;  // the name that the folder has until it is finished
  std::unique_ptr<WritableDirectory> folder{};
};

const Directory& source_of(const FolderRun& run) {
  return *run.outputs.source->directory();
}

// The bytes that a job makes; zeros take no disk.
std::uint64_t bytes_made(const Program& program, const ProgramJob& job) {
  bool zeros = job.op == ElementOp::kConstant && job.constant[0] == 0 && job.constant[1] == 0;
  if (zeros) return 0;
  return static_cast<std::uint64_t>(volume(program.sizes(job)).value_or(0)) * size_of(job.to);
}

Status check_space(const Making& making) {
  const FolderRun& run = making.run;
  std::uint64_t needed = std::uint64_t{1} << 20;
  auto add = [&](std::uint64_t bytes) { needed = checked_add(needed, bytes).value_or(UINT64_MAX); };
  for (const Entry& entry : run.copied) add(std::min(entry.size, entry.disk_bytes));
  std::map<std::string_view, std::uint64_t> kept;  // in files that are made anew
  for (const OutputCopy& copy : run.laid_out.copies) kept[copy.from] += copy.length;
  for (const auto& [path, length] : kept)
    add(std::min(length, source_of(run).stat(std::string(path)).disk_bytes));
  for (const ProgramJob& job : run.program.jobs) add(bytes_made(run.program, job));
  std::uint64_t tiles = 0;
  for (const OutputTensor& tensor : run.outputs.tensors) tiles += tensor.tiles.size();
  add(400 * tiles);
  SHW_TRY(std::uint64_t available, making.store.free_bytes(parent_of(run.out)));
  if (available >= needed) return {};
  return fail(ErrorKind::kIo,
              fmt::format("{} bytes are needed there, and {} are free", needed, available),
              {parent_of(run.out)}, "choose a directory on another disk with --out");
}

Status copy_files(Making& making) {
  const FolderRun& run = making.run;
  return each_in_parallel(run.copied.size(), [&](std::size_t i) -> Status {
    if (is_cancelled(making.progress)) return cancelled_error();
    const std::string& path = run.copied[i].path;
    return making.folder->copy_in(source_of(run).name() + "/" + path, path, making.progress);
  });
}

Status make_files(Making& making) {
  const FolderRun& run = making.run;
  std::uint64_t bytes = 0;
  for (const Entry& entry : run.copied) bytes += entry.size;
  for (const OutputCopy& copy : run.laid_out.copies) bytes += copy.length;
  for (const MadeTile& made : run.laid_out.made) bytes += made.length;
  if (making.progress != nullptr) making.progress->begin(Phase::kCopying, bytes, true);
  SHW_CHECK(copy_files(making));
  Payloads payloads(run.program, run.inputs, making.progress);
  auto make = [&](std::size_t made, OutputFile& file) {
    return payloads.write(run.made[made], file);
  };
  return write_files(*run.writer, run.outputs, run.laid_out, make, *making.folder, making.progress);
}

Status write_metadata(Making& making) {
  if (is_cancelled(making.progress)) return cancelled_error();
  if (making.progress != nullptr) making.progress->begin(Phase::kWritingMetadata, 0, false);
  FolderRun& run = making.run;
  run.program = {};  // and what it holds in memory
  return run.writer->seal(std::move(run.outputs), run.laid_out,
                          [&](const std::string& path) { return making.folder->create(path); });
}

// Opened as anybody would open it.
Status prove_folder(Making& making) {
  if (making.progress != nullptr) making.progress->begin(Phase::kVerifying, 0, true);
  SHW_TRY(auto written, making.store.read_folder(making.partial));
  SHW_TRY(auto result, open_checkpoint(written));
  return making.prove(*result, *making.folder);
}

Status check_inputs_unchanged(const FolderRun& run) {
  for (const auto& [input, before] : run.watched) {
    Entry now = run.inputs[input]->directory()->stat(before.path);
    if (now.size == before.size && now.modified_ns == before.modified_ns &&
        now.kind == before.kind) {
      continue;
    }
    return fail(ErrorKind::kIo, "changed while it was being read", {before.path},
                "wait until nothing writes to the checkpoint, then do this again");
  }
  return {};
}

Status build(Making& making) {
  // First of all: without it nobody could tell later that this run was killed.
  SHW_CHECK(write_text(*making.folder, kOwnerFile, this_process()));
  SHW_CHECK(make_files(making));
  SHW_CHECK(write_metadata(making));
  SHW_CHECK(prove_folder(making));
  SHW_CHECK(check_inputs_unchanged(making.run));
  if (is_cancelled(making.progress)) return cancelled_error();
  SHW_CHECK(making.folder->remove(kOwnerFile));
  SHW_CHECK(making.folder->sync());
  return making.store.publish(making.partial, making.run.out);
}

}  // namespace

Status make_folder(Store& store, FolderRun run, const ProveFolder& prove, Progress* progress) {
  Making making{store, run, prove, progress,
                fmt::format("{}{}{}", run.out, kPartialMark, ::getpid())};
  sweep_abandoned(store, run.out, kPartialMark);
  SHW_CHECK(check_space(making));
  SHW_TRY(making.folder, store.make_folder(making.partial));
  auto built = build(making);
  if (built || !store.exists(making.partial)) return built;
  if (auto discarded = store.discard(making.partial, kPartialMark); !discarded) {
    built.error().advice = "what was made so far could not be removed and lies in " +
                           making.partial + " (" + discarded.error().message + ")";
  }
  return built;
}

Result<std::vector<WatchedFile>> watch_inputs(const std::vector<const Checkpoint*>& inputs) {
  std::vector<WatchedFile> watched;
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->directory() == nullptr) continue;
    const Directory& folder = *inputs[i]->directory();
    SHW_TRY(std::vector<Entry> entries, folder.list());
    std::set<std::string> listed;
    for (Entry& entry : entries) {
      listed.insert(entry.path);
      watched.push_back({i, std::move(entry)});
    }
    // Below a linked folder, which a listing does not enter.
    for (const FileRow& row : inputs[i]->files()) {
      if (row.referenced && row.safe && !listed.contains(row.path))
        watched.push_back({i, folder.stat(row.path)});
    }
  }
  return watched;
}

}  // namespace shw
