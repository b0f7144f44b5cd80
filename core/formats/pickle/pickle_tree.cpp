#include "core/formats/pickle/pickle_tree.h"

#include <charconv>

namespace shw {
namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18 & 0x07));
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}  // namespace

std::optional<std::int64_t> PickleTree::integer(NodeId id) const {
  NodeKind k = kind(id);
  if (k != NodeKind::kInt && k != NodeKind::kBool) return std::nullopt;
  return node(id).integer;
}

std::optional<double> PickleTree::real(NodeId id) const {
  if (kind(id) != NodeKind::kFloat) return std::nullopt;
  return node(id).real;
}

std::optional<std::string_view> PickleTree::text(NodeId id) const {
  if (kind(id) != NodeKind::kString) return std::nullopt;
  return std::string_view(node(id).text, node(id).count);
}

std::optional<BytesView> PickleTree::bytes(NodeId id) const {
  NodeKind k = kind(id);
  if (k != NodeKind::kBytes && k != NodeKind::kBigInt) return std::nullopt;
  return std::as_bytes(std::span(node(id).text, node(id).count));
}

std::span<const NodeId> PickleTree::items(NodeId id) const {
  switch (kind(id)) {
    case NodeKind::kTuple:
    case NodeKind::kList:
    case NodeKind::kDict:
    case NodeKind::kSet:
    case NodeKind::kPersistentId:
      return std::span(children_).subspan(node(id).first, node(id).count);
    default:
      return {};
  }
}

NodeId PickleTree::find(NodeId dict, std::string_view key) const {
  NodeId found = NodeId::kAbsent;
  if (kind(dict) != NodeKind::kDict) return found;
  std::span<const NodeId> pairs = items(dict);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (text(pairs[i]) == key) found = pairs[i + 1];
  }
  return found;
}

const PickleGlobal* PickleTree::global(NodeId id) const {
  return kind(id) == NodeKind::kGlobal ? &globals_[node(id).first] : nullptr;
}

bool PickleTree::is_global(NodeId id, std::string_view module, std::string_view name) const {
  const PickleGlobal* found = global(id);
  return found != nullptr && found->module == module && found->name == name;
}

NodeId PickleTree::part(NodeId id, std::size_t which) const {
  NodeKind k = kind(id);
  if (k != NodeKind::kObject && k != NodeKind::kReduce) return NodeId::kAbsent;
  return children_[node(id).first + which];
}

NodeId PickleTree::attributes(NodeId id) const {
  NodeId given = state(id);
  if (kind(given) == NodeKind::kTuple && items(given).size() == 2 &&
      kind(items(given)[0]) == NodeKind::kDict)
    return items(given)[0];
  return given;
}

std::string unescape_unicode(std::string_view text, bool* is_cut) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = text.starts_with("\\u") ? 4 : text.starts_with("\\U") ? 8 : 0;
    std::uint32_t code = 0;
    if (length > 0 && text.size() >= 2 + length) {
      const char* first = text.data() + 2;
      auto [stop, error] = std::from_chars(first, first + length, code, 16);
      if (error == std::errc{} && stop == first + length && code < 0x110000) {
        append_utf8(out, code);
        text.remove_prefix(2 + length);
        continue;
      }
    }
    if (length > 0 && is_cut != nullptr) *is_cut = true;
    // Python stores Latin-1 text as one byte per character.
    append_utf8(out, static_cast<unsigned char>(text.front()));
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace shw
