#include "core/formats/common/safetensors_header.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>

#include "core/base/cancellable_range.h"
#include "core/base/checked.h"
#include "core/base/destroy_in_background.h"
#include "core/base/little_endian.h"
#include "core/formats/common/byte_order_mark.h"
#include "core/formats/common/first_bytes.h"
#include "core/formats/common/lfs_pointer.h"

namespace shw {
namespace {

using Json = nlohmann::json;

// Limits nesting in fields that are skipped.
constexpr int kMaxNesting = 64;

// Reads JSON by events instead of a tree, so that headers of 100 MB only need memory for tensors.
// `depth` is the number of open objects and arrays.
class Events : public nlohmann::json_sax<Json> {
 public:
  const std::string& message() const { return message_; }
  std::size_t position() const { return position_; }

  bool null() override { return value(Kind::kNull, 0, nullptr); }
  bool boolean(bool) override { return value(Kind::kOther, 0, nullptr); }
  // "-0" arrives here; Rust's JSON parses it as a float and rejects it.
  bool number_integer(std::int64_t v) override {
    return value(v == 0 ? Kind::kOther : Kind::kInteger, v, nullptr);
  }
  bool number_unsigned(std::uint64_t v) override {
    auto fits = narrow<std::int64_t>(v);
    return fits ? value(Kind::kInteger, *fits, nullptr) : value(Kind::kOther, 0, nullptr);
  }
  bool number_float(double, const std::string&) override { return value(Kind::kOther, 0, nullptr); }
  bool string(std::string& text) override { return value(Kind::kText, 0, &text); }
  bool binary(Json::binary_t&) override { return value(Kind::kOther, 0, nullptr); }
  bool start_object(std::size_t) override { return value(Kind::kObject, 0, nullptr) && open(); }
  bool start_array(std::size_t) override { return value(Kind::kArray, 0, nullptr) && open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position_ = position;
    std::string_view text = error.what();
    // Removes the prefix of "[json.exception.parse_error.101] parse error at line 1, column 3:
    // syntax error while ...".
    std::size_t colon = text.find(": ");
    message_ = "is not JSON: " + std::string(colon == text.npos ? text : text.substr(colon + 2));
    return false;
  }

 protected:
  enum class Kind { kNull, kInteger, kText, kObject, kArray, kOther };
  // Start of a container, or a complete other value.
  virtual bool value(Kind kind, std::int64_t number, std::string* text) = 0;
  virtual bool closed() = 0;
  int depth() const { return depth_; }
  bool is_refused() const { return !message_.empty(); }
  bool refuse(std::string message) {
    if (message_.empty()) message_ = std::move(message);
    return false;
  }

 private:
  bool open() { return ++depth_ <= kMaxNesting || refuse("is nested too deeply"); }
  bool close() {
    --depth_;
    return closed();
  }
  int depth_ = 0;
  std::string message_;
  std::size_t position_ = 0;
};

class HeaderEvents final : public Events {
 public:
  HeaderEvents(SafetensorsHeader& header, const Progress* progress)
      : header_(header), progress_(progress) {}
  // Moved out because they are slow to destroy.
  auto release_names() { return std::move(names_); }

  bool key(std::string& text) override {
    if (depth() == 1) {
      if (is_cancelled(progress_)) return false;
      if (!names_.insert(text).second) repeat(text);
      if (is_refused()) return false;
      name_ = text;
      entry_ = {};
      seen_ = 0;
      extents_.clear();
    } else if (depth() == 2) {
      field_ = text;
      extents_.clear();
    }
    return true;
  }

 private:
  enum : unsigned { kDtype = 1, kShape = 2, kOffsets = 4, kAll = 7 };

  bool is_in_metadata() const { return name_ == kSafetensorsMetadata; }
  std::string where() const { return "for \"" + name_ + "\" "; }

  bool value(Kind kind, std::int64_t number, std::string* text) override {
    switch (depth()) {
      case 0:
        return kind == Kind::kObject || refuse("is not a JSON object");
      case 1:
        if (kind == Kind::kObject || (is_in_metadata() && kind == Kind::kNull)) return true;
        return refuse("has " + where() + "something that is not an object");
      case 2:
        return is_in_metadata() ? metadata_value(kind, text) : field_value(kind, text);
      case 3:
        return item(kind, number);
      default:
        return true;
    }
  }

  void repeat(const std::string& name) {
    if (name == kSafetensorsMetadata)
      refuse("has the name \"" + name + "\" twice");
    else
      header_.repeated.push_back(name);
  }

  bool metadata_value(Kind kind, std::string* text) {
    if (kind != Kind::kText) return refuse("has metadata \"" + field_ + "\" that is not text");
    for (auto& [key, said] : header_.metadata) {
      if (key != field_) continue;
      header_.repeated.push_back(field_ + " of " + name_);
      said = std::move(*text);
      return true;
    }
    // Limited, because the search above is linear.
    if (header_.metadata.size() == 4096) return refuse("has more than 4,096 metadata entries");
    header_.metadata.emplace_back(field_, std::move(*text));
    return true;
  }

  bool field_value(Kind kind, std::string* text) {
    if (field_ == "dtype") {
      if (kind != Kind::kText) return refuse("has " + where() + "a dtype that is not text");
      entry_.dtype_text = std::move(*text);
      return once(kDtype);
    }
    if (field_ == "shape") return list(kind) && once(kShape);
    if (field_ == "data_offsets") return list(kind) && once(kOffsets);
    return true;
  }
  bool list(Kind kind) {
    return kind == Kind::kArray || refuse("has " + where() + "a " + field_ + " that is not a list");
  }
  bool once(unsigned bit) {
    if ((seen_ & bit) != 0) return refuse("has " + where() + "the field " + field_ + " twice");
    seen_ |= bit;
    return true;
  }

  bool item(Kind kind, std::int64_t number) {
    if (field_ != "shape" && field_ != "data_offsets") return true;
    if (kind != Kind::kInteger || number < 0)
      return refuse("has " + where() + "a " + field_ + " that holds no number from 0 to 2^63 - 1");
    if (extents_.size() == kMaxDims) return refuse("has " + where() + "more than 64 dimensions");
    extents_.push_back(number);
    return true;
  }

  bool closed() override {
    if (is_in_metadata()) return true;
    if (depth() == 2 && field_ == "shape") entry_.shape = std::move(extents_);
    if (depth() == 2 && field_ == "data_offsets") {
      if (extents_.size() != 2 || extents_[0] > extents_[1])
        return refuse("has " + where() + "data_offsets that are no [begin, end)");
      entry_.begin = static_cast<std::uint64_t>(extents_[0]);
      entry_.end = static_cast<std::uint64_t>(extents_[1]);
    }
    if (depth() == 2) extents_.clear();
    if (depth() != 1) return true;
    if (seen_ != kAll) return refuse("lacks " + where() + "dtype, shape or data_offsets");
    entry_.name = name_;
    header_.entries.push_back(std::move(entry_));
    return true;
  }

  SafetensorsHeader& header_;
  const Progress* progress_;
  std::unordered_set<std::string> names_;
  std::string name_, field_;
  SafetensorsEntry entry_;
  unsigned seen_ = 0;
  Extents extents_;
};

class ShardingEvents final : public Events {
 public:
  explicit ShardingEvents(ShardingInfo& info) : info_(info) {}

  bool key(std::string& text) override {
    if (depth() == 1) name_ = text;
    if (depth() == 2) field_ = text;
    return true;
  }

 private:
  bool value(Kind kind, std::int64_t number, std::string*) override {
    if (depth() == 0) return kind == Kind::kObject || refuse("is not a JSON object");
    if (depth() == 1)
      return kind == Kind::kObject ||
             refuse("has for \"" + name_ + "\" something that is not an object");
    if (field_ != "saved_offsets") return true;
    if (depth() == 2) {
      if (kind != Kind::kArray)
        return refuse("has offsets of \"" + name_ + "\" that are not a list");
      info_.offsets.emplace_back(name_, Extents{});
      return true;
    }
    if (kind != Kind::kInteger || depth() != 3 || info_.offsets.back().second.size() == kMaxDims)
      return refuse("has offsets of \"" + name_ + "\" that are not a list of numbers");
    info_.offsets.back().second.push_back(number);
    return true;
  }
  bool closed() override {
    if (depth() == 1) field_.clear();
    return true;
  }

  ShardingInfo& info_;
  std::string name_, field_;
};

// False if the product of extents overflows from the front, even if a later extent is 0: readers
// reject that.
bool can_be_counted(const Extents& shape) {
  std::optional<std::uint64_t> product = 1;
  for (std::int64_t extent : shape)
    product = product ? checked_mul(*product, static_cast<std::uint64_t>(extent)) : product;
  return product.has_value();
}

// For dtypes without a torch equivalent (6-bit ones of safetensors 0.6, F4 with odd rows): true if
// the number of bytes is correct.
bool is_intact_without_torch_dtype(const SafetensorsEntry& entry) {
  std::uint64_t bits = 0;
  if (entry.dtype_text == "F6_E2M3" || entry.dtype_text == "F6_E3M2") bits = 6;
  if (entry.dtype_text == "F4") bits = 4;
  auto elements = volume(entry.shape);
  auto all = elements ? checked_mul(static_cast<std::uint64_t>(*elements), bits) : std::nullopt;
  return bits != 0 && all && *all % 8 == 0 && *all / 8 == entry.end - entry.begin;
}

std::string unknown_dtype_text(const SafetensorsEntry& entry) {
  if (is_intact_without_torch_dtype(entry))
    return fmt::format("{} of {} is valid in the format but has no torch dtype: it is not read",
                       entry.dtype_text, to_text(entry.shape));
  if (entry.dtype_text == "F4")
    return fmt::format("the header gives the tensor {} bytes, which does not match {} of F4",
                       entry.end - entry.begin, to_text(entry.shape));
  if (entry.dtype_text.empty() && entry.begin == entry.end)
    return "the header lists " + entry.name +
           " without a dtype and without bytes: the program that wrote it reserved the name but "
           "had "
           "no tensor for it, as for a tied output layer that is saved once (torchtitan #3764). "
           "safetensors refuses the whole file. Export again with a version that omits the name, "
           "or "
           "remove it from the header and the index";
  return "the dtype \"" + entry.dtype_text + "\" is not supported";
}

// Checks the layout as loaders do: every byte of data belongs to exactly one tensor, and sizes
// match dtype and shape.
void check_layout(SafetensorsHeader& header, std::uint64_t file_size, const Progress* progress) {
  auto problem = [&](const SafetensorsEntry* entry, std::uint64_t at, std::string message) {
    header.problems.push_back({entry == nullptr ? "" : entry->name, at, std::move(message), false});
  };
  std::vector<const SafetensorsEntry*> order;
  for (const SafetensorsEntry& entry : cancellable_range(header.entries, progress)) {
    order.push_back(&entry);
    auto elements = volume(entry.shape);
    auto bytes = elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                                        std::uint64_t{size_of(entry.dtype)})
                          : std::nullopt;
    if (entry.dtype == Dtype::kUnknown) {
      problem(&entry, entry.begin, unknown_dtype_text(entry));
      header.problems.back().is_unread = is_intact_without_torch_dtype(entry);
    } else if (!can_be_counted(entry.shape)) {
      problem(&entry, entry.begin,
              fmt::format("the shape {} has too many elements", to_text(entry.shape)));
    } else if (!bytes || *bytes != entry.end - entry.begin) {
      problem(&entry, entry.begin,
              fmt::format("the header gives the tensor {} bytes, which does not match {} of {}",
                          entry.end - entry.begin, to_text(entry.shape), name(entry.dtype)));
    }
  }
  auto before = [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::tie(a->begin, a->end) < std::tie(b->begin, b->end);
  };
  cancellable_stable_sort(order.begin(), order.end(), before, progress);
  if (is_cancelled(progress)) return;
  std::uint64_t end = header.data_begin;
  for (const SafetensorsEntry* entry : order) {
    if (entry->begin < end)
      problem(entry, entry->begin, "the tensor's bytes overlap those of another");
    if (entry->begin > end) {
      problem(entry, end,
              fmt::format("{} bytes before this tensor belong to no tensor", entry->begin - end));
      header.problems.back().unowned = entry->begin - end;
    }
    end = std::max(end, entry->end);
  }
  if (end > file_size)
    header.problems.push_back(
        {"", file_size,
         fmt::format("the data ends at byte {}, but the header needs {}", file_size, end), true});
  if (end < file_size) {
    problem(nullptr, end, fmt::format("{} bytes follow the last tensor", file_size - end));
    header.problems.back().unowned = file_size - end;
  }
  // If the header has other errors, unowned bytes may be their result.
  const bool is_sound =
      std::all_of(header.problems.begin(), header.problems.end(),
                  [](const SafetensorsProblem& one) { return one.unowned != 0 || one.is_unread; });
  for (SafetensorsProblem& one : header.problems) one.is_unowned = is_sound && one.unowned != 0;
}

void drop_repeated_names(SafetensorsHeader& header) {
  if (header.repeated.empty()) return;
  std::unordered_set<std::string_view> names;
  std::vector<SafetensorsEntry> last;
  for (auto entry = header.entries.rbegin(); entry != header.entries.rend(); ++entry) {
    if (names.insert(entry->name).second) last.push_back(*entry);
  }
  header.entries.assign(last.rbegin(), last.rend());
}

constexpr std::size_t kManyNames = 50'000;

// Safetensors counts single F4 elements. torch counts pairs (float4_e2m1fn_x2), so the last dim is
// halved.
void pack_float4_pairs(SafetensorsEntry& entry) {
  if (entry.dtype_text != "F4" || entry.shape.empty() || entry.shape.back() % 2 != 0) return;
  entry.dtype = Dtype::kFloat4E2m1fnX2;
  entry.shape.back() /= 2;
}

}  // namespace

const std::string* SafetensorsHeader::find_metadata(std::string_view key) const {
  for (const auto& [name, text] : metadata) {
    if (name == key) return &text;
  }
  return nullptr;
}

bool SafetensorsHeader::has_unowned() const {
  return std::any_of(problems.begin(), problems.end(),
                     [](const SafetensorsProblem& one) { return one.is_unowned; });
}

Result<SafetensorsHeader> read_safetensors_header(const ByteSource& source,
                                                  const Progress* progress) {
  auto damaged = [&](std::uint64_t at, std::string message) {
    return fail(ErrorKind::kDamaged, std::move(message), {source.name(), at});
  };
  SHW_CHECK(check_is_no_lfs_pointer(source));
  if (source.size() < 8)
    return damaged(
        0, fmt::format(
               "is {} bytes long; a safetensors file begins with the 8-byte length of its header",
               source.size()));
  SHW_TRY(Bytes prefix, read_bytes(source, 0, 8));
  auto length = load_little<std::uint64_t>(prefix);
  if (load_little<std::uint32_t>(prefix) == 0x04034b50)
    return damaged(0, "begins with a zip archive, not with a safetensors header");
  if (length == 0)
    return damaged(0,
                   "begins with zeros instead of its header length: the start of the file was "
                   "never written, or was lost in a copy");
  // A plausible length is stronger evidence than magic numbers, which it may resemble.
  if (length > kMaxSafetensorsHeader) {
    SHW_TRY(Bytes first,
            read_bytes(source, 0, std::min<std::uint64_t>(source.size(), kFirstBytes)));
    if (auto told = format_from_magic(first); !told.empty())
      return damaged(0, fmt::format("does not begin with a safetensors header: it is {}", told));
  }
  if (length > kMaxSafetensorsHeader)
    return damaged(
        0, fmt::format("announces a header of {} bytes; at most 100,000,000 are allowed", length));
  if (length > source.size() - 8)
    return damaged(0, fmt::format("announces a header of {} bytes, but only {} follow", length,
                                  source.size() - 8));
  SHW_TRY(Bytes json, read_bytes(source, 8, length));

  SafetensorsHeader header;
  header.data_begin = 8 + length;
  HeaderEvents events(header, progress);
  const char* text = reinterpret_cast<const char*>(json.data());
  // nlohmann_json treats a zero byte as the end of the text; readers of safetensors reject
  // it.
  auto zero = std::find(json.begin(), json.end(), std::byte{0});
  if (zero != json.end())
    return damaged(8 + static_cast<std::uint64_t>(zero - json.begin()),
                   "the header holds a zero byte, which is not valid JSON");
  if (begins_with_byte_order_mark(json))
    return damaged(8, "the header begins with a byte order mark instead of a JSON object");
  const bool parsed = Json::sax_parse(text, text + json.size(), &events);
  auto stopped = [&] {
    destroy_in_background(std::pair(std::move(header), events.release_names()));
    return cancelled_error();
  };
  if (is_cancelled(progress)) return stopped();
  if (!parsed)
    return damaged(8 + std::min<std::uint64_t>(events.position(), length),
                   "the header " + events.message());
  drop_repeated_names(header);
  for (SafetensorsEntry& entry : header.entries) {
    entry.dtype = dtype_from_safetensors(entry.dtype_text).value_or(Dtype::kUnknown);
    pack_float4_pairs(entry);
    // No overflow: values are below 2^63, and the header below 2^27.
    entry.begin += header.data_begin;
    entry.end += header.data_begin;
  }
  check_layout(header, source.size(), progress);
  if (is_cancelled(progress)) return stopped();
  // Destroying a quarter of a million names takes a tenth of a second.
  if (header.entries.size() > kManyNames) destroy_in_background(events.release_names());
  return header;
}

const Extents* ShardingInfo::find(std::string_view name) const {
  auto found =
      std::lower_bound(offsets.begin(), offsets.end(), name,
                       [](const auto& entry, std::string_view text) { return entry.first < text; });
  return found != offsets.end() && found->first == name ? &found->second : nullptr;
}

Result<ShardingInfo> parse_sharding_info(const std::string& text, const std::string& file) {
  ShardingInfo info;
  ShardingEvents events(info);
  if (!Json::sax_parse(text, &events))
    return fail(ErrorKind::kDamaged,
                "the metadata " + std::string(kShardingInfoKey) + " " + events.message(),
                {file, 8});
  std::stable_sort(info.offsets.begin(), info.offsets.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < info.offsets.size(); ++i) {
    if (info.offsets[i].first == info.offsets[i - 1].first)
      return fail(ErrorKind::kDamaged,
                  "the metadata " + std::string(kShardingInfoKey) + " names \"" +
                      info.offsets[i].first + "\" twice",
                  {file, 8});
  }
  return info;
}

}  // namespace shw
