#include "core/verbs/values/bytes_window.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/checked.h"
#include "core/base/words.h"
#include "core/formats/items/items.h"
#include "core/tensor/element_text.h"

namespace shw::verbs {
namespace {

constexpr std::size_t kMaxListed = 256;

std::string name_of(const Checkpoint& checkpoint, ChunkId chunk) {
  Box box = box_of(checkpoint, chunk);
  std::string name(checkpoint.fqn(checkpoint.tensor_of(chunk)));
  return box.sizes.empty() ? name : name + " " + to_text(box);
}

// Finds the record of a file that contains a byte, and the neighbouring records.
struct Neighbours {
  std::optional<BytesRecord> here;
  std::optional<std::uint64_t> before, after;
};

class RecordSearch {
 public:
  RecordSearch(const Checkpoint& checkpoint, const std::string& path, std::uint64_t at,
               std::optional<ChunkId> preferred)
      : checkpoint_(checkpoint), path_(path), at_(at), preferred_(preferred) {}

  Result<Neighbours> find_neighbours(Progress* progress) {
    for (std::uint32_t c = 0; c < checkpoint_.chunk_count(); ++c) {
      if ((c & 0xFFFFu) == 0 && is_cancelled(progress)) return cancelled_error();
      if (auto item = checkpoint_.item(ChunkId{c}))
        update_neighbours_with(*item, ChunkId{c}, nullptr);
    }
    for (const NonTensorEntry& object : checkpoint_.objects()) {
      if (object.item) update_neighbours_with(*object.item, std::nullopt, &object.fqn);
    }
    if (best_ && best_->chunk) best_->name = name_of(checkpoint_, *best_->chunk);
    // `best_` is the record that contains the selected byte. If the selected byte is not the
    // record's first, "previous" goes to the record's begin.
    found_.here = std::move(best_);
    return found_;
  }

 private:
  void update_neighbours_with(const ItemPlace& place, std::optional<ChunkId> chunk,
                              const std::string* object) {
    if (place.file == FileId::kNone || place.offset < 0 ||
        checkpoint_.file(place.file).path != path_)
      return;
    auto begin = static_cast<std::uint64_t>(place.offset);
    if (begin < at_ && (!found_.before || begin > *found_.before)) found_.before = begin;
    if (begin > at_ && (!found_.after || begin < *found_.after)) found_.after = begin;
    bool holds =
        begin <= at_ && place.length > 0 && at_ - begin < static_cast<std::uint64_t>(place.length);
    bool wanted = chunk && preferred_ == chunk;
    if (wanted || (holds && !best_)) best_ = BytesRecord{object ? *object : "", chunk, place};
  }

  const Checkpoint& checkpoint_;
  const std::string& path_;
  std::uint64_t at_;
  std::optional<ChunkId> preferred_;
  std::optional<BytesRecord> best_;
  Neighbours found_;
};

// The part of a record inside the file; adds a message if some is missing.
FileRange range_of(const ItemPlace& place, std::uint64_t size, std::vector<std::string>& wrong) {
  if (place.offset < 0 || place.length < 0) {
    wrong.push_back(fmt::format("recorded at byte {} with {} bytes: neither can be negative",
                                place.offset, place.length));
    return {};
  }
  auto offset = static_cast<std::uint64_t>(place.offset);
  auto length = static_cast<std::uint64_t>(place.length);
  if (offset >= size && length > 0) {
    wrong.push_back(
        fmt::format("recorded at byte {}, but the file ends at byte {}: all of it is "
                    "missing",
                    human_count(offset), human_count(size)));
    return {std::min(offset, size), 0};
  }
  if (length > size - offset) {
    std::uint64_t there = size - offset;
    wrong.push_back(
        fmt::format("truncated: the file ends at byte {}, {} of its {} bytes are missing",
                    human_count(size), human_count(length - there), human_count(length)));
    length = there;
  }
  return {offset, length};
}

void add_values(const Checkpoint& checkpoint, ChunkId chunk, FileRange range,
                const ByteParts& parts, BytesWindow& window) {
  window.dtype = checkpoint.dtype(checkpoint.tensor_of(chunk));
  if (!checkpoint.transforms(chunk).empty()) {
    window.no_values =
        "compressed (" + checkpoint.transforms(chunk)[0] + "): the bytes are not the values";
    return;
  }
  auto header = read_item_header(checkpoint, chunk);
  if (header && header->compressed) {
    window.no_values = "compressed: the bytes are not the values";
    return;
  }
  if (header) {
    window.dtype = header->dtype;
    window.big_endian = header->big_endian;
    window.values_first = header->payload_offset;
    window.values_last = header->payload_offset + header->payload_length;
    if (header->storage_offset == 0 && same(header->strides, row_major_strides(header->sizes)) &&
        same(header->sizes, checkpoint.sizes(chunk))) {
      window.offsets = copy_of(checkpoint.offsets(chunk));
      window.sizes = header->sizes;
    }
    if (header->payload_length == 0) window.no_values = "empty: it has no element";
    return;
  }
  window.wrong.push_back(header.error().message);
  // Best guess without a valid archive: its last payload, or everything there is.
  window.values_first = range.offset;
  window.values_last = range.offset + range.length;
  for (const BytePart& part : parts.parts) {
    bool storage = part.kind == PartKind::kPayload && part.name.find("/data/") != part.name.npos;
    if (!storage) continue;
    window.values_first = part.first;
    window.values_last = part.last;
  }
  if (parts.is_archive && window.values_first == range.offset) {
    window.values_last = window.values_first;
    window.no_values = "no payload was found in it";
  }
}

Status add_parts(const Checkpoint& checkpoint, const ByteSource& source, BytesWindow& window) {
  std::uint64_t end = window.first + window.bytes.size();
  ByteParts parts;
  FileRange range{0, source.size()};
  if (window.record) range = range_of(window.record->place, source.size(), window.wrong);
  SHW_TRY(parts, byte_parts(source, range));
  // Records without a header may be part of an archive as large as the file.
  if (window.record && !parts.is_archive && range.length > 0) {
    SHW_TRY(ByteParts file, byte_parts(source, {0, source.size()}));
    if ((file.is_archive && !file.damage) || file.parts.size() > 1) {
      window.all = file.parts;
      if (!file.is_archive) window.all.pop_back();  // the header, then this record by name
    }
    for (BytePart& part : parts.parts) part.name = "payload of " + window.record->name;
    if (!file.is_archive)
      window.all.insert(window.all.end(), parts.parts.begin(), parts.parts.end());
  } else {
    window.all = parts.parts;
  }
  if (parts.damage) window.wrong.push_back(parts.damage->message);
  for (const BytePart& part : window.all) {
    if (part.first < end && part.last > window.first) window.parts.push_back(part);
  }
  if (window.all.size() > kMaxListed) window.all = window.parts;
  if (window.record && window.record->chunk)
    add_values(checkpoint, *window.record->chunk, range, parts, window);
  return {};
}

std::size_t element_bytes(const BytesWindow& window) {
  return window.values_first < window.values_last ? size_of(window.dtype) : 0;
}

// Index of the element that begins at a byte; nullopt if there is none or it is cut off by the
// window.
std::optional<std::uint64_t> element_at(const BytesWindow& window, std::uint64_t offset) {
  std::uint64_t size = element_bytes(window);
  if (size == 0 || offset < window.values_first || offset < window.first) return std::nullopt;
  if ((offset - window.values_first) % size != 0) return std::nullopt;
  if (offset >= window.values_last || window.values_last - offset < size) return std::nullopt;
  std::uint64_t in = offset - window.first;
  if (in >= window.bytes.size() || window.bytes.size() - in < size) return std::nullopt;
  return (offset - window.values_first) / size;
}

}  // namespace

Result<BytesWindow> bytes_at(const Checkpoint& checkpoint, const std::string& path,
                             std::uint64_t offset, std::optional<ChunkId> preferred,
                             Progress* progress) {
  if (checkpoint.directory() == nullptr)
    return fail(ErrorKind::kIo, "the checkpoint has no directory to read from", {path});
  SHW_TRY(auto source, checkpoint.directory()->open(path));
  BytesWindow window;
  window.path = path;
  window.file_size = source->size();
  window.at = std::min(offset, source->size() > 0 ? source->size() - 1 : 0);
  window.first = window.at / kBytesPerRow * kBytesPerRow;
  SHW_TRY(window.bytes,
          read_bytes(*source, window.first, std::min(kMaxWindow, source->size() - window.first)));
  RecordSearch search(checkpoint, path, window.at, preferred);
  SHW_TRY(Neighbours near, search.find_neighbours(progress));
  window.record = std::move(near.here);
  window.previous = near.before;
  window.next = near.after;
  SHW_CHECK(add_parts(checkpoint, *source, window));
  return window;
}

Result<BytesWindow> bytes_of(const Checkpoint& checkpoint, ChunkId chunk, Progress* progress) {
  auto item = checkpoint.item(chunk);
  if (!item || item->file == FileId::kNone)
    return fail(ErrorKind::kDamaged, "no storage record says where its bytes are",
                {"", std::nullopt, name_of(checkpoint, chunk)});
  std::uint64_t at = item->offset < 0 ? 0 : static_cast<std::uint64_t>(item->offset);
  return bytes_at(checkpoint, checkpoint.file(item->file).path, at, chunk, progress);
}

std::string value_at(const BytesWindow& window, std::uint64_t offset) {
  auto element = element_at(window, offset);
  if (!element) return {};
  std::size_t size = size_of(window.dtype);
  auto from = window.bytes.begin() + static_cast<std::ptrdiff_t>(offset - window.first);
  Bytes bytes(from, from + static_cast<std::ptrdiff_t>(size));
  // Complex numbers consist of two numbers, each with its own byte order.
  bool two = name(window.dtype).find("complex") != std::string_view::npos;
  auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(two ? size / 2 : size);
  if (window.big_endian) {
    std::reverse(bytes.begin(), middle);
    std::reverse(middle, bytes.end());
  }
  return element_text(window.dtype, bytes, 0);
}

std::string index_at(const BytesWindow& window, std::uint64_t offset) {
  auto element = element_at(window, offset);
  auto count = volume(window.sizes);
  if (!element || !count || window.sizes.empty() || window.offsets.size() != window.sizes.size() ||
      *element >= static_cast<std::uint64_t>(*count))
    return {};
  Extents index = window.offsets;
  auto rest = static_cast<std::int64_t>(*element);
  for (std::size_t d = window.sizes.size(); d-- > 0;) {
    index[d] += rest % window.sizes[d];
    rest /= window.sizes[d];
  }
  return shw::to_text(ExtentsView(index));
}

std::string hex_text(const BytesWindow& window, std::uint64_t first, std::uint64_t last) {
  std::string text;
  std::uint64_t end = window.first + window.bytes.size();
  for (std::uint64_t row = std::max(first, window.first) / kBytesPerRow * kBytesPerRow;
       row < std::min(last, end); row += kBytesPerRow) {
    text += fmt::format("{:08x} ", row);
    std::string letters;
    for (std::uint64_t b = row; b < row + kBytesPerRow; ++b) {
      if (b % 8 == 0) text += " ";
      if (b < window.first || b >= end) {
        text += "   ";
        continue;
      }
      auto byte = std::to_integer<unsigned>(window.bytes[b - window.first]);
      text += fmt::format("{:02x} ", byte);
      letters += byte >= 0x20 && byte < 0x7F ? static_cast<char>(byte) : '.';
    }
    text += " |" + letters + "|\n";
  }
  return text;
}

std::optional<std::uint64_t> parse_offset(std::string_view text, std::uint64_t from) {
  char sign = 0;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    sign = text[0];
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  }
  std::string digits;
  for (char c : text) {
    if (c != ',' && c != '_' && c != '\'') digits += c;
  }
  std::uint64_t value = 0;
  auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (code != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  if (sign == '+') return checked_add(from, value);
  if (sign == '-') return from - std::min(from, value);
  return value;
}

}  // namespace shw::verbs
