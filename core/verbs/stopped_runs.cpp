#include "core/verbs/stopped_runs.h"

#include <algorithm>
#include <tuple>
#include <variant>

#include "core/exec/partial_folder.h"
#include "core/formats/single_file_directory.h"
#include "core/io/owner.h"
#include "core/io/path_suffix.h"
#include "core/io/path_text.h"
#include "core/io/remote/remote_path.h"
#include "core/io/store.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/in_place.h"
#include "core/repair/run/in_place_files.h"
#include "core/repair/run/request.h"
#include "core/transform/steps.h"
#include "core/verbs/resume.h"

namespace shw::verbs {
namespace {

// What is open; null and empty for a folder of steps.
struct OpenCheckpoint {
  const Checkpoint* checkpoint = nullptr;
  std::string path = {};  // resolved
  std::size_t most_plan_bytes = 0;
};

std::vector<std::string> unfinished_folders_in(const Store& store, const std::string& folder) {
  std::vector<std::string> found;
  for (const std::string& name : store.names(folder)) {
    if (name.find(kPartialMark) != std::string::npos) found.push_back(folder + "/" + name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string fill_of(const Checkpoint& checkpoint, const Plan& plan) {
  const auto from = [](const std::string& path) { return "from:" + path; };
  std::string fill;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.lost_elements == 0) continue;
    if (tensor.fill == Fill::kReference && tensor.fill_source != nullptr &&
        tensor.fill_source->directory() != nullptr)
      return from(tensor.fill_source->directory()->name());
    if (tensor.fill == Fill::kCast || fill.empty()) fill = name(tensor.fill);
  }
  for (const Step& step : plan.steps) {
    const auto* filled = std::get_if<FillStep>(&step);
    if (filled == nullptr || !filled->gone) continue;
    const bool is_own = filled->from_checkpoint.empty() ||
                        (checkpoint.directory() != nullptr &&
                         filled->from_checkpoint == checkpoint.directory()->name());
    if (!is_own) return from(filled->from_checkpoint);
    if (fill.empty()) fill = filled->from_checkpoint.empty() ? "zero" : "cast";
  }
  return fill;
}

// Adds what the request of a run says.
void add_fields_of_request(const OpenCheckpoint& open, std::string_view json, StoppedRun& run) {
  auto request = request_from_json(json, "repair", run.folder);
  if (!request) {
    run.not_resumable = std::move(request).error();
    return;
  }
  run.checkpoint = std::move(request->checkpoint);
  run.is_of_open = open.checkpoint != nullptr && run.checkpoint == open.path;
  if (!run.is_of_open || request->plan.size() > open.most_plan_bytes) return;
  auto plan = plan_from_json(*open.checkpoint, request->plan, run.folder);
  if (!plan) {
    if (!run.not_resumable) run.not_resumable = std::move(plan).error();
    return;
  }
  run.fill = fill_of(*open.checkpoint, *plan);
  run.plan = std::make_shared<const Plan>(std::move(*plan));
}

// nullopt for a folder of another user, which is not touched.
std::optional<StoppedRun> describe(const Store& store, const OpenCheckpoint& open,
                                   const std::string& folder) {
  if (!check_is_own_partial(store, folder)) return std::nullopt;
  StoppedRun run{folder};
  run.output = final_name_of_partial(folder);
  if (Status free = check_not_in_progress(store, folder); !free) run.in_use = free.error();
  auto directory = store.read_folder(folder);
  if (!directory) return std::nullopt;
  if ((*directory)->stat(kJournalFile).kind != EntryKind::kFile) {
    run.not_resumable =
        Error{ErrorKind::kUsage, "was interrupted before a file was finished", {folder}};
    return run;
  }
  auto journal = read_journal(**directory);
  if (!journal) {
    run.not_resumable = std::move(journal).error();
    return run;
  }
  for (const DurableFile& file : journal->files) run.bytes += file.size;
  run.files = journal->files.size();
  if (auto changed = first_changed_input(store, journal->header))
    run.not_resumable =
        Error{ErrorKind::kDamaged, "has changed since the repair was interrupted", {*changed}};
  if (!store.is_free_for_folder(run.output))
    run.not_resumable = Error{ErrorKind::kUsage, "is there already", {run.output}};
  add_fields_of_request(open, journal->header.request, run);
  return run;
}

std::optional<StoppedRun> describe_in_place(const Store& store, const OpenCheckpoint& open,
                                            const std::string& path) {
  const auto& directory = open.checkpoint->directory();
  if (directory == nullptr || is_single_file_directory(*directory) || parse_computed_suffix(path))
    return std::nullopt;
  auto state = in_place_state(*directory);
  if (!state || (*state != InPlace::kBegun && *state != InPlace::kReplaced)) return std::nullopt;
  StoppedRun run{path};
  run.output = path;
  run.checkpoint = open.path;
  run.in_place = run.is_of_open = true;
  if (owner_state(store, directory->name()) == OwnerState::kLiveProcess)
    run.in_use = Error{ErrorKind::kUsage, "is being repaired by another process", {path}};
  if (*state == InPlace::kReplaced) return run;
  auto bytes = in_place::contents(*directory, in_place::kRequest);
  if (!bytes) {
    run.not_resumable =
        Error{ErrorKind::kUsage, "was interrupted before it recorded what it repairs", {path}};
    return run;
  }
  add_fields_of_request(open, {reinterpret_cast<const char*>(bytes->data()), bytes->size()}, run);
  return run;
}

void sort_runs(std::vector<StoppedRun>& runs) {
  const auto rank = [](const StoppedRun& run) {
    return std::tuple(run.in_use.has_value(), run.not_resumable.has_value(), !run.is_of_open,
                      ~run.files);
  };
  std::stable_sort(runs.begin(), runs.end(),
                   [&](const StoppedRun& a, const StoppedRun& b) { return rank(a) < rank(b); });
}

std::string base_of(std::string path) {
  return without_trailing_slashes(path_without_suffixes(std::move(path)));
}

}  // namespace

StoppedRuns find_stopped_runs(const Store& store, const Checkpoint& checkpoint,
                              const std::string& path, std::vector<std::string> outputs,
                              std::size_t most_plan_bytes) {
  StoppedRuns found;
  if (is_remote(path)) return found;
  const OpenCheckpoint open{&checkpoint, store.resolved(path).value_or(path), most_plan_bytes};
  const std::string base = base_of(open.path);
  std::vector<std::string> folders = unfinished_folders_in(store, parent_of(base));
  const std::size_t beside = folders.size();
  for (const std::string& output : outputs) {
    for (std::string& folder : partial_folders(store, store.resolved(output).value_or(output))) {
      if (std::find(folders.begin(), folders.end(), folder) == folders.end())
        folders.push_back(std::move(folder));
    }
  }
  for (std::size_t i = 0; i < folders.size(); ++i) {
    auto run = describe(store, open, folders[i]);
    if (!run) continue;
    // Without a journal its name has to do.
    const bool is_named = run->checkpoint.empty() && run->output.starts_with(base + "-");
    if (i >= beside || is_named || base_of(run->checkpoint) == base)
      found.runs.push_back(std::move(*run));
  }
  if (auto run = describe_in_place(store, open, path)) found.runs.push_back(std::move(*run));
  sort_runs(found.runs);
  found.outputs = std::move(outputs);
  found.seen = unfinished_marks(store, path);
  return found;
}

StoppedRuns find_stopped_runs_in(const Store& store, const std::string& folder) {
  StoppedRuns found;
  if (is_remote(folder)) return found;
  const std::string place = without_trailing_slashes(store.resolved(folder).value_or(folder));
  for (const std::string& each : unfinished_folders_in(store, place)) {
    if (auto run = describe(store, {}, each)) found.runs.push_back(std::move(*run));
  }
  sort_runs(found.runs);
  return found;
}

std::vector<std::string> unfinished_marks(const Store& store, const std::string& path) {
  if (is_remote(path)) return {};
  std::vector<std::string> marks =
      unfinished_folders_in(store, parent_of(base_of(store.resolved(path).value_or(path))));
  for (std::string& mark : marks)
    mark += ' ' + std::to_string(static_cast<int>(owner_state(store, mark)));
  return marks;
}

}  // namespace shw::verbs
