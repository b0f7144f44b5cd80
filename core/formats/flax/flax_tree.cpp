#include "core/formats/flax/flax_tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "core/base/checked.h"
#include "core/formats/flax/msgpack.h"

namespace shw {
namespace {

constexpr int kDeepestTree = 64;
constexpr std::uint64_t kLongestKey = 4096, kLongestValue = 1 << 16;
// Limit of all names, which join the keys on their paths: a file of some kilobytes could form
// gigabytes of names.
constexpr std::uint64_t kMaxNameBytes = std::uint64_t{256} << 20;
constexpr std::string_view kChunkedKey = "__msgpack_chunked_array__";
constexpr std::int8_t kArrayType = 1, kComplexType = 2, kScalarType = 3;

using MsgpackKind = MsgpackHead::Kind;

void append_little_endian(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

// Pickle opcodes of a plain value.
std::string flax_opcodes(const MsgpackHead& head, const std::string& text) {
  std::string out;
  switch (head.kind) {
    case MsgpackKind::kNil:
      return "N";
    case MsgpackKind::kBool:
      return head.integer != 0 ? "\x88" : "\x89";
    case MsgpackKind::kInteger:
      out = "\x8a\x08";
      append_little_endian(out, static_cast<std::uint64_t>(head.integer), 8);
      return out;
    case MsgpackKind::kFloat: {
      out = "G";
      const auto bits = std::bit_cast<std::uint64_t>(head.real);
      for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(bits >> shift & 0xff);
      return out;
    }
    default:
      out = "X";
      append_little_endian(out, text.size(), 4);
      return out + text;
  }
}

class FlaxWalk {
 public:
  explicit FlaxWalk(const ByteSource& source) : source_(source), in_(source) {}

  Result<FlaxTree> run() {
    SHW_TRY(MsgpackHead head, in_.next());
    if (head.kind != MsgpackKind::kMap)
      return fail(ErrorKind::kUnsupported, "is msgpack without a map, so it is not a flax tree",
                  {source_.name(), head.at});
    SHW_CHECK(map(head, "", 0));
    if (in_.left() != 0)
      return in_.damaged(in_.at(), fmt::format("has {} extra bytes after its tree", in_.left()));
    return std::move(tree_);
  }

 private:
  Result<std::string> key() {
    SHW_TRY(MsgpackHead head, in_.next());
    if (head.kind == MsgpackKind::kInteger) return std::to_string(head.integer);
    return in_.text(head, kLongestKey);
  }

  Result<std::string> joined_name(const std::string& prefix, const std::string& key) {
    std::string name = prefix.empty() ? key : prefix + "." + key;
    name_bytes_ += name.size();
    if (name_bytes_ > kMaxNameBytes || name.size() > kLongestKey * 4)
      return in_.damaged(in_.at(), "has names that are too long");
    return name;
  }

  Status map(const MsgpackHead& head, const std::string& prefix, int depth) {
    for (std::uint64_t i = 0; i < head.length; ++i) {
      SHW_TRY(std::string key, this->key());
      if (i == 0 && key == kChunkedKey) return chunked(head, prefix);
      SHW_TRY(std::string name, joined_name(prefix, key));
      SHW_CHECK(value(name, depth + 1));
    }
    return {};
  }

  Status value(const std::string& name, int depth) {
    SHW_TRY(MsgpackHead head, in_.next());
    if (depth > kDeepestTree) return in_.damaged(head.at, "is nested too deep");
    switch (head.kind) {
      case MsgpackKind::kMap:
        return map(head, name, depth);
      case MsgpackKind::kArray:
        for (std::uint64_t i = 0; i < head.length; ++i) {
          SHW_TRY(std::string item, joined_name(name, std::to_string(i)));
          SHW_CHECK(value(item, depth + 1));
        }
        return {};
      case MsgpackKind::kExtension:
        return extension(head, name);
      case MsgpackKind::kBytes:
        return in_.skip(head.length);
      default:
        return plain(head, name);
    }
  }

  Status plain(const MsgpackHead& head, const std::string& name) {
    std::string text;
    if (head.kind == MsgpackKind::kText && head.length > kLongestValue)
      return in_.skip(head.length);
    if (head.kind == MsgpackKind::kText) {
      SHW_TRY(text, in_.text(head, kLongestValue));
    }
    tree_.values.emplace_back(name, flax_opcodes(head, text));
    return {};
  }

  Status extension(const MsgpackHead& head, const std::string& name) {
    const std::uint64_t end = in_.at() + head.length;
    if (head.type != kArrayType && head.type != kScalarType) {
      FlaxArray other;
      other.name = name;
      other.at = head.at;
      other.problem = head.type == kComplexType
                          ? "is a Python complex number, which is not supported"
                          : fmt::format("is an extension of type {}, which flax does not write",
                                        int{head.type});
      tree_.arrays.push_back(std::move(other));
      return in_.skip(head.length);
    }
    SHW_TRY(FlaxArray array, ndarray(name, head, end));
    tree_.arrays.push_back(std::move(array));
    return {};
  }

  // Parses [shape, dtype, elements], which must fill the extension.
  Result<FlaxArray> ndarray(const std::string& name, const MsgpackHead& outer, std::uint64_t end) {
    FlaxArray array;
    array.name = name;
    array.at = outer.at;
    SHW_TRY(MsgpackHead head, in_.next());
    if (head.kind != MsgpackKind::kArray || head.length != 3)
      return in_.damaged(head.at, "has an array that is not shape, dtype and elements");
    SHW_TRY(array.shape, shape());
    SHW_TRY(MsgpackHead type, in_.next());
    SHW_TRY(array.type, in_.text(type, 64));
    SHW_TRY(MsgpackHead data, in_.next());
    if (data.kind != MsgpackKind::kBytes || in_.at() + data.length != end)
      return in_.damaged(data.at, "has fewer or more bytes than its array needs");
    array.dtype = dtype_from_torch(array.type).value_or(Dtype::kUnknown);
    place(array, data.length);
    SHW_CHECK(in_.skip(data.length));
    return array;
  }

  void place(FlaxArray& array, std::uint64_t bytes) const {
    if (array.dtype == Dtype::kUnknown) {
      array.problem = "has elements of numpy's type " + array.type + ", which is not supported";
      return;
    }
    const auto elements = volume(array.shape);
    const auto needed = elements ? checked_mul(static_cast<std::uint64_t>(*elements),
                                               std::uint64_t{size_of(array.dtype)})
                                 : std::nullopt;
    if (needed != bytes)
      array.problem = fmt::format("is {} of {} by its header, but has {} bytes",
                                  to_text(array.shape), array.type, bytes);
    else
      array.runs.push_back({0, *elements, in_.at()});
  }

  Result<Extents> shape() {
    SHW_TRY(MsgpackHead head, in_.next());
    if (head.kind != MsgpackKind::kArray || head.length > kMaxDims)
      return in_.damaged(head.at, "has an array whose shape is not a list of sizes");
    Extents shape;
    for (std::uint64_t i = 0; i < head.length; ++i) {
      SHW_TRY(MsgpackHead size, in_.next());
      if (size.kind != MsgpackKind::kInteger || size.integer < 0)
        return in_.damaged(size.at, "has an array whose shape is not a list of sizes");
      shape.push_back(size.integer);
    }
    return shape;
  }

  // Parses a chunked array after its marker key: the marker's value and two more pairs.
  Status chunked(const MsgpackHead& head, const std::string& name) {
    FlaxArray whole;
    whole.name = name;
    whole.at = head.at;
    SHW_CHECK(in_.next());
    for (std::uint64_t i = 1; i < head.length; ++i) {
      SHW_TRY(std::string key, this->key());
      SHW_TRY(MsgpackHead inner, in_.next());
      const bool is_known = inner.kind == MsgpackKind::kMap && (key == "shape" || key == "chunks");
      if (!is_known) return in_.damaged(inner.at, "has a chunked array without its chunks");
      if (key == "shape") {
        SHW_CHECK(chunked_shape(inner, whole));
      } else {
        SHW_CHECK(chunks(inner, whole));
      }
    }
    const auto elements = volume(whole.shape);
    const std::int64_t held =
        whole.runs.empty() ? 0 : whole.runs.back().first + whole.runs.back().count;
    if (whole.problem.empty() && elements != held)
      whole.problem = fmt::format("is {} by its header, but its {} chunks hold {} elements",
                                  to_text(whole.shape), whole.runs.size(), held);
    tree_.arrays.push_back(std::move(whole));
    return {};
  }

  Status chunked_shape(const MsgpackHead& head, FlaxArray& whole) {
    if (head.length > kMaxDims) return in_.damaged(head.at, "has an array of too many dimensions");
    for (std::uint64_t i = 0; i < head.length; ++i) {
      SHW_CHECK(key());
      SHW_TRY(MsgpackHead size, in_.next());
      if (size.kind != MsgpackKind::kInteger || size.integer < 0)
        return in_.damaged(size.at, "has an array whose shape is not a list of sizes");
      whole.shape.push_back(size.integer);
    }
    return {};
  }

  Status chunks(const MsgpackHead& head, FlaxArray& whole) {
    for (std::uint64_t i = 0; i < head.length; ++i) {
      SHW_CHECK(key());
      SHW_TRY(MsgpackHead inner, in_.next());
      if (inner.kind != MsgpackKind::kExtension || inner.type != kArrayType)
        return in_.damaged(inner.at, "has a chunk that is not an array");
      SHW_TRY(FlaxArray chunk, ndarray(whole.name, inner, in_.at() + inner.length));
      const bool is_alike = i == 0 || chunk.type == whole.type;
      if (whole.problem.empty() && !chunk.problem.empty()) whole.problem = chunk.problem;
      if (whole.problem.empty() && !is_alike) whole.problem = "has chunks of several types";
      whole.type = chunk.type;
      whole.dtype = chunk.dtype;
      const std::int64_t first =
          whole.runs.empty() ? 0 : whole.runs.back().first + whole.runs.back().count;
      for (const FlaxRun& run : chunk.runs) whole.runs.push_back({first, run.count, run.offset});
    }
    return {};
  }

  const ByteSource& source_;
  MsgpackReader in_;
  FlaxTree tree_;
  std::uint64_t name_bytes_ = 0;
};

}  // namespace

Result<FlaxTree> read_flax_tree(const ByteSource& source) {
  return FlaxWalk(source).run();
}

bool begins_as_flax(BytesView first) {
  if (first.size() < 4) return false;
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(first[i]); };
  std::size_t key = 0;
  if (byte(0) > 0x80 && byte(0) <= 0x8f) key = 1;
  if (byte(0) == 0xde) key = 3;
  if (key == 0 || key >= first.size()) return false;
  const unsigned head = byte(key);
  const std::size_t length = head >= 0xa1 && head <= 0xbf ? head & 31 : 0;
  if (length == 0 || key + length >= first.size()) return false;
  return std::all_of(first.begin() + static_cast<std::ptrdiff_t>(key) + 1,
                     first.begin() + static_cast<std::ptrdiff_t>(key + 1 + length),
                     [](std::byte c) {
                       const auto value = std::to_integer<unsigned>(c);
                       return value >= 0x20 && value < 0x7f;
                     });
}

}  // namespace shw
