// Writes a new checkpoint folder under the name "<out>.shardwright-partial-<pid>", proves it, makes
// it durable and renames it last. Inputs are only read until then. A killed run can be resumed: its
// journal lists the durable files (journal.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/run_limits.h"
#include "core/base/team.h"
#include "core/exec/copy_hasher.h"
#include "core/exec/device.h"
#include "core/exec/element_fingerprint.h"
#include "core/formats/format_writer.h"
#include "core/io/store.h"
#include "core/program/program.h"

namespace shw {

// A file that must not change during the run.
struct WatchedFile {
  std::uint32_t input = 0;  // index in FolderRun::inputs
  Entry entry;
};

// Everything that a run will write, decided before the first write.
struct FolderRun {
  const FormatWriter* writer = nullptr;
  Outputs outputs;  // its source may be null or of another format
  LaidOut laid_out;
  Program program;                        // must be proved
  std::vector<const Checkpoint*> inputs;  // the checkpoints of the program's sources
  std::vector<OutputId> made;             // outputs of the program, by index in laid_out.made
  std::vector<Entry> copied = {};         // files copied whole from the folder of outputs.source
  std::vector<WatchedFile> watched = {};
  std::string out;           // final name of the folder; must not exist
  std::string request = {};  // JSON of the command, from which the run can be repeated
  // An unfinished folder to resume or refuse; empty: search for one of the same
  // run.
  std::string partial = {};
  std::uint64_t memory = kDefaultMemory;
  DeviceOptions device = {};  // computes elements
  // Processes that call make_folder() with the same run. Null: a single process.
  Team* team = nullptr;
};

// The written folder, opened like any checkpoint.
struct WrittenFolder {
  const Checkpoint& result;
  WritableDirectory& folder;
  // Checksums of the source elements of each written chunk, by index in LaidOut::made, from this
  // run or the one that it resumes.
  std::span<const std::optional<ElementSums>> made;
  // Hashes of the items in copied files.
  const CopyHasher& copied_items;
  Team* team = nullptr;  // FolderRun::team
  // True on the one process that writes certificate and logs.
  bool is_first() const { return team == nullptr || team->rank() == 0; }
};
// Called after everything is written and durable: compares the result with the plan and writes the
// certificate into the folder.
using ProveFolder = std::function<Status(const WrittenFolder& written)>;

// The result of make_folder().
struct FolderResult {
  std::size_t files_kept = 0;
  std::uint64_t bytes_kept = 0;
  DeviceUse device = {};
  TeamTraffic traffic = {};  // of all processes
};
// After an error the unfinished folder is deleted, unless it contains durable files and another run
// could resume: after a full or lost disk, a lost process, or a cancellation with Progress::keeps.
// The error's advice then says how to resume.
Result<FolderResult> make_folder(Store& store, FolderRun run, const ProveFolder& prove,
                                 Progress* progress);

// All files of the input checkpoints, including link targets outside of their folders. Inputs
// without a folder are not watched.
Result<std::vector<WatchedFile>> watch_inputs(const std::vector<const Checkpoint*>& inputs);

}  // namespace shw
