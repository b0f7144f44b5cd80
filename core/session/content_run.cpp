#include "core/session/content_run.h"

#include <algorithm>
#include <utility>

#include "core/io/store.h"
#include "core/verbs/values/bytes_search.h"
#include "core/verbs/verbs_over_ssh.h"

namespace shw {
namespace {

using Go = BytesCommand::Go;

Error nothing(std::string what) {
  return {ErrorKind::kUsage, std::move(what)};
}

bool has_file(const Checkpoint& checkpoint, const std::string& path) {
  if (checkpoint.directory() == nullptr || !is_safe_relative_path(path)) return false;
  return checkpoint.directory()->stat(path).kind == EntryKind::kFile;
}

// For a finding about a file: the first item outside of it.
std::optional<ChunkId> first_item_beyond_file(const Checkpoint& checkpoint,
                                              const Finding& finding) {
  if (finding.subjects.empty() || checkpoint.find(finding.subjects[0])) return std::nullopt;
  for (std::uint32_t c = 0; c < checkpoint.chunk_count(); ++c) {
    auto item = checkpoint.item(ChunkId{c});
    if (!item || item->file == FileId::kNone) continue;
    const FileRow& file = checkpoint.file(item->file);
    if (file.path == finding.subjects[0] && !range_in_file(*item, file.size)) return ChunkId{c};
  }
  return std::nullopt;
}

Result<verbs::BytesWindow> read_shown_bytes(const Snapshot& before, const BytesCommand& wanted,
                                            Progress* progress) {
  const Checkpoint& checkpoint = *before.checkpoint;
  auto go = [&](const std::string& file, std::uint64_t at, std::optional<ChunkId> preferred) {
    return verbs::bytes_at(checkpoint, file, at, preferred, progress);
  };
  if (wanted.go == Go::kFinding && before.report != nullptr && !before.report->findings.empty()) {
    const auto& findings = before.report->findings;
    const Finding& finding = findings[std::min(before.finding.value_or(0), findings.size() - 1)];
    if (auto place = byte_place_of(before, finding)) return go(place->file, place->at, {});
    if (auto cut = first_item_beyond_file(checkpoint, finding))
      return verbs::bytes_of(checkpoint, *cut, progress);
  }
  if (wanted.go == Go::kTile || wanted.go == Go::kFinding) {
    auto tile = tile_of(before);
    if (!tile) return tl::unexpected<Error>(nothing("no tile is selected"));
    return verbs::bytes_of(checkpoint, *tile, progress);
  }
  const verbs::BytesWindow* now =
      before.bytes != nullptr && before.bytes->window ? &*before.bytes->window : nullptr;
  std::string file = wanted.file.empty() && now != nullptr ? now->path : wanted.file;
  if (file.empty()) {
    auto tile = tile_of(before);
    auto item = tile ? checkpoint.item(*tile) : std::nullopt;
    if (item && item->file != FileId::kNone) file = checkpoint.file(item->file).path;
  }
  if (file.empty()) return tl::unexpected<Error>(nothing("no file is read"));
  if (wanted.go == Go::kAt) return go(file, wanted.at, before.chunk);
  if (wanted.go == Go::kFind) {
    if (now == nullptr) return tl::unexpected<Error>(nothing("no file is read"));
    return verbs::bytes_found(checkpoint, *now, wanted.pattern, progress);
  }
  std::optional<std::uint64_t> step;
  if (now != nullptr) step = wanted.go == Go::kNext ? now->next : now->previous;
  if (!step && now != nullptr) return *now;  // at the first or last record
  return go(file, step.value_or(0), std::nullopt);
}

}  // namespace

std::optional<BytePlace> byte_place_of(const Snapshot& snapshot, const Finding& finding) {
  if (snapshot.checkpoint == nullptr) return std::nullopt;
  std::optional<std::uint64_t> at;
  std::string file;
  for (const auto& [label, value] : finding.evidence) {
    const auto* number = std::get_if<std::int64_t>(&value);
    const auto* text = std::get_if<std::string>(&value);
    if (label == "offset" && number && *number >= 0) at = static_cast<std::uint64_t>(*number);
    if (label == "file" && text) file = *text;
  }
  if (!at) return std::nullopt;
  for (const std::string& subject : finding.subjects) {
    if (file.empty() && has_file(*snapshot.checkpoint, subject)) file = subject;
  }
  if (!has_file(*snapshot.checkpoint, file)) return std::nullopt;
  return BytePlace{file, *at};
}

std::optional<ChunkId> tile_of(const Snapshot& snapshot) {
  if (snapshot.checkpoint == nullptr) return std::nullopt;
  if (snapshot.chunk && index_of(*snapshot.chunk) < snapshot.checkpoint->chunk_count())
    return snapshot.chunk;
  if (!snapshot.tensor) return std::nullopt;
  auto chunks = snapshot.checkpoint->chunks(*snapshot.tensor);
  if (chunks.empty()) return std::nullopt;
  return chunks[0];
}

Result<Change> run_show_bytes(const Snapshot& before, const Command& command, Progress* progress) {
  const auto& wanted = as<BytesCommand>(command);
  if (before.checkpoint == nullptr || wanted.go == Go::kClose)
    return Change([](Snapshot& s) { s.bytes = nullptr; });
  auto look = std::make_shared<ShownBytes>();
  auto window = read_shown_bytes(before, wanted, progress);
  if (!window && window.error().kind == ErrorKind::kCancelled) return cancelled_error();
  if (window)
    look->window = std::move(*window);
  else
    look->error = std::move(window).error();
  return Change([look = std::move(look)](Snapshot& s) { s.bytes = look; });
}

namespace {

const Checkpoint* compared_with(const Snapshot& snapshot) {
  const auto& compared = snapshot.compared;
  return compared != nullptr && compared->a == snapshot.checkpoint ? compared->b.get() : nullptr;
}

std::string not_found_text(verbs::SearchedValue sought, std::int64_t unread) {
  std::string text = sought == verbs::SearchedValue::kNan ? "There is no NaN in this slice"
                                                          : "Nothing differs in this slice";
  return text + (unread > 0 ? ", of what can be read." : ".");
}

// The window of the table at the next element that is sought.
Result<std::shared_ptr<ShownValues>> search_value(const Snapshot& before,
                                                  verbs::SearchedValue sought, Progress* progress) {
  if (before.values == nullptr || !before.values->values ||
      before.values->values->tensor != *before.tensor)
    return fail(ErrorKind::kUsage, "no values are shown");
  const verbs::SliceValues& now = *before.values->values;
  verbs::ValuePlace start{now.first_row, now.first_column};
  if (now.found) start = {now.found->row, now.found->column + 1};
  SHW_TRY(const verbs::NextValue next,
          verbs::next_value(*before.checkpoint, *before.tensor, now, start, sought,
                            compared_with(before), progress));
  auto look = std::make_shared<ShownValues>(*before.values);
  look->not_found = next.place ? "" : not_found_text(sought, next.unread);
  if (next.place && next.place == now.found)
    look->not_found = sought == verbs::SearchedValue::kNan ? "There is no other NaN in this slice."
                                                           : "Nothing else differs in this slice.";
  look->values->found = next.place;
  return look;
}

}  // namespace

Result<Change> run_show_values(const Snapshot& before, const Command& command, Progress* progress) {
  const auto& wanted = as<ValuesCommand>(command);
  if (before.checkpoint == nullptr || !before.tensor || wanted.close)
    return Change([](Snapshot& s) { s.values = nullptr; });
  auto look = std::make_shared<ShownValues>();
  verbs::ValuesRequest ask = wanted.ask;
  std::optional<verbs::ValuePlace> found;
  if (wanted.next) {
    SHW_TRY(look, search_value(before, *wanted.next, progress));
    if (!look->not_found.empty()) return Change([look](Snapshot& s) { s.values = look; });
    found = look->values->found;
    ask = verbs::window_at(*look->values, before.checkpoint->shape(*before.tensor), *found);
  }
  auto values = verbs::slice_values(*before.checkpoint, *before.tensor, ask, progress);
  if (!values && values.error().kind == ErrorKind::kCancelled) return cancelled_error();
  if (values)
    look->values = std::move(*values);
  else
    look->error = std::move(values).error();
  const Checkpoint* other = compared_with(before);
  if (look->values && other != nullptr) {
    look->side_by_side = verbs::side_by_side_values(*before.checkpoint, *before.tensor, *other,
                                                    *look->values, progress);
    const auto& error = look->side_by_side->error;
    if (error && error->kind == ErrorKind::kCancelled) return cancelled_error();
    if (look->side_by_side->values) look->side_by_side->values->found = found;
    if (look->side_by_side->difference) look->side_by_side->difference->values.found = found;
  }
  if (look->values) look->values->found = found;
  return Change([look = std::move(look)](Snapshot& s) { s.values = look; });
}

Result<Change> run_save_values(const Snapshot& before, const Command& command, Progress* progress) {
  if (before.values == nullptr || !before.values->values)
    return fail(ErrorKind::kUsage, "no values are shown");
  const verbs::SliceValues& shown = *before.values->values;
  const auto& c = as<SaveValuesCommand>(command);
  SHW_TRY(verbs::SavedValues saved, verbs::save_values(posix_store(),
                                                       {verb_inputs(before), before.options,
                                                        shown.tensor, shown.ask, c.kind, c.path},
                                                       progress));
  return Change([saved = std::make_shared<const verbs::SavedValues>(std::move(saved))](
                    Snapshot& s) { s.saved_values = saved; });
}

Result<Change> run_browse(const Snapshot& before, const Command& command, Progress* progress) {
  const std::string& folder = as<BrowseCommand>(command).folder;
  bool goes_on = has_more_results(before, command);
  auto listing = goes_on ? verbs::inspect_entries(*before.folder, progress)
                         : Result<verbs::FolderListing>(verbs::list_folder(folder));
  if (!listing) return tl::unexpected<Error>(std::move(listing).error());
  auto seen = std::make_shared<const verbs::FolderListing>(std::move(*listing));
  return Change([seen = std::move(seen)](Snapshot& s) { s.folder = seen; });
}

namespace {

// The tensor whose tiles are requested; nullopt if another one was selected meanwhile.
std::optional<TensorId> requested_tensor(const Snapshot& snapshot, const TileValuesCommand& asked) {
  if (snapshot.checkpoint == nullptr || asked.stop || !snapshot.tensor) return std::nullopt;
  if (asked.fqn.empty()) return snapshot.tensor;
  auto tensor = snapshot.checkpoint->find(asked.fqn);
  return tensor == snapshot.tensor ? tensor : std::nullopt;
}

// Above this other tensors' statistics are dropped: 80 MB.
constexpr std::size_t kMaxTilesKept = 2'000'000;

void cache_tile_values(Snapshot& s, std::shared_ptr<const verbs::TileValues> values) {
  auto kept = s.tile_values == nullptr ? std::make_shared<TileValuesOf>()
                                       : std::make_shared<TileValuesOf>(*s.tile_values);
  TensorId tensor = values->tensor;
  kept->insert_or_assign(tensor, std::move(values));
  std::size_t tiles = 0;
  for (const auto& [of, each] : *kept) tiles += each->tiles.size();
  if (tiles > kMaxTilesKept)
    std::erase_if(*kept, [&](const auto& of) { return of.first != tensor; });
  s.tile_values = std::move(kept);
}

}  // namespace

Result<Change> run_tile_values(const Snapshot& before, const Command& command, Progress* progress) {
  auto tensor = requested_tensor(before, as<TileValuesCommand>(command));
  if (!tensor) return Change([](Snapshot&) {});
  const verbs::TileValues* known = tile_values_of(before, *tensor);
  auto values = std::make_shared<verbs::TileValues>(
      known != nullptr ? *known : verbs::unexamined_tiles(*before.checkpoint, *tensor));
  SHW_CHECK(verbs::read_further_tiles(*before.checkpoint, *values, progress));
  return Change([values](Snapshot& s) { cache_tile_values(s, values); });
}

Result<Change> run_tensor_numbers(const Snapshot& before, const Command&, Progress* progress) {
  if (before.checkpoint == nullptr) return fail(ErrorKind::kUsage, "nothing is open");
  SHW_TRY(auto counted, before.runs_over_ssh
                            ? verbs::numbers_over_ssh(*before.checkpoint, before.options, progress)
                            : verbs::compute_tensor_numbers(*before.checkpoint, progress));
  auto numbers = std::make_shared<const verbs::CheckpointNumbers>(std::move(counted));
  return Change([numbers](Snapshot& s) { s.numbers = numbers; });
}

bool has_more_results(const Snapshot& snapshot, const Command& command) {
  if (const auto* run = std::get_if<RunCommand>(&command))
    return snapshot.run != nullptr && !snapshot.run->is_complete() &&
           (run->folder.empty() || run->folder == snapshot.run->asked);
  if (std::holds_alternative<RunNumbersCommand>(command))
    return snapshot.run != nullptr &&
           verbs::count_uncounted_steps(*snapshot.run, snapshot.run_numbers.get()) != 0;
  if (const auto* asked = std::get_if<TileValuesCommand>(&command)) {
    auto tensor = requested_tensor(snapshot, *asked);
    const verbs::TileValues* known = tensor ? tile_values_of(snapshot, *tensor) : nullptr;
    return known != nullptr && !known->is_complete();
  }
  const auto* browse = std::get_if<BrowseCommand>(&command);
  return browse != nullptr && snapshot.folder != nullptr &&
         snapshot.folder->asked == browse->folder && !snapshot.folder->is_complete();
}

}  // namespace shw
