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
#include "core/exec/agree_on_run.h"
#include "core/exec/folder_space.h"
#include "core/exec/journal.h"
#include "core/exec/memory_shares.h"
#include "core/exec/partial_folder.h"
#include "core/exec/team_device.h"
#include "core/exec/write_files.h"
#include "core/exec/write_in_team.h"
#include "core/formats/open.h"
#include "core/io/owner.h"
#include "core/io/path_text.h"
#include "core/io/permissions.h"
#include "core/io/random_name.h"

namespace shw {
namespace {

struct RunState {
  Store& store;
  FolderRun& run;
  const ProveFolder& prove;
  Progress* progress;
  Executors executors{};
  MemoryPlan shares{};
  JournalText noted{};     // durable files so far
  PermissionLimit most{};  // upper limit of the result's permissions, from its inputs
  std::string partial{};   // name of the folder until it is finished
  std::unique_ptr<WritableDirectory> folder{};
  std::unique_ptr<Journal> journal{};
  std::set<std::string> there{};                   // paths of durable files
  std::vector<std::optional<ElementSums>> made{};  // WrittenFolder::made
  CopyHasher copied_items{};                       // WrittenFolder::copied_items
  std::unique_ptr<SourceChecksumVerifier> sums{};  // verifies source checksums
  bool is_written = false;                         // all files written, the proof is next
  bool is_published = false;
  bool resumed = false;   // resumed an earlier run
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

PermissionLimit permissions_of_inputs(const FolderRun& run) {
  std::vector<std::string> folders, files;
  for (const Checkpoint* input : run.inputs) {
    if (input->directory() == nullptr) continue;
    const std::string& folder = folders.emplace_back(input->directory()->name());
    for (const FileRow& row : input->files()) {
      if (row.safe && row.referenced) files.push_back(folder + "/" + row.path);
    }
  }
  return permission_limit_of(folders, files);
}

// The files that this rank copies.
IndexRange files_copied_by_this_rank(const RunState& run_state) {
  const FolderRun& run = run_state.run;
  if (run_state.team == nullptr) return {0, run.copied.size()};
  std::vector<std::uint64_t> sizes;
  for (const Entry& entry : run.copied) sizes.push_back(run_state.has(entry.path) ? 0 : entry.size);
  return partition_by_cost(sizes, run_state.team->size())[run_state.team->rank()];
}

Status record_in_journal(RunState& run_state, const DurableFile& file) {
  return run_state.team == nullptr ? run_state.journal->add(file)
                                   : run_state.team_journal->add(file);
}

Status copy_files(RunState& run_state, IndexRange own) {
  const FolderRun& run = run_state.run;
  return parallel_for(own.last - own.first, [&](std::size_t i) -> Status {
    if (is_cancelled(run_state.progress)) return cancelled_error();
    const Entry& file = run.copied[own.first + i];
    if (run_state.has(file.path)) return {};
    auto passing = run_state.copied_items.watch(file.path, 0, file.size);
    SHW_CHECK(run_state.folder->copy_file_durably(source_of(run).name() + "/" + file.path,
                                                  file.path, passing ? &*passing : nullptr,
                                                  run_state.progress));
    return record_in_journal(run_state, {file.path, file.size});
  });
}

Status copy_in_team(RunState& run_state, IndexRange own) {
  TeamJournal& journal = *run_state.team_journal;
  HeartbeatTask task{"copy files", [&] { return copy_files(run_state, own); }, run_state.progress};
  task.news = [&] { return journal.news(); };
  task.receive = [&](std::size_t member, BytesView news) { return journal.receive(member, news); };
  return run_with_heartbeat(*run_state.team, task);
}

// Bytes of this rank's work.
std::uint64_t work_bytes_of_rank(const RunState& run_state, IndexRange copies) {
  const FolderRun& run = run_state.run;
  std::uint64_t bytes = 0, made = 0;
  for (std::size_t i = copies.first; i < copies.last; ++i) bytes += run.copied[i].size;
  for (const OutputCopy& copy : run.laid_out.copies) made += copy.length;
  for (const WrittenTile& tile : run.laid_out.made) made += tile.length;
  return bytes + made / (run_state.team == nullptr ? 1 : run_state.team->size());
}

// Items in files that are copied whole or in ranges.
CopyHasher copied_items_to_hash(const RunState& run_state) {
  const FolderRun& run = run_state.run;
  if (run.outputs.source == nullptr) return {};
  std::vector<std::string> paths;
  for (const Entry& entry : run.copied) paths.push_back(entry.path);
  for (const OutputCopy& copy : run.laid_out.copies) {
    if (paths.empty() || paths.back() != copy.from) paths.push_back(copy.from);
  }
  return CopyHasher(*run.outputs.source, paths);
}

Status make_files(RunState& run_state) {
  const FolderRun& run = run_state.run;
  const IndexRange copies = files_copied_by_this_rank(run_state);
  run_state.copied_items = copied_items_to_hash(run_state);
  if (run_state.progress != nullptr) {
    run_state.progress->begin(Phase::kCopying, work_bytes_of_rank(run_state, copies), true);
    const std::uint64_t members = run_state.team == nullptr ? 1 : run_state.team->size();
    for (const DurableFile& file : run_state.noted.files)
      run_state.progress->add(file.size / members);
  }
  std::vector<bool> there;
  for (const LaidOut::File& file : run.laid_out.files) there.push_back(run_state.has(file.path));
  const FileWriterInputs with{run,
                              run_state.shares,
                              run_state.executors,
                              there,
                              *run_state.folder,
                              run_state.copied_items,
                              *run_state.sums,
                              run_state.progress};
  if (run_state.team != nullptr) {
    run_state.team_journal =
        std::make_unique<TeamJournal>(*run_state.team, run_state.journal.get());
    SHW_CHECK(copy_in_team(run_state, copies));
    SHW_TRY(run_state.made, write_files_collectively(with, *run_state.team_journal));
    SHW_CHECK(run_state.sums->share(*run_state.team));
    add_journaled_checksums(run.laid_out, run_state.noted.files, run_state.made);
    SHW_TRY(run_state.traffic, sum_traffic_of_team(*run_state.team));
    SHW_TRY(run_state.device, gather_device_use(*run_state.team, run_state.executors.use()));
    return {};
  }
  SHW_CHECK(copy_files(run_state, copies));
  auto done = [&](const DurableFile& file) { return run_state.journal->add(file); };
  SHW_TRY(run_state.made, write_files(with, done));
  add_journaled_checksums(run.laid_out, run_state.noted.files, run_state.made);
  run_state.device = run_state.executors.use();
  return {};
}

Status write_metadata(RunState& run_state) {
  if (is_cancelled(run_state.progress)) return cancelled_error();
  if (run_state.progress != nullptr) run_state.progress->begin(Phase::kWritingMetadata, 0, false);
  FolderRun& run = run_state.run;
  run.program = {};  // frees its memory
  if (run_state.is_first())
    SHW_CHECK(run.writer->seal(std::move(run.outputs), run.laid_out, [&](const std::string& path) {
      return run_state.folder->create(path);
    }));
  // Frees the layout before the proof, which reads only the written files.
  run.outputs = {};
  run.laid_out = {};
  run.made = {};
  return {};
}

// Opens the result like any checkpoint.
Status prove_folder(RunState& run_state) {
  if (run_state.progress != nullptr) run_state.progress->begin(Phase::kVerifying, 0, true);
  SHW_TRY(auto written, run_state.store.read_folder(run_state.partial));
  SHW_TRY(auto result, open_checkpoint(written));
  return run_state.prove(
      {*result, *run_state.folder, run_state.made, run_state.copied_items, run_state.team});
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
              "wait until no process writes to the checkpoint, then run this again");
}

// Explains unexpected bytes by a concurrent change of an input, if there is one.
Error with_changed_input_cause(const FolderRun& run, Error error) {
  if (error.kind != ErrorKind::kDamaged) return error;
  Status inputs = check_inputs_unchanged(run);
  return inputs ? error : std::move(inputs).error();
}

// The result is complete: leftovers do no harm, so errors are ignored.
void delete_leftovers(RunState& run_state) {
  if (!run_state.is_first()) return;
  // Deletes the owner file before the journal, which identifies the owner file as ours.
  static_cast<void>(run_state.folder->remove(kOwnerFile));
  static_cast<void>(run_state.folder->remove(kJournalFile));
  static_cast<void>(run_state.folder->sync());
}

Status build(RunState& run_state) {
  SHW_CHECK(make_files(run_state));
  SHW_CHECK(run_state.sums->finalize(run_state.team));
  run_state.sums.reset();
  SHW_CHECK(write_metadata(run_state));
  SHW_CHECK(run_state.barrier("write metadata"));
  run_state.is_written = true;
  SHW_CHECK(prove_folder(run_state));
  SHW_CHECK(check_inputs_unchanged(run_state.run));
  if (is_cancelled(run_state.progress)) return cancelled_error();
  if (run_state.is_first())
    SHW_CHECK(limit_permissions(run_state.store, run_state.partial, run_state.most));
  SHW_CHECK(run_state.folder->sync());
  SHW_CHECK(run_state.barrier("make it durable"));
  if (run_state.is_first())
    SHW_CHECK(run_state.store.publish(run_state.partial, run_state.run.out));
  run_state.is_published = true;
  if (run_state.is_first())
    SHW_CHECK(set_final_permissions(run_state.store, run_state.run.out, run_state.most));
  delete_leftovers(run_state);
  return run_state.barrier("give it its name");
}

// Finds an unfinished folder of the same run. Changes nothing yet.
Status find_unfinished_folder(RunState& run_state, const JournalHeader& header) {
  FolderRun& run = run_state.run;
  if (run.partial.empty()) {
    auto abandoned = find_resumable_folder(run_state.store, header, run.out);
    if (!abandoned) return {};
    run.partial = abandoned->path;
    run_state.noted = std::move(abandoned->journal);
  } else {
    SHW_CHECK(check_is_own_partial(run_state.store, run.partial));
    SHW_TRY(auto folder, run_state.store.read_folder(run.partial));
    SHW_TRY(run_state.noted, read_journal(*folder));
    SHW_CHECK(check_same_run(run_state.noted.header, header));
  }
  // Inputs may have changed since: reusing their outputs would mix old and new data.
  if (has_new_change_time(run_state.noted.header, header)) run_state.noted.files.clear();
  return {};
}

// If two runs find the same folder, only one can claim it.
Status resume_folder(RunState& run_state) {
  run_state.resumed = true;
  SHW_TRY(run_state.partial, claim_directory(run_state.store, run_state.run.partial, kPartialMark));
  SHW_CHECK(check_is_own_partial(run_state.store, run_state.partial));
  SHW_TRY(run_state.folder, run_state.store.edit_folder(run_state.partial));
  SHW_TRY(run_state.noted.files, keep_resumable_files(run_state.store, *run_state.folder,
                                                      run_state.run, run_state.noted.files));
  for (const DurableFile& file : run_state.noted.files) run_state.there.insert(file.path);
  SHW_CHECK(check_space(run_state.store, run_state.run, run_state.shares, run_state.there));
  SHW_TRY(run_state.journal, Journal::begin(*run_state.folder, run_state.noted));
  return {};
}

std::string free_partial_name(const Store& store, const std::string& base) {
  std::string name = base;
  // Another machine on the same disk may have a process with this pid.
  for (int i = 2; store.exists(name); ++i) name = fmt::format("{}-{}", base, i);
  return name;
}

// Writes owner file and journal before the folder gets its name, so both always exist.
Status create_folder(RunState& run_state) {
  SHW_CHECK(check_space(run_state.store, run_state.run, run_state.shares, run_state.there));
  const std::string& out = run_state.run.out;
  std::string first = free_partial_name(
      run_state.store,
      fmt::format("{}{}{}-{}", out, kPartialMark, owner_name_suffix(), random_digits()));
  SHW_TRY(run_state.folder, run_state.store.make_folder(first));
  run_state.partial = first;
  SHW_CHECK(write_text(*run_state.folder, kOwnerFile, own_process_identity()));
  SHW_TRY(run_state.journal, Journal::begin(*run_state.folder, run_state.noted));
  std::string name = free_partial_name(
      run_state.store, fmt::format("{}{}{}-{}", out, kPartialMark, ::getpid(), random_digits()));
  Status named = run_state.store.publish(first, name);
  if (!run_state.store.exists(first)) run_state.partial = name;
  SHW_CHECK(named);
  SHW_TRY(run_state.folder, run_state.store.edit_folder(name));
  return {};
}

void add_resume_hint(const RunState& run_state, Error& error) {
  const std::string& out = run_state.run.out;
  error.advice += fmt::format(
      "{}finished files are kept: continue with `shardwright resume {}`, or remove them with "
      "`shardwright resume --roll-back {}`",
      error.advice.empty() ? "" : "; ", out, out);
}

// True if another run could get further with the unfinished folder.
bool is_resumable(const RunState& run_state, const Error& error) {
  // Another run has published first: this name cannot be used any more.
  if (!run_state.is_published && !run_state.store.is_free_for_folder(run_state.run.out))
    return false;
  if (run_state.resumed && !run_state.is_written) return true;
  // Only the GPU failed: a run on another device may succeed.
  if (!run_state.is_written && run_state.executors.has_stopped()) return true;
  const bool is_stopped = error.kind == ErrorKind::kCancelled;
  if (is_stopped && run_state.progress != nullptr && run_state.progress->keeps) return true;
  // A user who stopped one rank may want to resume. Full disks, lost disks and lost ranks can be
  // fixed; an unavailable input may come back.
  const bool may_go_on = is_stopped
                             ? is_relayed_error(error.message)
                             : error.kind == ErrorKind::kIo && !changed_file(run_state.run, false);
  return may_go_on && (run_state.resumed || has_durable_files(run_state.store, run_state.partial));
}

// Deletes a written file that cannot be read back, so that a resumed run writes it again.
void remove_unreadable_file(const RunState& run_state, const Error& error) {
  const std::string& file = error.place.file;
  if (run_state.is_written && error.kind == ErrorKind::kIo && is_safe_relative_path(file))
    static_cast<void>(run_state.folder->remove(file));
}

// Keeps durable files for a resumed run. Deleting the rest could take long, and the user who
// stopped this run would have to wait.
void keep_durable_files(const RunState& run_state, Error& error) {
  if (error.kind != ErrorKind::kCancelled)
    delete_unfinished_folder(run_state.store, run_state.partial);
  // If this fails, the folder stays owned while this process lives.
  static_cast<void>(release_directory(run_state.store, run_state.partial));
  add_resume_hint(run_state, error);
}

// Handles an error: deletes what this run began unless another run can resume.
tl::unexpected<Error> clean_up_after_error(const RunState& run_state, Error error) {
  if (run_state.team != nullptr) run_state.team->stop(error);
  if (!run_state.is_first()) {
    // If all ranks stopped because rank 0 has exited, another rank reports the advice.
    const bool stays = run_state.progress != nullptr && run_state.progress->keeps;
    if (stays && !run_state.partial.empty() && run_state.store.exists(run_state.partial))
      add_resume_hint(run_state, error);
    return tl::unexpected<Error>(std::move(error));
  }
  if (run_state.is_published)
    error.advice = "the result is complete and verified: " + run_state.run.out;
  const std::string& partial = run_state.partial;
  if (partial.empty() && run_state.resumed && error.kind == ErrorKind::kIo)
    add_resume_hint(run_state, error);
  if (partial.empty() || !run_state.store.exists(partial)) return tl::unexpected<Error>(error);
  remove_unreadable_file(run_state, error);
  if (is_resumable(run_state, error)) {
    keep_durable_files(run_state, error);
  } else if (auto discarded = run_state.store.discard(partial, kPartialMark); !discarded) {
    error.advice = "the partial result could not be removed and is in " + partial + " (" +
                   discarded.error().message + ")";
  }
  return tl::unexpected<Error>(std::move(error));
}

Status create_or_resume_folder(RunState& run_state, JournalHeader header) {
  SHW_CHECK(find_unfinished_folder(run_state, header));
  run_state.noted.header = std::move(header);
  Status made = run_state.run.partial.empty() ? create_folder(run_state) : resume_folder(run_state);
  run_state.noted.header = {};
  return made;
}

// Rank 0 creates the folder and sends its name and durable files to the others.
Status begin_on_all_ranks(RunState& run_state, JournalHeader header) {
  Team& team = *run_state.team;
  SHW_CHECK(agree_on_run(team, header, run_state.shares));
  if (run_state.is_first()) SHW_CHECK(create_or_resume_folder(run_state, std::move(header)));
  SHW_TRY(CreatedFolder begun,
          share_created_folder(team, {run_state.partial, run_state.noted.files}));
  if (run_state.is_first()) return {};
  run_state.partial = std::move(begun.partial);
  run_state.noted.files = std::move(begun.files);
  for (const DurableFile& file : run_state.noted.files) run_state.there.insert(file.path);
  SHW_TRY(run_state.folder, run_state.store.edit_folder(run_state.partial));
  return {};
}

}  // namespace

Result<FolderResult> make_folder(Store& store, FolderRun run, const ProveFolder& prove,
                                 Progress* progress) {
  RunState run_state{store, run, prove, progress};
  const std::size_t workers = run.team == nullptr ? 1 : run.team->size();
  std::vector<OutputId> order;  // sorting millions of chunks takes time
  if (needs_decoded_items(run.program)) order = outputs_in_file_order(run.laid_out, run.made);
  SHW_TRY(run_state.executors, choose_executors(run.device, run.program));
  SlabLimits most;
  if (run_state.executors.has_gpu()) most.slab_bytes = kSentSlabBytes;
  run_state.most = permissions_of_inputs(run);
  run_state.shares = plan_memory(run.program, run.inputs, run.memory, workers, order, most);
  SHW_TRY(run_state.sums, SourceChecksumVerifier::of(run.program, run.inputs, progress));
  // Moved, not copied: with millions of chunks it is large.
  std::string request = std::exchange(run.request, {});
  SHW_TRY(JournalHeader header, header_of(store, run));
  header.request = std::move(request);
  Status made = run.team == nullptr ? create_or_resume_folder(run_state, std::move(header))
                                    : begin_on_all_ranks(run_state, std::move(header));
  if (made) made = build(run_state);
  if (made) {
    FolderResult result{run_state.noted.files.size(), 0, run_state.device, run_state.traffic};
    for (const DurableFile& file : run_state.noted.files) result.bytes_kept += file.size;
    return result;
  }
  return clean_up_after_error(run_state, with_changed_input_cause(run, std::move(made).error()));
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
