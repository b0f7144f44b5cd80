// OpenVINO's intermediate representation: an XML file that lists the layers of a model, and a .bin
// file with the elements of its constants.
//
//   net   = <net version="10" | "11"> ... <layer name="NAME" type="Const">
//             <data element_type="f32" shape="8, 4" offset="0" size="128"/> ... </layer> ... </net>
//
// Bodies of loops are nested in their layers: a constant in one is "LOOP/NAME".
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/base/parse_text.h"
#include "core/formats/weight_list/weight_list.h"
#include "core/formats/weight_list/xml_tags.h"
#include "core/io/read_whole.h"
#include "core/tensor/shape.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxXml = std::uint64_t{256} << 20;
constexpr std::size_t kMaxConstants = 1 << 22;
constexpr std::size_t kLongestName = 4096;

constexpr auto kElementTypes =
    std::to_array<std::pair<std::string_view, Dtype>>({{"f64", Dtype::kFloat64},
                                                       {"f32", Dtype::kFloat32},
                                                       {"f16", Dtype::kFloat16},
                                                       {"bf16", Dtype::kBfloat16},
                                                       {"f8e4m3", Dtype::kFloat8E4m3fn},
                                                       {"f8e5m2", Dtype::kFloat8E5m2},
                                                       {"f8e8m0", Dtype::kFloat8E8m0fnu},
                                                       {"i64", Dtype::kInt64},
                                                       {"i32", Dtype::kInt32},
                                                       {"i16", Dtype::kInt16},
                                                       {"i8", Dtype::kInt8},
                                                       {"u64", Dtype::kUint64},
                                                       {"u32", Dtype::kUint32},
                                                       {"u16", Dtype::kUint16},
                                                       {"u8", Dtype::kUint8},
                                                       {"boolean", Dtype::kBool}});

Dtype dtype_of_element_type(std::string_view text) {
  for (const auto& [name, dtype] : kElementTypes) {
    if (name == text) return dtype;
  }
  return Dtype::kUnknown;
}

// "8, 4"; "" has no dimensions.
std::optional<Extents> parse_sizes(std::string_view text) {
  Extents sizes;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const auto size = parse_number<std::int64_t>(text.substr(0, comma));
    if (!size || *size < 0 || sizes.size() == kMaxDims) return std::nullopt;
    sizes.push_back(*size);
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
  }
  return sizes;
}

class OpenvinoReader {
 public:
  explicit OpenvinoReader(std::string_view text, std::string file)
      : tags_(text, file), file_(file) {}

  Result<WeightList> run() {
    for (;;) {
      SHW_TRY(std::optional<XmlTag> tag, tags_.next());
      if (!tag) break;
      if (tag->begins) SHW_CHECK(begin(*tag));
      if (tag->ends && tag->name == "layer" && !layers_.empty()) layers_.pop_back();
    }
    if (!has_net_) return fail(ErrorKind::kUnsupported, "has no <net>", {file_});
    return std::move(list_);
  }

 private:
  struct Layer {
    std::string name;
    bool is_constant = false;
  };

  Status begin(const XmlTag& tag) {
    if (tag.name == "net" && !has_net_) {
      has_net_ = true;
      const std::string* version = tag.attribute("version");
      if (version != nullptr && (*version == "10" || *version == "11")) return {};
      return fail(ErrorKind::kUnsupported,
                  fmt::format("has OpenVINO IR version {}; 10 and 11 are supported",
                              version == nullptr ? "without a number" : version->substr(0, 16)),
                  {file_});
    }
    if (tag.name == "layer") {
      const std::string* name = tag.attribute("name");
      const std::string* type = tag.attribute("type");
      layers_.push_back({name == nullptr ? "" : *name, type != nullptr && *type == "Const"});
    } else if (tag.name == "data" && !layers_.empty() && layers_.back().is_constant) {
      return add_constant(tag);
    }
    return {};
  }

  Status add_constant(const XmlTag& tag) {
    auto text = [&](std::string_view key) {
      const std::string* value = tag.attribute(key);
      return value == nullptr ? std::string() : *value;
    };
    std::string name;
    for (const Layer& layer : layers_) {
      name += (name.empty() ? "" : "/") + layer.name;
      if (name.size() > kLongestName) break;
    }
    const auto offset = parse_number<std::uint64_t>(text("offset"));
    const auto length = parse_number<std::uint64_t>(text("size"));
    auto sizes = parse_sizes(text("shape"));
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    if (!offset || !length || !sizes || *offset > kMost || *length > kMost ||
        name.size() > kLongestName || list_.arrays.size() == kMaxConstants)
      return fail(ErrorKind::kDamaged, "has a constant without a readable name, shape or offset",
                  Place{.file = file_, .tensor = name.substr(0, kLongestName)});
    list_.arrays.push_back({.name = unused_name(std::move(name)),
                            .dtype = dtype_of_element_type(text("element_type")),
                            .sizes = std::move(*sizes),
                            .offset = *offset,
                            .length = *length});
    return {};
  }

  // Layers may share a name, which has no meaning to OpenVINO.
  std::string unused_name(std::string name) {
    std::string unused = name;
    while (!names_.try_emplace(unused, 1).second)
      unused = fmt::format("{}#{}", name, ++names_.at(name));
    return unused;
  }

  XmlTags tags_;
  std::string file_;
  std::vector<Layer> layers_;
  std::map<std::string, std::size_t> names_;  // how often each was given
  WeightList list_;
  bool has_net_ = false;
};

}  // namespace

bool begins_as_openvino(BytesView first) {
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  return text.substr(0, 8).find("<?xml") != text.npos && text.find("<net ") != text.npos;
}

Result<WeightList> read_openvino(const ByteSource& source) {
  if (source.size() > kMaxXml)
    return fail(ErrorKind::kUnsupported, "is larger than 256 MiB, too large for a layer list",
                {source.name()});
  SHW_TRY(const std::string text, read_whole_text(source, kMaxXml));
  return OpenvinoReader(text, source.name()).run();
}

}  // namespace shw
