#include "core/formats/small_json.h"

#include <string_view>

namespace shw {
namespace {

constexpr std::uint64_t kMaxSmallJson = std::uint64_t{1} << 20;

}  // namespace

nlohmann::json read_small_json(const DirectoryContents& look, const std::string& path) {
  const Entry entry = look.entry(path);
  if (entry.kind != EntryKind::kFile || entry.size > kMaxSmallJson) return {};
  auto bytes = look.first_bytes(path, entry.size);
  if (!bytes) return {};
  auto keep_shallow = [](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    return depth < 16;
  };
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  auto parsed = parse_json<nlohmann::json>(text, keep_shallow);
  return parsed.problem.empty() ? std::move(parsed.tree) : nlohmann::json();
}

}  // namespace shw
