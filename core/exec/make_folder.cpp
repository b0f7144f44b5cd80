#include "core/exec/folder_run.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/base/parallel.h"
#include "core/base/worker_error.h"
#include "core/exec/folder_space.h"
#include "core/exec/journal.h"
#include "core/exec/memory_shares.h"
#include "core/exec/partial_folder.h"
#include "core/exec/team_begin.h"
#include "core/exec/team_device.h"
#include "core/exec/write_files.h"
#include "core/exec/write_in_team.h"
#include "core/formats/open.h"
#include "core/io/owner.h"
#include "core/io/place.h"
#include "core/io/random_name.h"
#include "core/io/rights.h"

namespace shw {
namespace {

struct Making {
  Store& store;
  FolderRun& run;
  const ProveFolder& prove;
  Progress* progress;
  Executors executors{};
  MemoryShares shares{};
  JournalText noted{};    // durable files so far
  MostRights most{};      // upper limit of the result's permissions, from its inputs
  std::string partial{};  // name of the folder until it is finished
  std::unique_ptr<WritableDirectory> folder{};
  std::unique_ptr<Journal> journal{};
  std::set<std::string> there{};                   // paths of durable files
  std::vector<std::optional<ElementSums>> made{};  // WrittenFolder::made
  CopyHasher copied_items{};                       // WrittenFolder::copied_items
  std::unique_ptr<SourceChecksumVerifier> sums{};  // verifies what is read
  bool is_written = false;                         // all files written, the proof is next
  bool is_published = false;
  bool went_on = false;   // resumed an earlier run
  TeamTraffic traffic{};  // of the team
  DeviceUse device{};

  Team* team = run.team;
  std::unique_ptr<TeamJournal> team_journal{};

  bool has(const std::string& path) const { return there.contains(path); }
  bool is_first() const { return team == nullptr || team->rank() == 0; }
  // No-op for a single process.
  Status barrier(const char* step) const {
    return team == nullptr ? Status{} : shw::barrier(*team, step);
  }
};

const Directory& source_of(const FolderRun& run) {
  return *run.outputs.source->directory();
}

MostRights rights_of_inputs(const FolderRun& run) {
  std::vector<std::string> folders, files;
  for (const Checkpoint* input : run.inputs) {
    if (input->directory() == nullptr) continue;
    const std::string& folder = folders.emplace_back(input->directory()->name());
    for (const FileRow& row : input->files()) {
      if (row.safe && row.referenced) files.push_back(folder + "/" + row.path);
    }
  }
  return rights_of(folders, files);
}

// The files that this rank copies.
IndexRange own_copies(const Making& making) {
  const FolderRun& run = making.run;
  if (making.team == nullptr) return {0, run.copied.size()};
  std::vector<std::uint64_t> sizes;
  for (const Entry& entry : run.copied) sizes.push_back(making.has(entry.path) ? 0 : entry.size);
  return partition_by_cost(sizes, making.team->size())[making.team->rank()];
}

Status note_done(Making& making, const DurableFile& file) {
  return making.team == nullptr ? making.journal->add(file) : making.team_journal->add(file);
}

Status copy_files(Making& making, IndexRange own) {
  const FolderRun& run = making.run;
  return parallel_for(own.last - own.first, [&](std::size_t i) -> Status {
    if (is_cancelled(making.progress)) return cancelled_error();
    const Entry& file = run.copied[own.first + i];
    if (making.has(file.path)) return {};
    auto passing = making.copied_items.watch(file.path, 0, file.size);
    SHW_CHECK(making.folder->copy_past(source_of(run).name() + "/" + file.path, file.path,
                                       passing ? &*passing : nullptr, making.progress));
    return note_done(making, {file.path, file.size});
  });
}

Status copy_in_team(Making& making, IndexRange own) {
  TeamJournal& journal = *making.team_journal;
  HeartbeatTask task{"copy files", [&] { return copy_files(making, own); }, making.progress};
  task.news = [&] { return journal.news(); };
  task.receive = [&](std::size_t member, BytesView news) { return journal.receive(member, news); };
  return run_with_heartbeat(*making.team, task);
}

// Bytes of this rank's work.
std::uint64_t bytes_to_make(const Making& making, IndexRange copies) {
  const FolderRun& run = making.run;
  std::uint64_t bytes = 0, made = 0;
  for (std::size_t i = copies.first; i < copies.last; ++i) bytes += run.copied[i].size;
  for (const OutputCopy& copy : run.laid_out.copies) made += copy.length;
  for (const MadeTile& tile : run.laid_out.made) made += tile.length;
  return bytes + made / (making.team == nullptr ? 1 : making.team->size());
}

// Items in files that are copied whole or in ranges.
CopyHasher items_to_watch(const Making& making) {
  const FolderRun& run = making.run;
  if (run.outputs.source == nullptr) return {};
  std::vector<std::string> paths;
  for (const Entry& entry : run.copied) paths.push_back(entry.path);
  for (const OutputCopy& copy : run.laid_out.copies) {
    if (paths.empty() || paths.back() != copy.from) paths.push_back(copy.from);
  }
  return CopyHasher(*run.outputs.source, paths);
}

Status make_files(Making& making) {
  const FolderRun& run = making.run;
  const IndexRange copies = own_copies(making);
  making.copied_items = items_to_watch(making);
  if (making.progress != nullptr) {
    making.progress->begin(Phase::kCopying, bytes_to_make(making, copies), true);
    const std::uint64_t members = making.team == nullptr ? 1 : making.team->size();
    for (const DurableFile& file : making.noted.files) making.progress->add(file.size / members);
  }
  std::vector<bool> there;
  for (const LaidOut::File& file : run.laid_out.files) there.push_back(making.has(file.path));
  const FileWriting with{run,          making.shares,  making.executors,
                         there,        *making.folder, making.copied_items,
                         *making.sums, making.progress};
  if (making.team != nullptr) {
    making.team_journal = std::make_unique<TeamJournal>(*making.team, making.journal.get());
    SHW_CHECK(copy_in_team(making, copies));
    SHW_TRY(making.made, write_in_team(with, *making.team_journal));
    SHW_CHECK(making.sums->share(*making.team));
    add_noted_elements(run.laid_out, making.noted.files, making.made);
    SHW_TRY(making.traffic, traffic_of_all(*making.team));
    SHW_TRY(making.device, use_of_all(*making.team, making.executors.use()));
    return {};
  }
  SHW_CHECK(copy_files(making, copies));
  auto done = [&](const DurableFile& file) { return making.journal->add(file); };
  SHW_TRY(making.made, write_files(with, done));
  add_noted_elements(run.laid_out, making.noted.files, making.made);
  making.device = making.executors.use();
  return {};
}

Status write_metadata(Making& making) {
  if (is_cancelled(making.progress)) return cancelled_error();
  if (making.progress != nullptr) making.progress->begin(Phase::kWritingMetadata, 0, false);
  FolderRun& run = making.run;
  run.program = {};  // frees its memory
  if (making.is_first())
    SHW_CHECK(run.writer->seal(std::move(run.outputs), run.laid_out, [&](const std::string& path) {
      return making.folder->create(path);
    }));
  // The proof looks at the written files only.
  run.outputs = {};
  run.laid_out = {};
  run.made = {};
  return {};
}

// Opens the result like any checkpoint.
Status prove_folder(Making& making) {
  if (making.progress != nullptr) making.progress->begin(Phase::kVerifying, 0, true);
  SHW_TRY(auto written, making.store.read_folder(making.partial));
  SHW_TRY(auto result, open_checkpoint(written));
  return making.prove({*result, *making.folder, making.made, making.copied_items, making.team});
}

// The first input file that has changed since the start, or with `or_gone` that is
// missing.
std::optional<std::string> changed_file(const FolderRun& run, bool or_gone) {
  for (const auto& [input, before] : run.watched) {
    const Entry now = run.inputs[input]->directory()->stat(before.path);
    const bool is_same =
        now.size == before.size && now.modified_ns == before.modified_ns && now.kind == before.kind;
    if (!is_same && (or_gone || now.kind != EntryKind::kMissing)) return before.path;
  }
  return std::nullopt;
}

Status check_inputs_unchanged(const FolderRun& run) {
  const auto changed = changed_file(run, true);
  if (!changed) return {};
  return fail(ErrorKind::kIo, "changed while it was being read", {*changed},
              "wait until nothing writes to the checkpoint, then do this again");
}

// Explains unexpected bytes by a concurrent change of an input, if there is one.
Error with_cause(const FolderRun& run, Error error) {
  if (error.kind != ErrorKind::kDamaged) return error;
  Status inputs = check_inputs_unchanged(run);
  return inputs ? error : std::move(inputs).error();
}

// The result is complete: leftovers do no harm, so errors are ignored.
void tidy(Making& making) {
  if (!making.is_first()) return;
  // Deletes the owner file before the journal, which identifies the owner file as ours.
  static_cast<void>(making.folder->remove(kOwnerFile));
  static_cast<void>(making.folder->remove(kJournalFile));
  static_cast<void>(making.folder->sync());
}

Status build(Making& making) {
  SHW_CHECK(make_files(making));
  SHW_CHECK(making.sums->finalize(making.team));
  making.sums.reset();
  SHW_CHECK(write_metadata(making));
  SHW_CHECK(making.barrier("write metadata"));
  making.is_written = true;
  SHW_CHECK(prove_folder(making));
  SHW_CHECK(check_inputs_unchanged(making.run));
  if (is_cancelled(making.progress)) return cancelled_error();
  if (making.is_first()) SHW_CHECK(limit_rights(making.store, making.partial, making.most));
  SHW_CHECK(making.folder->sync());
  SHW_CHECK(making.barrier("make it durable"));
  if (making.is_first()) SHW_CHECK(making.store.publish(making.partial, making.run.out));
  making.is_published = true;
  if (making.is_first()) SHW_CHECK(open_finished_folder(making.store, making.run.out, making.most));
  tidy(making);
  return making.barrier("give it its name");
}

// Finds an unfinished folder of the same run. Changes nothing yet.
Status find_begun(Making& making, const JournalHeader& header) {
  FolderRun& run = making.run;
  if (run.partial.empty()) {
    auto abandoned = find_abandoned(making.store, header, run.out);
    if (!abandoned) return {};
    run.partial = abandoned->path;
    making.noted = std::move(abandoned->journal);
  } else {
    SHW_CHECK(check_is_own_partial(making.store, run.partial));
    SHW_TRY(auto folder, making.store.read_folder(run.partial));
    SHW_TRY(making.noted, read_journal(*folder));
    SHW_CHECK(check_same_run(making.noted.header, header));
  }
  // Inputs may have changed since: reusing their outputs would mix old and new data.
  if (was_touched(making.noted.header, header)) making.noted.files.clear();
  return {};
}

// If two runs find the same folder, only one can claim it.
Status go_on(Making& making) {
  making.went_on = true;
  SHW_TRY(making.partial, claim_directory(making.store, making.run.partial, kPartialMark));
  SHW_CHECK(check_is_own_partial(making.store, making.partial));
  SHW_TRY(making.folder, making.store.edit_folder(making.partial));
  SHW_TRY(making.noted.files,
          keep_durable(making.store, *making.folder, making.run, making.noted.files));
  for (const DurableFile& file : making.noted.files) making.there.insert(file.path);
  SHW_CHECK(check_space(making.store, making.run, making.shares, making.there));
  SHW_TRY(making.journal, Journal::begin(*making.folder, making.noted));
  return {};
}

std::string free_partial_name(const Store& store, const std::string& base) {
  std::string name = base;
  // Another machine on the same disk may have a process with this pid.
  for (int i = 2; store.exists(name); ++i) name = fmt::format("{}-{}", base, i);
  return name;
}

// Writes owner file and journal before the folder gets its name, so both always exist.
Status begin(Making& making) {
  SHW_CHECK(check_space(making.store, making.run, making.shares, making.there));
  const std::string& out = making.run.out;
  std::string first = free_partial_name(
      making.store,
      fmt::format("{}{}{}-{}", out, kPartialMark, name_before_owner(), random_digits()));
  SHW_TRY(making.folder, making.store.make_folder(first));
  making.partial = first;
  SHW_CHECK(write_text(*making.folder, kOwnerFile, this_process()));
  SHW_TRY(making.journal, Journal::begin(*making.folder, making.noted));
  std::string name = free_partial_name(
      making.store, fmt::format("{}{}{}-{}", out, kPartialMark, ::getpid(), random_digits()));
  Status named = making.store.publish(first, name);
  if (!making.store.exists(first)) making.partial = name;
  SHW_CHECK(named);
  SHW_TRY(making.folder, making.store.edit_folder(name));
  return {};
}

void say_how_to_go_on(const Making& making, Error& error) {
  const std::string& out = making.run.out;
  error.advice += fmt::format(
      "{}what is finished stays: go on with `shardwright resume {}`, or take it away with "
      "`shardwright resume --roll-back {}`",
      error.advice.empty() ? "" : "; ", out, out);
}

// True if another run could get further with the unfinished folder.
bool is_to_stay(const Making& making, const Error& error) {
  // Another run has published first: this name cannot be used any more.
  if (!making.is_published && making.store.exists(making.run.out)) return false;
  if (making.went_on && !making.is_written) return true;
  // Only the GPU failed: a run on another device may succeed.
  if (!making.is_written && making.executors.has_stopped()) return true;
  const bool is_stopped = error.kind == ErrorKind::kCancelled;
  if (is_stopped && making.progress != nullptr && making.progress->keeps) return true;
  // A user who stopped one rank may want to resume. Full disks, lost disks and lost ranks can be
  // fixed; an unavailable input may come back.
  const bool may_go_on = is_stopped
                             ? is_relayed_error(error.message)
                             : error.kind == ErrorKind::kIo && !changed_file(making.run, false);
  return may_go_on && (making.went_on || has_durable(making.store, making.partial));
}

// Deletes a written file that cannot be read back, so that a resumed run writes it again.
void drop_unreadable(const Making& making, const Error& error) {
  const std::string& file = error.place.file;
  if (making.is_written && error.kind == ErrorKind::kIo && is_safe_relative_path(file))
    static_cast<void>(making.folder->remove(file));
}

// Keeps durable files for a resumed run. Deleting the rest could take long, and the user who
// stopped this run would have to wait.
void keep_for_later(const Making& making, Error& error) {
  if (error.kind != ErrorKind::kCancelled) drop_unfinished(making.store, making.partial);
  // If this fails, the folder stays owned while this process lives.
  static_cast<void>(release_directory(making.store, making.partial));
  say_how_to_go_on(making, error);
}

// Handles an error: deletes what this run began unless another run can resume.
tl::unexpected<Error> give_up(const Making& making, Error error) {
  if (making.team != nullptr) making.team->stop(error);
  if (!making.is_first()) {
    // If all ranks stopped because rank 0 is gone, another rank reports the advice.
    const bool stays = making.progress != nullptr && making.progress->keeps;
    if (stays && !making.partial.empty() && making.store.exists(making.partial))
      say_how_to_go_on(making, error);
    return tl::unexpected<Error>(std::move(error));
  }
  if (making.is_published) error.advice = "the result is whole and proved: " + making.run.out;
  const std::string& partial = making.partial;
  if (partial.empty() && making.went_on && error.kind == ErrorKind::kIo)
    say_how_to_go_on(making, error);
  if (partial.empty() || !making.store.exists(partial)) return tl::unexpected<Error>(error);
  drop_unreadable(making, error);
  if (is_to_stay(making, error)) {
    keep_for_later(making, error);
  } else if (auto discarded = making.store.discard(partial, kPartialMark); !discarded) {
    error.advice = "what was made so far could not be removed and lies in " + partial + " (" +
                   discarded.error().message + ")";
  }
  return tl::unexpected<Error>(std::move(error));
}

Status begin_alone(Making& making, JournalHeader header) {
  SHW_CHECK(find_begun(making, header));
  making.noted.header = std::move(header);
  Status made = making.run.partial.empty() ? begin(making) : go_on(making);
  making.noted.header = {};
  return made;
}

// Rank 0 creates the folder and sends its name and durable files to the others.
Status begin_in_team(Making& making, JournalHeader header) {
  Team& team = *making.team;
  SHW_CHECK(agree_on_run(team, header, making.shares));
  if (making.is_first()) SHW_CHECK(begin_alone(making, std::move(header)));
  SHW_TRY(BegunFolder begun, share_begun(team, {making.partial, making.noted.files}));
  if (making.is_first()) return {};
  making.partial = std::move(begun.partial);
  making.noted.files = std::move(begun.files);
  for (const DurableFile& file : making.noted.files) making.there.insert(file.path);
  SHW_TRY(making.folder, making.store.edit_folder(making.partial));
  return {};
}

}  // namespace

Result<FolderMade> make_folder(Store& store, FolderRun run, const ProveFolder& prove,
                               Progress* progress) {
  Making making{store, run, prove, progress};
  const std::size_t workers = run.team == nullptr ? 1 : run.team->size();
  std::vector<OutputId> order;  // sorting millions of chunks takes time
  if (decodes_items(run.program)) order = outputs_in_order(run.laid_out, run.made);
  SHW_TRY(making.executors, choose_executors(run.device, run.program));
  Limits most;
  if (making.executors.has_gpu()) most.slab_bytes = kSentSlabBytes;
  making.most = rights_of_inputs(run);
  making.shares = share_memory(run.program, run.inputs, run.memory, workers, order, most);
  SHW_TRY(making.sums, SourceChecksumVerifier::of(run.program, run.inputs, progress));
  // Moved, not copied: with millions of chunks it is large.
  std::string request = std::exchange(run.request, {});
  SHW_TRY(JournalHeader header, header_of(store, run));
  header.request = std::move(request);
  Status made = run.team == nullptr ? begin_alone(making, std::move(header))
                                    : begin_in_team(making, std::move(header));
  if (made) made = build(making);
  if (made) {
    FolderMade result{making.noted.files.size(), 0, making.device, making.traffic};
    for (const DurableFile& file : making.noted.files) result.bytes_kept += file.size;
    return result;
  }
  return give_up(making, with_cause(run, std::move(made).error()));
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
    // Files in linked folders, which the listing does not enter.
    for (const FileRow& row : inputs[i]->files()) {
      if (row.referenced && row.safe && !listed.contains(row.path))
        watched.push_back({i, folder.stat(row.path)});
    }
  }
  return watched;
}

}  // namespace shw
