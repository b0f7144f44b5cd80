#include "core/exec/partial_folder.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "core/formats/non_item_bytes.h"
#include "core/io/owner.h"
#include "core/io/path_text.h"
#include "core/io/permissions.h"

namespace shw {
namespace {

void add(RunningHash& hash, std::uint64_t number) {
  hash.add(std::as_bytes(std::span(&number, 1)));
}
void add(RunningHash& hash, std::string_view text) {
  add(hash, text.size());
  hash.add(std::as_bytes(std::span(text)));
}

std::string layout_hash(const LaidOut& laid_out) {
  RunningHash hash;
  add(hash, laid_out.files.size());
  for (const LaidOut::File& file : laid_out.files) {
    add(hash, file.path);
    add(hash, file.size);
  }
  add(hash, laid_out.made.size());
  for (const WrittenTile& made : laid_out.made) {
    for (std::uint64_t number :
         {std::uint64_t{made.tensor}, std::uint64_t{made.tile}, std::uint64_t{made.file},
          made.offset, made.length, made.item_offset, made.item_length})
      add(hash, number);
  }
  add(hash, laid_out.before.size());
  for (const OutputBytes& bytes : laid_out.before) {
    add(hash, bytes.file);
    add(hash, bytes.offset);
    add(hash, bytes.bytes.size());
    hash.add(bytes.bytes);
  }
  add(hash, laid_out.copies.size());
  for (const OutputCopy& copy : laid_out.copies) {
    for (std::uint64_t number : {std::uint64_t{copy.file}, copy.offset, copy.begin, copy.length})
      add(hash, number);
    add(hash, copy.from);
  }
  for (const std::string& path : laid_out.replaced) add(hash, path);
  return hash.text();
}

tl::unexpected<Error> different_run_error(const std::string& what) {
  return fail(ErrorKind::kDamaged, "the unfinished run there is a different one: " + what,
              {kJournalFile}, "remove it with `resume --roll-back`, and start from scratch");
}

using FilesByPath = std::map<std::string_view, const Entry*>;
FilesByPath by_path(const std::vector<Entry>& files) {
  FilesByPath found;
  for (const Entry& file : files) found[file.path] = &file;
  return found;
}

bool is_same(const Entry& a, const Entry& b) {
  return a.kind == b.kind && a.size == b.size && a.modified_ns == b.modified_ns;
}

std::string file_name_in_path(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Expected size and number of chunks of a file, by path.
struct Expected {
  std::uint64_t size = 0;
  std::size_t tiles = 0;
};
std::map<std::string, Expected> expected_files(const FolderRun& run) {
  std::map<std::string, Expected> expected;
  for (const Entry& entry : run.copied) expected[entry.path] = {entry.size, 0};
  for (const LaidOut::File& file : run.laid_out.files) expected[file.path] = {file.size, 0};
  for (const WrittenTile& made : run.laid_out.made)
    ++expected[run.laid_out.files[made.file].path].tiles;
  return expected;
}

// Paths of finished files that were copied whole and whose bytes outside of items differ from the
// source. They are copied again.
Result<std::set<std::string>> files_unlike_their_source(const FolderRun& run, const Directory& made,
                                                        const std::vector<DurableFile>& noted) {
  std::set<std::string> copied, others;
  for (const Entry& entry : run.copied) copied.insert(entry.path);
  if (copied.empty() || noted.empty()) return others;
  const Checkpoint& source = *run.outputs.source;
  const NonItemBytes non_item_bytes(source);
  for (const DurableFile& file : noted) {
    if (!copied.contains(file.path)) continue;
    SHW_TRY(auto before, source.directory()->open(file.path));
    auto now = made.open(file.path);
    const std::vector<ByteRange> rest = non_item_bytes.of(file.path, before->size());
    SHW_TRY(std::string wanted, hash_ranges(*before, rest, nullptr));
    auto there = now ? hash_ranges(**now, rest, nullptr) : Result<std::string>(std::string());
    if (!there || *there != wanted) others.insert(file.path);
  }
  return others;
}

// Files that the journal lists as durable and that still exist.
Result<std::vector<DurableFile>> journaled_files(const Store& store, const std::string& partial) {
  SHW_TRY(auto folder, store.read_folder(partial));
  if (folder->stat(kJournalFile).kind == EntryKind::kMissing) return std::vector<DurableFile>{};
  SHW_TRY(JournalText journal, read_journal(*folder));
  std::erase_if(journal.files, [&](const DurableFile& file) {
    return folder->stat(file.path).kind != EntryKind::kFile;
  });
  return std::move(journal.files);
}

}  // namespace

Result<JournalHeader> header_of(const Store& store, const FolderRun& run) {
  JournalHeader header{run.out, run.request, to_hex(hash_of(run.program)),
                       layout_hash(run.laid_out), std::vector<JournalInput>(run.inputs.size())};
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    if (run.inputs[i]->directory() == nullptr) continue;
    SHW_TRY(header.inputs[i].folder, store.resolved(run.inputs[i]->directory()->name()));
  }
  for (const WatchedFile& watched : run.watched) {
    const auto& directory = run.inputs[watched.input]->directory();
    const bool is_made = directory != nullptr && directory->is_made(watched.entry.path);
    if (watched.entry.kind == EntryKind::kFile && !is_made)
      header.inputs[watched.input].files.push_back(watched.entry);
  }
  // An input that is computed while reading depends on files of other folders.
  for (const Checkpoint* input : run.inputs) {
    if (input->directory() == nullptr) continue;
    for (FilesOfFolder& one : input->directory()->made_of()) {
      SHW_TRY(std::string folder, store.resolved(one.folder));
      header.inputs.push_back({std::move(folder), std::move(one.files)});
    }
  }
  return header;
}

std::vector<std::string> partial_folders(const Store& store, const std::string& out) {
  std::string clean = without_trailing_slashes(out);
  std::size_t name_at = clean.rfind('/') + 1;  // 0 if there is no slash
  std::string before = clean.substr(0, name_at), begin = clean.substr(name_at) + kPartialMark;
  std::vector<std::string> found;
  for (const std::string& name : store.names(parent_of(clean))) {
    if (name.starts_with(begin)) found.push_back(before + name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Status check_is_own_partial(const Store& store, const std::string& partial) {
  return check_owned_by_this_user(store, partial, {kJournalFile, kOwnerFile});
}

std::string final_name_of_partial(const std::string& partial) {
  return partial.substr(0, partial.rfind(kPartialMark));
}

std::optional<std::string> first_changed_input(const Store& store, const JournalHeader& header) {
  for (const JournalInput& input : header.inputs) {
    if (input.files.empty()) continue;
    auto folder = store.read_folder(input.folder);
    if (!folder) return input.folder;
    for (const Entry& file : input.files) {
      if (!is_same(file, (*folder)->stat(file.path))) return input.folder + "/" + file.path;
    }
  }
  return std::nullopt;
}

Status check_same_run(const JournalHeader& begun, const JournalHeader& now) {
  if (begun.program != now.program) return different_run_error("other bytes go to other places");
  if (begun.laid_out != now.laid_out)
    return different_run_error("its files are laid out in another way");
  if (begun.inputs.size() != now.inputs.size())
    return different_run_error("it reads other checkpoints");
  for (std::size_t i = 0; i < begun.inputs.size(); ++i) {
    if (begun.inputs[i].folder != now.inputs[i].folder)
      return different_run_error("it reads " + begun.inputs[i].folder);
    FilesByPath files = by_path(now.inputs[i].files);
    for (const Entry& file : begun.inputs[i].files) {
      auto found = files.find(file.path);
      if (found != files.end() && is_same(file, *found->second)) continue;
      return fail(ErrorKind::kDamaged,
                  "has changed since the run began, so the partial result is outdated",
                  {begun.inputs[i].folder + "/" + file.path},
                  "remove it with `resume --roll-back`, and start from scratch");
    }
  }
  return {};
}

bool has_new_change_time(const JournalHeader& begun, const JournalHeader& now) {
  for (std::size_t i = 0; i < std::min(begun.inputs.size(), now.inputs.size()); ++i) {
    FilesByPath files = by_path(now.inputs[i].files);
    for (const Entry& file : begun.inputs[i].files) {
      auto found = files.find(file.path);
      const bool known = found != files.end() && file.changed_ns != 0;
      if (known && found->second->changed_ns != file.changed_ns) return true;
    }
  }
  return false;
}

std::optional<ResumableFolder> find_resumable_folder(Store& store, const JournalHeader& header,
                                                     const std::string& out) {
  std::optional<ResumableFolder> best;
  for (const std::string& path : partial_folders(store, out)) {
    if (!check_is_own_partial(store, path)) continue;
    if (owner_state(store, path) != OwnerState::kDeadProcess) continue;
    auto folder = store.read_folder(path);
    if (!folder) continue;
    auto journal = read_journal(**folder);
    bool usable = journal && check_same_run(journal->header, header);
    if (usable && (!best || journal->files.size() > best->journal.files.size()))
      best = ResumableFolder{path, std::move(*journal)};
  }
  std::string own = file_name_in_path(without_trailing_slashes(out)) + kPartialMark;
  delete_abandoned_directories(store, out, kPartialMark, [&](const std::string& found) {
    if (best && file_name_in_path(found) == file_name_in_path(best->path)) return true;
    if (file_name_in_path(found).starts_with(own)) return false;
    auto folder = store.read_folder(found);
    return folder && (*folder)->stat(kJournalFile).kind == EntryKind::kFile;
  });
  return best;
}

Result<std::vector<DurableFile>> keep_resumable_files(const Store& store, WritableDirectory& folder,
                                                      const FolderRun& run,
                                                      const std::vector<DurableFile>& noted) {
  SHW_TRY(auto now, store.read_folder(folder.path()));
  SHW_TRY(std::set<std::string> others, files_unlike_their_source(run, *now, noted));
  std::map<std::string, Expected> expected = expected_files(run);
  std::map<std::string, DurableFile> kept;
  for (const DurableFile& file : noted) {
    auto wanted = expected.find(file.path);
    bool usable = wanted != expected.end() && wanted->second.size == file.size &&
                  wanted->second.tiles == file.elements.size() && !others.contains(file.path);
    Entry there = now->stat(file.path);
    if (usable && there.kind == EntryKind::kFile && there.size == file.size)
      kept.insert_or_assign(file.path, file);
  }
  SHW_TRY(std::vector<Entry> entries, now->list());
  for (const Entry& entry : entries) {
    if (entry.path == kOwnerFile || entry.path == kJournalFile) continue;
    if (!kept.contains(entry.path)) SHW_CHECK(folder.remove(entry.path));
  }
  std::vector<DurableFile> files;
  for (auto& [path, file] : kept) {
    folder.keep(path);
    files.push_back(std::move(file));
  }
  return files;
}

bool has_durable_files(const Store& store, const std::string& partial) {
  auto noted = journaled_files(store, partial);
  return noted ? !noted->empty() : noted.error().kind == ErrorKind::kIo;
}

void delete_unfinished_folder(Store& store, const std::string& partial) {
  auto noted = journaled_files(store, partial);
  auto folder = store.edit_folder(partial);
  auto now = store.read_folder(partial);
  auto entries = now ? (*now)->list() : Result<std::vector<Entry>>(std::vector<Entry>{});
  if (!noted || !folder || !entries) return;
  std::set<std::string> kept = {kOwnerFile, kJournalFile};
  for (const DurableFile& file : *noted) kept.insert(file.path);
  for (const Entry& entry : *entries) {
    if (!kept.contains(entry.path)) static_cast<void>((*folder)->remove(entry.path));
  }
}

void add_journaled_checksums(const LaidOut& laid_out, const std::vector<DurableFile>& kept,
                             std::vector<std::optional<ElementSums>>& made) {
  std::map<std::string_view, const DurableFile*> noted;
  for (const DurableFile& file : kept) noted[file.path] = &file;
  std::vector<const DurableFile*> of_file;
  for (const LaidOut::File& file : laid_out.files) {
    auto found = noted.find(file.path);
    of_file.push_back(found == noted.end() ? nullptr : found->second);
  }
  std::vector<std::uint32_t> tiles;
  for (std::uint32_t i = 0; i < laid_out.made.size(); ++i) {
    if (of_file[laid_out.made[i].file] != nullptr) tiles.push_back(i);
  }
  // The order of parts within a file (file_parts.cpp).
  std::stable_sort(tiles.begin(), tiles.end(), [&](std::uint32_t a, std::uint32_t b) {
    const WrittenTile &one = laid_out.made[a], &other = laid_out.made[b];
    return std::tuple(one.file, one.offset, one.length) <
           std::tuple(other.file, other.offset, other.length);
  });
  for (std::size_t i = 0, in_file = 0; i < tiles.size(); ++i) {
    const std::uint32_t file = laid_out.made[tiles[i]].file;
    in_file = i != 0 && laid_out.made[tiles[i - 1]].file == file ? in_file + 1 : 0;
    const std::vector<ElementSums>& elements = of_file[file]->elements;
    if (in_file < elements.size()) made[tiles[i]] = elements[in_file];
  }
}

}  // namespace shw
