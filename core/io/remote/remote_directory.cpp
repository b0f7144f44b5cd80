#include "core/io/remote/remote_directory.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "core/base/progress.h"
#include "core/base/stop_requests.h"
#include "core/io/path_text.h"
#include "core/io/remote/block_cache.h"
#include "core/io/remote/blocks_in_flight.h"

namespace shw {
namespace {

// Maximum depth of subfolders, as for local folders.
constexpr std::ptrdiff_t kMaxRemoteDepth = 5;
constexpr std::size_t kMaxRemoteFiles = 2'000'000;
// Number of shard headers fetched concurrently: 32 of 64 KiB take 2 MiB.
constexpr std::size_t kHeadsAtOnce = 32;
// Limits of a prefetch: half of what the cache holds, and no more open files than servers allow.
constexpr std::uint64_t kMaxPrefetched = std::uint64_t{128} << 20;
constexpr std::size_t kRunsAtOnce = 256;
// Longer reads bypass the cache, because their bytes are rarely read twice.
constexpr std::uint64_t kMaxThroughCache = std::uint64_t{32} << 20;
constexpr std::uint64_t kMaxAhead = std::uint64_t{16} << 20;

BlockCache& remote_blocks() {
  static BlockCache cache;
  return cache;
}

std::uint64_t next_file_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

struct KnownFile {
  RemoteFile file;
  std::uint64_t id = 0;
};

struct RemoteState {
  RemoteState(std::string name, std::unique_ptr<RemoteFiles> of)
      : shown(std::move(name)), files(std::move(of)) {}
  std::string shown;
  std::unique_ptr<RemoteFiles> files;
  mutable std::mutex guard = {};                // guards the members below
  std::map<std::string, KnownFile> known = {};  // never erased: sources point into it
  std::set<std::string> folders = {};
  std::set<std::string> missing = {};
  std::optional<Error> lookup_error = {};
  std::mutex heads_guard = {};
  std::set<std::string> heads_of = {};  // folder and suffix of files of which one header was read
  BlocksInFlight in_flight = {};
};

// Fills `out` by concurrent requests.
Status read_by_requests(RemoteState& state, const RemoteFile& file, std::uint64_t offset,
                        std::span<std::byte> out) {
  std::vector<RemoteRange> ranges;
  while (!out.empty()) {
    const auto part = out.first(std::min<std::size_t>(out.size(), kRemoteRequest));
    ranges.push_back({&file, offset, part});
    offset += part.size();
    out = out.subspan(part.size());
  }
  return state.files->read(ranges);
}

// Blocks [first, end) of a file.
struct BlockRun {
  const KnownFile* known;
  std::uint64_t first, end;
  std::uint64_t offset() const { return first * kRemoteBlock; }
  std::uint64_t length() const { return std::min(known->file.size, end * kRemoteBlock) - offset(); }
};

// Reads the runs concurrently into the cache. A failure is reported when the affected file is read.
void fetch_runs(RemoteState& state, std::span<const BlockRun> runs) {
  std::vector<Bytes> bytes;
  std::vector<RemoteRange> ranges;
  bytes.reserve(runs.size());
  for (const BlockRun& run : runs) {
    bytes.emplace_back(run.length());
    ranges.push_back({&run.known->file, run.offset(), bytes.back()});
  }
  if (!state.files->read(ranges)) return;
  for (std::size_t i = 0; i < runs.size(); ++i)
    remote_blocks().put(runs[i].known->id, runs[i].first, bytes[i]);
}

// Number of bytes to read beyond a requested range: 0 at first, doubled each time a reader
// continues where its last read ended.
class ReadAhead {
 public:
  std::uint64_t bytes_to_read_ahead(std::uint64_t begin, std::uint64_t end) {
    std::lock_guard lock(guard_);
    for (Stream& stream : streams_) {
      if (stream.next != begin || begin == 0) continue;
      stream.ahead = std::min(kMaxAhead, std::max(2 * stream.ahead, end - begin));
      stream.next = end + stream.ahead;
      return stream.ahead;
    }
    streams_[oldest_++ % streams_.size()] = {end, kRemoteBlock};
    return 0;
  }

 private:
  struct Stream {
    std::uint64_t next = 0, ahead = 0;
  };
  std::mutex guard_;
  std::array<Stream, 8> streams_;
  std::size_t oldest_ = 0;
};

std::string prefetch_group(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t dot = path.rfind('.');
  return path.substr(0, slash == path.npos ? 0 : slash + 1) + "*" +
         (dot == path.npos ? std::string() : path.substr(dot));
}

class RemoteSource final : public ByteSource {
 public:
  RemoteSource(std::shared_ptr<RemoteState> state, const KnownFile& known)
      : state_(std::move(state)), known_(known), name_(known.file.path) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return known_.file.size; }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size() || out.size() > size() - offset)
      return fail(ErrorKind::kDamaged,
                  fmt::format("ends at byte {}, but {} bytes are needed from byte {}", size(),
                              out.size(), offset),
                  {name_, offset});
    if (out.empty()) return {};
    if (out.size() > kMaxThroughCache) return read_by_requests(*state_, known_.file, offset, out);
    std::uint64_t first = offset / kRemoteBlock;
    std::uint64_t end = (offset + out.size() - 1) / kRemoteBlock + 1;
    if (first == 0) fetch_heads();
    const StopSignal stop;
    while (!stop.is_set()) {
      while (first < end && copy_cached(first, offset, out)) ++first;
      while (first < end && copy_cached(end - 1, offset, out)) --end;
      if (first == end) return {};
      const auto claim = state_->in_flight.claim_or_wait(known_.id, first, end);
      // Another thread may have fetched the block between the cache lookup and the claim.
      if (claim == nullptr || remote_blocks().find(known_.id, first) != nullptr) continue;
      return fetch(*claim, first, end, offset, out);
    }
    return cancelled_error();
  }

 private:
  bool copy_cached(std::uint64_t block, std::uint64_t offset, std::span<std::byte> out) const {
    const auto bytes = remote_blocks().find(known_.id, block);
    if (bytes == nullptr) return false;
    copy_part(*bytes, block * kRemoteBlock, offset, out);
    return true;
  }

  // Copies the overlap of `bytes` (at file offset `at`) and the range [offset, offset +
  // out.size()).
  static void copy_part(BytesView bytes, std::uint64_t at, std::uint64_t offset,
                        std::span<std::byte> out) {
    const std::uint64_t begin = std::max(at, offset);
    const std::uint64_t end = std::min(at + bytes.size(), offset + out.size());
    if (begin >= end) return;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin - at), end - begin,
                out.begin() + static_cast<std::ptrdiff_t>(begin - offset));
  }

  Status fetch(BlocksInFlight::Claim& claim, std::uint64_t first, std::uint64_t end,
               std::uint64_t offset, std::span<std::byte> out) const {
    const std::uint64_t begin = first * kRemoteBlock;
    std::uint64_t until = std::min(size(), end * kRemoteBlock);
    const std::uint64_t wanted = std::min(size(), until + ahead_.bytes_to_read_ahead(begin, until));
    if (wanted > until)
      until = std::min(size(), claim.extend((wanted - 1) / kRemoteBlock + 1) * kRemoteBlock);
    Bytes bytes(until - begin);
    SHW_CHECK(read_by_requests(*state_, known_.file, begin, bytes));
    copy_part(bytes, begin, offset, out);
    remote_blocks().put(known_.id, first, bytes);
    return {};
  }

  // When a second file with the same suffix is read, fetches the headers of all: one after another,
  // 163 shards at 50 ms latency take 8 s.
  void fetch_heads() const {
    std::lock_guard one_at_a_time(state_->heads_guard);
    if (remote_blocks().find(known_.id, 0) != nullptr) return;
    const std::string kind = prefetch_group(name_);
    if (state_->heads_of.insert(kind).second) return;
    std::vector<BlockRun> runs;
    for (const KnownFile* known : following_files_of_group(kind)) runs.push_back({known, 0, 1});
    fetch_runs(*state_, runs);
  }

  std::vector<const KnownFile*> following_files_of_group(const std::string& kind) const {
    std::vector<const KnownFile*> files;
    std::lock_guard lock(state_->guard);
    for (auto at = state_->known.find(name_);
         at != state_->known.end() && files.size() < kHeadsAtOnce; ++at) {
      const KnownFile& known = at->second;
      if (known.file.kind != EntryKind::kFile || known.file.size == 0) continue;
      if (prefetch_group(at->first) == kind && remote_blocks().find(known.id, 0) == nullptr)
        files.push_back(&known);
    }
    return files;
  }

  std::shared_ptr<RemoteState> state_;
  const KnownFile& known_;
  std::string name_;
  mutable ReadAhead ahead_;
};

class ListedDirectory final : public RemoteDirectory {
 public:
  ListedDirectory(std::string shown, std::unique_ptr<RemoteFiles> files)
      : state_(std::make_shared<RemoteState>(std::move(shown), std::move(files))) {}
  const std::string& name() const override { return state_->shown; }

  Status look() {
    SHW_TRY(std::vector<RemoteFile> files, state_->files->list(kMaxRemoteFiles));
    std::lock_guard lock(state_->guard);
    for (RemoteFile& file : files) {
      if (!is_safe_relative_path(file.path) || file.path.find(kPartialMark) != file.path.npos)
        continue;
      if (std::count(file.path.begin(), file.path.end(), '/') >= kMaxRemoteDepth) continue;
      add(std::move(file));
    }
    return {};
  }

  Result<std::vector<Entry>> list(std::size_t limit) const override {
    std::lock_guard lock(state_->guard);
    std::vector<Entry> entries;
    for (const auto& [path, known] : state_->known) {
      // A folder is listed as an entry only if no file in it is known.
      if (known.file.kind == EntryKind::kDirectory && state_->folders.contains(path)) continue;
      if (entries.size() == limit)
        return fail(ErrorKind::kUnsupported, fmt::format("more than {} files", limit),
                    {state_->shown});
      entries.push_back(entry_of(known));
    }
    return entries;
  }

  Entry stat(const std::string& path) const override {
    if (!is_safe_relative_path(path)) return {path};
    const auto known = find_known(path);
    if (known && *known != nullptr) return entry_of(**known);
    std::lock_guard lock(state_->guard);
    if (!known && !state_->lookup_error) state_->lookup_error = known.error();
    const bool is_folder = state_->folders.contains(path);
    return {path, is_folder ? EntryKind::kDirectory : EntryKind::kMissing};
  }

  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    if (!is_safe_relative_path(path))
      return fail(ErrorKind::kDamaged, "the path points outside the checkpoint folder", {path});
    SHW_TRY(const KnownFile* known, find_known(path));
    if (known == nullptr)
      return fail(ErrorKind::kIo, "cannot open it: there is no such file", {path});
    if (known->file.kind == EntryKind::kDanglingLink)
      return fail(ErrorKind::kIo, "is a broken link", {path});
    if (known->file.kind != EntryKind::kFile)
      return fail(ErrorKind::kIo, "is not a regular file", {path});
    return std::make_shared<RemoteSource>(state_, *known);
  }

  void prefetch(std::span<const PrefetchRange> ranges) const override {
    std::vector<BlockRun> runs;
    std::uint64_t together = 0;
    for (const PrefetchRange& range : ranges) {
      const auto run = unread_run(range);
      if (!run || together + run->length() > kMaxPrefetched) continue;
      together += run->length();
      runs.push_back(*run);
    }
    for (std::span<const BlockRun> left = runs; !left.empty();) {
      const auto now = left.first(std::min(left.size(), kRunsAtOnce));
      fetch_runs(*state_, now);
      left = left.subspan(now.size());
    }
  }

  Status take_lookup_error() const override {
    std::lock_guard lock(state_->guard);
    if (!state_->lookup_error) return {};
    return tl::unexpected<Error>(*std::exchange(state_->lookup_error, std::nullopt));
  }

 private:
  static Entry entry_of(const KnownFile& known) {
    const RemoteFile& file = known.file;
    return {file.path, file.kind, file.size, file.modified_ns, file.size, 0};
  }

  // The blocks of a range from the first that is not cached on; nullopt if there are none.
  std::optional<BlockRun> unread_run(const PrefetchRange& range) const {
    if (!is_safe_relative_path(range.path)) return std::nullopt;
    const KnownFile* known = find_known(range.path).value_or(nullptr);
    if (known == nullptr || known->file.kind != EntryKind::kFile) return std::nullopt;
    const std::uint64_t size = known->file.size;
    if (range.offset >= size || range.length == 0) return std::nullopt;
    const std::uint64_t last = range.offset + std::min(range.length, size - range.offset) - 1;
    BlockRun run{known, range.offset / kRemoteBlock, last / kRemoteBlock + 1};
    while (run.first < run.end && remote_blocks().find(known->id, run.first) != nullptr)
      ++run.first;
    return run.first == run.end ? std::nullopt : std::optional(run);
  }

  // The caller must hold `guard`.
  const KnownFile* add(RemoteFile file) const {
    for (std::size_t at = file.path.find('/'); at != file.path.npos;
         at = file.path.find('/', at + 1))
      state_->folders.insert(file.path.substr(0, at));
    const std::uint64_t id = next_file_id();
    if (file.head.size() >= std::min(file.size, kRemoteBlock))
      remote_blocks().put(id, 0, BytesView(file.head).first(std::min(file.size, kRemoteBlock)));
    file.head = {};
    const std::string path = file.path;
    return &state_->known.try_emplace(path, KnownFile{std::move(file), id}).first->second;
  }

  // Returns null if the file is missing.
  Result<const KnownFile*> find_known(const std::string& path) const {
    {
      std::lock_guard lock(state_->guard);
      auto found = state_->known.find(path);
      if (found != state_->known.end()) return &found->second;
      if (state_->files->lists_all() || state_->missing.contains(path)) return nullptr;
    }
    auto found = state_->files->find(path);
    std::lock_guard lock(state_->guard);
    if (!found) return tl::unexpected<Error>(std::move(found).error());
    if (*found) return add(std::move(**found));
    state_->missing.insert(path);
    return nullptr;
  }

  std::shared_ptr<RemoteState> state_;
};

}  // namespace

Result<std::shared_ptr<const RemoteDirectory>> remote_directory(
    std::string shown, std::unique_ptr<RemoteFiles> files) {
  auto directory = std::make_shared<ListedDirectory>(std::move(shown), std::move(files));
  SHW_CHECK(directory->look());
  return directory;
}

}  // namespace shw
