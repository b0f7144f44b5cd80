#include "core/verbs/run/run_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <ranges>
#include <set>
#include <utility>

#include "core/base/words.h"
#include "core/formats/folder_kind.h"
#include "core/formats/open.h"
#include "core/io/store.h"
#include "core/rules/damage.h"
#include "core/rules/unjudged.h"
#include "core/verbs/browse.h"

namespace shw::verbs {
namespace {

constexpr std::size_t kMaxSteps = 1'000;

// Sets properties of a step's files that are known without opening them.
void set_file_properties(RunStep& step, const std::string& run, const ListedPlace& place) {
  auto directory = open_directory(place.kind == PlaceKind::kFile ? run : step.path);
  if (!directory) return;
  Result<std::vector<Entry>> entries = std::vector<Entry>{};
  if (place.kind == PlaceKind::kFile)
    entries->push_back((*directory)->stat(place.name));
  else
    entries = (*directory)->list(100'000);
  if (!entries) return;
  for (const Entry& entry : *entries) {
    if (entry.kind != EntryKind::kFile) continue;
    ++step.files;
    step.bytes += entry.size;
    step.modified_ns = std::max(step.modified_ns, entry.modified_ns);
    const auto times = static_cast<std::uint64_t>(entry.modified_ns ^ (entry.changed_ns << 1));
    step.stamp += (times ^ (entry.size * 0x9E3779B97F4A7C15u)) * 0xD1B54A32D192ED03u + 1;
  }
}

std::string time_text(std::int64_t nanoseconds) {
  if (nanoseconds <= 0) return {};
  const auto seconds = static_cast<std::time_t>(nanoseconds / 1'000'000'000);
  std::tm local{};
  if (::localtime_r(&seconds, &local) == nullptr) return {};
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &local)};
}

// "step_9000" becomes "step_#".
std::string step_name_pattern(std::string_view name) {
  std::string pattern;
  for (char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit)
      pattern += c;
    else if (!pattern.ends_with('#'))
      pattern += '#';
  }
  return pattern;
}

// Checkpoints, and folders named like them, whose save may not have finished; newest first.
std::vector<ListedPlace> list_step_folders(FolderListing listing, std::size_t& not_read) {
  const std::string base = listing.path == "/" ? "/" : listing.path + "/";
  std::set<std::string> patterns;
  std::vector<bool> is_checkpoint;
  if (listing.places.size() > kMaxSteps) {
    not_read = listing.places.size() - kMaxSteps;
    listing.places.erase(listing.places.begin(),
                         listing.places.begin() + static_cast<std::ptrdiff_t>(not_read));
  }
  for (const ListedPlace& place : listing.places) {
    bool is_step = place.kind == PlaceKind::kFile;
    if (!is_step) {
      auto directory = open_directory(base + place.name);
      auto kind = directory ? kind_of_folder(*directory) : Result<FolderKind>(FolderKind{});
      is_step = kind && (kind->format != nullptr || !kind->unread.empty() || kind->below > 0);
    }
    is_checkpoint.push_back(is_step);
    if (is_step) patterns.insert(step_name_pattern(place.name));
  }
  std::vector<ListedPlace> steps;
  for (std::size_t i = listing.places.size(); i-- > 0;) {
    const std::string pattern = step_name_pattern(listing.places[i].name);
    const bool is_numbered = pattern.find('#') != pattern.npos;
    if (is_checkpoint[i] || (is_numbered && patterns.contains(pattern)))
      steps.push_back(std::move(listing.places[i]));
  }
  return steps;
}

// The examined row of a step if its files have not changed; otherwise null.
const RunStep* unchanged_step(const RunSteps& before, const RunStep& step) {
  auto found = std::ranges::find(before.steps, step.name, &RunStep::name);
  // A step that could not be opened is examined again: the disk may have been away.
  const bool is_same = found != before.steps.end() && found->is_known && found->verdict &&
                       found->stamp == step.stamp;
  return is_same ? &*found : nullptr;
}

bool is_oldest(const RunSteps& before, const std::string& name) {
  return !before.steps.empty() && before.steps.back().name == name;
}

// True if `older` was already the next row, with the files that it has now.
bool is_followed_by(const RunSteps& before, const std::string& name, const RunStep& older) {
  auto found = std::ranges::find(before.steps, name, &RunStep::name);
  if (found == before.steps.end() || std::next(found) == before.steps.end()) return false;
  return std::next(found)->name == older.name && std::next(found)->stamp == older.stamp;
}

// "2 tensors added, 1 tensor of another shape"; empty if the metadata agrees.
std::string difference_text(const Checkpoint& before, const Checkpoint& now) {
  std::uint64_t added = 0, shaped = 0, typed = 0, common = 0;
  for (TensorId tensor : now.tensors()) {
    auto other = before.find(now.fqn(tensor));
    if (!other) {
      ++added;
      continue;
    }
    ++common;
    shaped += std::ranges::equal(now.shape(tensor), before.shape(*other)) ? 0 : 1;
    typed += now.dtype(tensor) == before.dtype(*other) ? 0 : 1;
  }
  std::vector<std::string> parts;
  if (added != 0) parts.push_back(plural(added, "tensor") + " added");
  if (before.tensor_count() > common)
    parts.push_back(plural(before.tensor_count() - common, "tensor") + " missing");
  if (shaped != 0) parts.push_back(plural(shaped, "tensor") + " of another shape");
  if (typed != 0) parts.push_back(plural(typed, "tensor") + " of another dtype");
  if (now.rank_count() != before.rank_count())
    parts.push_back(fmt::format("{} ranks, before {}", now.rank_count(), before.rank_count()));
  if (now.format().title != before.format().title)
    parts.push_back(fmt::format("{}, before {}", now.format().title, before.format().title));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::size_t count_files_with_lost_data(const Checkpoint& checkpoint) {
  std::vector<bool> lost(checkpoint.file_count(), false);
  if (checkpoint.directory() == nullptr) return 0;
  for (ChunkId chunk : checkpoint.chunks()) {
    auto item = checkpoint.item(chunk);
    if (item && item->file != FileId::kNone && !is_reachable(checkpoint, *item))
      lost[index_of(item->file)] = true;
  }
  return static_cast<std::size_t>(std::count(lost.begin(), lost.end(), true));
}

void set_open_error(RunStep& step, const Error& error) {
  step.is_error = true;
  step.headline = "Cannot be opened: ";
  if (!error.place.file.empty()) step.headline += error.place.file + ": ";
  step.headline += error.message;
}

// Null if it cannot be opened, which the row then states.
Result<std::shared_ptr<const Checkpoint>> open_and_check_step(RunStep& step, Progress* progress) {
  auto opened = open_checkpoint(step.path, progress);
  if (!opened && opened.error().kind == ErrorKind::kCancelled) return cancelled_error();
  if (!opened) {
    set_open_error(step, opened.error());
    return std::shared_ptr<const Checkpoint>();
  }
  const Checkpoint& checkpoint = **opened;
  CheckOptions options;
  options.depth = Depth::kMetadata;
  auto report = shw::check(checkpoint, options, progress);
  if (!report && report.error().kind == ErrorKind::kCancelled) return cancelled_error();
  if (!report) {
    set_open_error(step, report.error());
    return std::shared_ptr<const Checkpoint>();
  }
  step.verdict = report->verdict;
  step.tensors = checkpoint.tensor_count();
  step.headline =
      check_headline(checkpoint, *report, count_affected_by_findings(checkpoint, report->findings));
  step.is_error = std::any_of(report->findings.begin(), report->findings.end(),
                              [](const auto& f) { return f.severity == Severity::kError; });
  step.has_hint = !rules_with_hints(report->unjudged).empty();
  step.files_lost = count_files_with_lost_data(checkpoint);
  step.elements_lost = unreadable_in(checkpoint, report->findings).elements;
  return std::move(*opened);
}

// The row above compares itself with the step that was just examined.
void compare_with_last(RunSteps& run, std::size_t at, const Checkpoint* older) {
  if (at == 0 || run.last == nullptr) return;
  RunStep& newer = run.steps[at - 1];
  if (run.last_name != newer.name || older == nullptr) return;
  newer.differs = difference_text(*older, *run.last);
  newer.is_compared = true;
}

}  // namespace

bool RunSteps::is_complete() const {
  return std::ranges::all_of(steps, [](const RunStep& step) { return step.is_known; });
}

bool RunSteps::is_like(const RunSteps& other) const {
  if (error.has_value() != other.error.has_value() || not_read != other.not_read) return false;
  return std::ranges::equal(steps, other.steps, [](const RunStep& a, const RunStep& b) {
    return a.name == b.name && a.stamp == b.stamp;
  });
}

bool is_run_folder(const std::string& path) {
  auto directory = open_directory(path);
  if (!directory) return false;
  auto kind = kind_of_folder(*directory);
  return kind && kind->format == nullptr && kind->below > 0;
}

RunSteps list_run(const std::string& path, const RunSteps* before) {
  RunSteps run;
  FolderListing listing = list_folder(path);
  run.path = listing.path;
  run.error = listing.error;
  if (run.error) {
    if (before == nullptr || before->path != run.path) return run;
    RunSteps lost = *before;
    lost.error = std::move(run.error);
    return lost;
  }
  const std::vector<ListedPlace> places = list_step_folders(std::move(listing), run.not_read);
  const std::string base = run.path == "/" ? "/" : run.path + "/";
  for (const ListedPlace& place : places) {
    RunStep step;
    step.name = place.name;
    step.path = base + place.name;
    set_file_properties(step, run.path, place);
    step.time = time_text(step.modified_ns);
    run.steps.push_back(std::move(step));
  }
  if (before == nullptr || before->path != run.path) return run;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const RunStep* known = unchanged_step(*before, run.steps[i]);
    // The row depends on the step before it too, through `differs`.
    const bool is_same_below = i + 1 == run.steps.size()
                                   ? is_oldest(*before, run.steps[i].name)
                                   : is_followed_by(*before, run.steps[i].name, run.steps[i + 1]);
    if (known != nullptr && is_same_below) run.steps[i] = *known;
  }
  return run;
}

Result<RunSteps> inspect_next_step(RunSteps run, Progress* progress) {
  auto next = std::ranges::find(run.steps, false, &RunStep::is_known);
  if (next == run.steps.end()) return run;
  SHW_TRY(auto opened, open_and_check_step(*next, progress));
  next->is_known = true;
  const auto at = static_cast<std::size_t>(next - run.steps.begin());
  compare_with_last(run, at, opened.get());
  run.last = std::move(opened);
  run.last_name = next->name;
  // Reopens the previous step if it was examined earlier, to compare with it.
  if (run.last == nullptr || at + 1 >= run.steps.size() || !run.steps[at + 1].is_known) return run;
  auto older = open_checkpoint(run.steps[at + 1].path, progress);
  if (!older) return run;
  next->differs = difference_text(**older, *run.last);
  next->is_compared = true;
  return run;
}

}  // namespace shw::verbs
