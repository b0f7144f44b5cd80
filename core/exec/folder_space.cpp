#include "core/exec/folder_space.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/exec/block_cut.h"
#include "core/exec/job_part.h"
#include "core/io/copy_range.h"
#include "core/io/path_text.h"
#include "core/tiles/blocks.h"

namespace shw {
namespace {

const Directory& source_folder(const FolderRun& run) {
  return *run.outputs.source->directory();
}

// Estimates the allocated part of a source file: copies of holes are mostly holes again.
class AllocatedShare {
 public:
  explicit AllocatedShare(const FolderRun& run) : run_(run) {}
  std::uint64_t of(const ProgramSource& source, std::uint64_t bytes) {
    auto [found, is_new] = shares_.try_emplace({source.input, source.file}, 1.0);
    if (is_new) found->second = share(source);
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * found->second);
  }

 private:
  double share(const ProgramSource& source) const {
    const auto& folder = run_.inputs[source.input]->directory();
    if (folder == nullptr || source.form != SourceForm::kStored) return 1;
    Entry entry = folder->stat(run_.program.names[source.file]);
    if (entry.size == 0 || entry.disk_bytes >= entry.size) return 1;
    return static_cast<double>(entry.disk_bytes) / static_cast<double>(entry.size);
  }

  const FolderRun& run_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> shares_;
};

// Tests once per file whether it can share blocks with the output.
class SharedFiles {
 public:
  SharedFiles(const Store& store, const FolderRun& run) : store_(store), to_(parent_of(run.out)) {}
  bool has(const Directory* folder, const std::string& path) {
    if (folder == nullptr) return false;
    auto [found, is_new] = shared_.try_emplace({folder, path}, false);
    if (!is_new) return found->second;
    auto source = folder->open(path);
    found->second = source && store_.can_reflink(to_, **source);
    return found->second;
  }

 private:
  const Store& store_;
  const std::string to_;
  std::map<std::pair<const Directory*, std::string>, bool> shared_;
};

// Input of counting the needed disk space.
struct SpaceCount {
  const FolderRun& run;
  const MemoryPlan& shares;
  const std::set<std::string>& there;
  SharedFiles* shared;  // null: count as if nothing were shared
  AllocatedShare on_disk{run};
  std::uint64_t needed = std::uint64_t{1} << 20;

  void add(std::uint64_t bytes) { needed = checked_add(needed, bytes).value_or(UINT64_MAX); }
  bool is_shared(const Directory* folder, const std::string& path) {
    return shared != nullptr && shared->has(folder, path);
  }
};

// Bytes of a job that write_blocks() shares with the source.
std::uint64_t reflinked_bytes(const SpaceCount& count, const ProgramJob& job, OutputId output) {
  const Program& program = count.run.program;
  const ProgramOutput& out = program.output(output);
  const BlockCut cut = block_cut_of_output(program, output, count.shares.limits);
  if (job.op != ElementOp::kCopy || !cut.in_order) return 0;
  std::uint64_t bytes = 0, at = out.offset;
  for (Blocks blocks{copy_of(program.sizes(out)), cut.block}; blocks.next();) {
    const auto length =
        static_cast<std::uint64_t>(volume(blocks.block.sizes).value_or(0)) * size_of(job.to);
    const auto part = part_of(program, job, blocks.block);
    const bool is_whole = part && same(part->common.sizes, blocks.block.sizes);
    const auto begin = is_whole ? contiguous_source_offset(program, *part) : std::nullopt;
    if (begin) bytes += shared_in(*begin, length, at);
    at += length;
  }
  return bytes;
}

// Zeros take no disk space.
void count_output(SpaceCount& count, OutputId output) {
  const Program& program = count.run.program;
  const JobRange jobs = jobs_of(program, output);
  for (std::size_t j = jobs.first; j < jobs.last; ++j) {
    const ProgramJob& job = program.jobs[j];
    if (job.op == ElementOp::kConstant && job.constant[0] == 0 && job.constant[1] == 0) continue;
    std::uint64_t bytes =
        static_cast<std::uint64_t>(volume(program.sizes(job)).value_or(0)) * size_of(job.to);
    if (job.source == SourceId::kNone) {
      count.add(bytes);
      continue;
    }
    const ProgramSource& source = program.source(job.source);
    const bool is_stored = source.form == SourceForm::kStored;
    if (is_stored && count.is_shared(count.run.inputs[source.input]->directory().get(),
                                     program.names[source.file]))
      bytes -= std::min(bytes, reflinked_bytes(count, job, output));
    count.add(count.on_disk.of(source, bytes));
  }
}

void add_copied(SpaceCount& count) {
  const FolderRun& run = count.run;
  for (const Entry& entry : run.copied) {
    if (count.there.contains(entry.path) || count.is_shared(&source_folder(run), entry.path))
      continue;
    count.add(std::min(entry.size, entry.disk_bytes));
  }
  std::map<std::string_view, std::uint64_t> kept;  // in files that are rewritten
  for (const OutputCopy& copy : run.laid_out.copies) {
    if (count.there.contains(run.laid_out.files[copy.file].path)) continue;
    std::uint64_t& bytes = kept[copy.from];
    bytes += copy.length;
    if (!count.is_shared(&source_folder(run), copy.from)) continue;
    // Copied in pieces of MiBs, each of which may lose a block at both ends.
    const std::uint64_t shared = shared_in(copy.begin, copy.length, copy.offset);
    bytes -= shared - shared / 128;
  }
  for (const auto& [path, length] : kept)
    count.add(std::min(length, source_folder(run).stat(std::string(path)).disk_bytes));
}

std::uint64_t bytes_needed(SpaceCount count) {
  const FolderRun& run = count.run;
  add_copied(count);
  for (std::size_t i = 0; i < run.made.size(); ++i) {
    const std::uint32_t file = run.laid_out.made[i].file;
    if (!count.there.contains(run.laid_out.files[file].path)) count_output(count, run.made[i]);
  }
  std::uint64_t tiles = 0;
  for (const OutputTensor& tensor : run.outputs.tensors) tiles += tensor.tiles.size();
  count.add(400 * tiles);
  count.add(count.shares.decoded.most_at_once);
  return count.needed;
}

}  // namespace

Status check_space(const Store& store, const FolderRun& run, const MemoryPlan& shares,
                   const std::set<std::string>& there) {
  SHW_TRY(const std::uint64_t available, store.free_bytes(parent_of(run.out)));
  if (available >= bytes_needed({run, shares, there, nullptr})) return {};
  SharedFiles shared(store, run);
  const std::uint64_t needed = bytes_needed({run, shares, there, &shared});
  if (available >= needed) return {};
  std::string why = fmt::format("{} bytes are needed there, but {} are free", needed, available);
  std::string advice = "choose a directory on another disk with --out";
  if (const std::uint64_t decoded = shares.decoded.most_at_once; decoded != 0) {
    why += fmt::format("; {} of them are for temporarily decoded items", decoded);
    advice += ", or let it decode them in memory with --memory";
  }
  return fail(ErrorKind::kIo, std::move(why), {parent_of(run.out)}, std::move(advice));
}

}  // namespace shw
