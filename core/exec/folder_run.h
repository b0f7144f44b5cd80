// A new checkpoint folder: everything is made under "<out>.shardwright-partial-<pid>", proved
// there, made durable, and gets its name last. On the way there the inputs are only read. What a
// killed run left is gone on with: its journal says which files were durable (journal.h).
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
#include "core/exec/device.h"
#include "core/exec/element_fingerprint.h"
#include "core/exec/passing_items.h"
#include "core/formats/format_writer.h"
#include "core/io/store.h"
#include "core/program/program.h"

namespace shw {

// A file that must be the same at the end as at the beginning.
struct WatchedFile {
  std::uint32_t input = 0;  // of FolderRun::inputs
  Entry entry;
};

// All that is written, decided before anything is.
struct FolderRun {
  const FormatWriter* writer = nullptr;
  Outputs outputs;  // its source may be null, or of another format than what is written
  LaidOut laid_out;
  Program program;                        // proved
  std::vector<const Checkpoint*> inputs;  // of the program's sources
  std::vector<OutputId> made;             // of the program, by index in laid_out.made
  std::vector<Entry> copied = {};         // whole files of outputs.source's folder that come along
  std::vector<WatchedFile> watched = {};
  std::string out;           // the name that the folder gets at the end; nothing has it yet
  std::string request = {};  // JSON of who asks: what makes the same run again
  // What a killed run left, to be gone on with or refused; empty: what is left of the same run is
  // looked for.
  std::string partial = {};
  std::uint64_t memory = kDefaultMemory;
  DeviceWish device = {};  // on what elements are made
  // Of workers who make it together: each calls make_folder() with the same run. Null: alone.
  Team* team = nullptr;
};

// What has been written, opened as anybody would open it.
struct WrittenFolder {
  const Checkpoint& result;
  WritableDirectory& folder;
  // Of each tile that was made, by index in LaidOut::made, the sums of what was read for it,
  // by this run or by the one that it goes on with.
  std::span<const std::optional<ElementSums>> made;
  // Of items of FolderRun::outputs.source that came along, what was seen of them on the way.
  const PassingItems& came_along;
  Team* team = nullptr;  // FolderRun::team
  // Of several workers one writes what lies beside the items.
  bool is_first() const { return team == nullptr || team->rank() == 0; }
};
// Called when all is written and durable. Holds it against what was asked for, and writes the
// certificate into the folder.
using ProveFolder = std::function<Status(const WrittenFolder& written)>;

// What an earlier run had made already.
struct FolderMade {
  std::size_t files_kept = 0;
  std::uint64_t bytes_kept = 0;
  DeviceUse device = {};
  TeamTraffic traffic = {};  // of all workers
};
// After an error nothing is left of it, unless something is durable that another run can go on
// with: where a disk is full or lost, a worker is gone, or it was cancelled and Progress::keeps
// says so. The error then says how to go on.
Result<FolderMade> make_folder(Store& store, FolderRun run, const ProveFolder& prove,
                               Progress* progress);

// Every file that lies in the folders of the inputs now, or that they point to. What lies in no
// folder is not watched.
Result<std::vector<WatchedFile>> watch_inputs(const std::vector<const Checkpoint*>& inputs);

}  // namespace shw
