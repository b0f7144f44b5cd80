#include "core/report/entry_report.h"

#include <algorithm>

#include "core/base/version.h"
#include "core/formats/plain_value.h"
#include "core/report/json.h"
#include "core/report/report.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxRead = std::uint64_t{1} << 20;
constexpr std::size_t kMaxLines = 400;
constexpr std::size_t kDeepest = 8;

struct EntryLines {
  std::string text;
  std::size_t count = 0;

  void add(std::size_t depth, const std::string& line) {
    if (++count > kMaxLines) return;
    text += std::string(2 * depth, ' ') + printable(line) + "\n";
  }

  void add_value(std::size_t depth, const std::string& key, const PlainValue& value) {
    const bool is_nested = value.kind == PlainValue::Kind::kDict && !value.items.empty();
    if (!is_nested || depth == kDeepest) {
      add(depth,
          key + (value.kind == PlainValue::Kind::kOther ? "(not plain data)" : to_text(value)));
      return;
    }
    if (!key.empty()) add(depth, key);
    const std::size_t below = key.empty() ? depth : depth + 1;
    for (std::size_t i = 0; i + 1 < value.items.size() && count <= kMaxLines; i += 2)
      add_value(below, to_text(value.items[i]) + ": ", value.items[i + 1]);
  }
};

std::string why_not(const Error& error) {
  return error.place.file.empty() ? error.message : error.place.file + ": " + error.message;
}

}  // namespace

std::string entry_to_text(const Checkpoint& checkpoint, std::size_t object,
                          const TextStyle& style) {
  const std::string head =
      inked(style, Ink::kBold, printable(checkpoint.objects()[object].fqn)) + "\nnot a tensor\n\n";
  auto value = read_plain_value(checkpoint, object, kMaxRead);
  if (!value) return head + "not shown: " + printable(why_not(value.error())) + "\n";
  EntryLines lines;
  lines.add_value(0, "", *value);
  if (lines.count > kMaxLines) lines.text += "\u2026 and more\n";
  return head + lines.text;
}

std::string entry_list_to_text(const Checkpoint& checkpoint, std::span<const std::uint32_t> objects,
                               const TextStyle& style) {
  constexpr std::size_t kMaxListed = 40, kMaxOfValue = 60;
  std::string text = inked(style, Ink::kQuiet, "not tensors") + "\n";
  for (const std::uint32_t object : objects.first(std::min(objects.size(), kMaxListed))) {
    const auto value = read_plain_value(checkpoint, object, kMaxRead);
    std::string shown = !value                                    ? "not shown"
                        : value->kind == PlainValue::Kind::kOther ? "not plain data"
                                                                  : to_text(*value);
    if (shown.size() > kMaxOfValue) shown = shown.substr(0, kMaxOfValue) + "...";
    text += "  " + printable(checkpoint.objects()[object].fqn) + "   " + printable(shown) + "\n";
  }
  if (objects.size() > kMaxListed)
    text += "  and " + human_count(objects.size() - kMaxListed) + " more: --json\n";
  return text;
}

std::string entry_to_json(const Checkpoint& checkpoint, std::size_t object) {
  Json json = {{"schema", kJsonSchema}, {"fqn", checkpoint.objects()[object].fqn}};
  auto value = read_plain_value(checkpoint, object, kMaxRead);
  if (!value) {
    json["entry"] = nullptr;
    json["why"] = why_not(value.error());
    return pretty_json_line(json);
  }
  EntryLines lines;
  lines.add_value(0, "", *value);
  json["entry"] = lines.text;
  return pretty_json_line(json);
}

}  // namespace shw
