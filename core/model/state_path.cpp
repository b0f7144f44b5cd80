#include "core/model/state_path.h"

#include <algorithm>

namespace shw {
namespace {

// Removes from `rest` as many dotted parts as `old_part` has.
std::string consume_parts(std::string_view& rest, std::string_view old_part) {
  auto dots = std::count(old_part.begin(), old_part.end(), '.');
  std::size_t end = 0;
  for (std::ptrdiff_t i = 0; i <= dots && end != std::string_view::npos; ++i)
    end = rest.find('.', i == 0 ? 0 : end + 1);
  std::string taken(rest.substr(0, end));
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return taken;
}

// Handles a rename that lengthens or shortens a single key, such as a removed wrapper; the other
// keys stay.
std::optional<std::vector<PathPart>> path_with_renamed_key(std::span<const PathPart> path,
                                                           std::string_view new_name) {
  std::size_t first = 0, last = path.size();
  while (first + 1 < last && new_name.starts_with(path_part_text(path[first]) + "."))
    new_name.remove_prefix(path_part_text(path[first++]).size() + 1);
  while (last > first + 1 && new_name.ends_with("." + path_part_text(path[last - 1])))
    new_name.remove_suffix(path_part_text(path[--last]).size() + 1);
  if (last != first + 1 || new_name.empty() || !std::holds_alternative<std::string>(path[first]))
    return std::nullopt;
  std::vector<PathPart> out(path.begin(), path.end());
  out[first] = std::string(new_name);
  return out;
}

std::optional<std::vector<PathPart>> path_with_equal_keys(std::span<const PathPart> path,
                                                          std::string_view new_name) {
  std::vector<PathPart> out;
  std::string_view rest = new_name;
  for (const PathPart& part : path) {
    std::string old_part = path_part_text(part), taken = consume_parts(rest, old_part);
    auto dots = [](const std::string& text) { return std::count(text.begin(), text.end(), '.'); };
    if (taken.empty() || dots(taken) != dots(old_part)) return std::nullopt;
    bool was_index = std::holds_alternative<std::int64_t>(part);
    bool is_index = !taken.empty() && taken.size() < 19 &&
                    taken.find_first_not_of("0123456789") == std::string::npos;
    if (was_index && !is_index) return std::nullopt;
    if (was_index)
      out.emplace_back(static_cast<std::int64_t>(std::stoll(taken)));
    else
      out.emplace_back(std::move(taken));
  }
  if (!rest.empty()) return std::nullopt;
  return out;
}

}  // namespace

std::string path_part_text(const PathPart& part) {
  const auto* text = std::get_if<std::string>(&part);
  return text != nullptr ? *text : std::to_string(std::get<std::int64_t>(part));
}

std::string dotted_path(std::span<const PathPart> path) {
  std::string dotted;
  for (std::size_t i = 0; i < path.size(); ++i)
    dotted += (i == 0 ? "" : ".") + path_part_text(path[i]);
  return dotted;
}

std::optional<std::vector<PathPart>> renamed_path(std::span<const PathPart> path,
                                                  std::string_view old_name,
                                                  std::string_view new_name) {
  std::string joined;
  for (const PathPart& part : path) joined += (joined.empty() ? "" : ".") + path_part_text(part);
  if (path.empty()) return std::vector<PathPart>{};
  if (joined != old_name) return std::nullopt;
  auto out = path_with_equal_keys(path, new_name);
  return out ? std::move(out) : path_with_renamed_key(path, new_name);
}

}  // namespace shw
