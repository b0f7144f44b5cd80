#include "core/maps/map_values.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/parse_text.h"
#include "core/maps/size_expression.h"

namespace shw {
namespace {

using Size = std::optional<std::int64_t>;

Size find_size(const ModelFacts::Sizes& sizes, std::string_view name) {
  auto found = sizes.find(name);
  return found == sizes.end() ? std::nullopt : Size(found->second);
}

}  // namespace

Size MapValues::value(std::string_view name) {
  if (name.starts_with("config.")) return find_size(facts_.config, name.substr(7));
  if (name.starts_with("args.")) return find_size(facts_.args, name.substr(5));
  if (auto found = known_.find(name); found != known_.end()) return found->second;
  // Blocks recursion: while a value is computed it has none, so a cyclic definition has none
  // either.
  known_.emplace(name, std::nullopt);
  const Size value = compute_value(name);
  known_[std::string(name)] = value;
  return value;
}

Size MapValues::compute_value(std::string_view name) {
  if (Size said = find_size(facts_.said, name)) return said;
  auto found = map_.values.find(name);
  if (found == map_.values.end()) return std::nullopt;
  for (const std::string& expression : found->second) {
    if (Size value = size(expression)) return value;
  }
  return std::nullopt;
}

Size MapValues::size(std::string_view expression) {
  const SizeNames names{
      [&](std::string_view name) { return value(name); },
      [&](std::string_view function, std::string_view text) { return call(function, text); }};
  return size_of_expression(expression, names);
}

// dim(NAME, K): the K-th dim of an existing tensor; a negative K counts from the end.
Size MapValues::dim_of(std::string_view text) const {
  const std::size_t comma = text.rfind(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto tensor = names_.find(trim(text.substr(0, comma)));
  const auto said = parse_number<int>(trim(text.substr(comma + 1)));
  if (!tensor || !said) return std::nullopt;
  const Extents& shape = tensors_[*tensor].shape;
  const auto ndim = static_cast<int>(shape.size());
  const int dim = *said < 0 && *said >= -ndim ? *said + ndim : *said;
  return dim < 0 || dim >= ndim ? std::nullopt : Size(shape[static_cast<std::size_t>(dim)]);
}

// up(A, B): A rounded up to a multiple of B.
Size MapValues::rounded_up(std::string_view text) {
  const std::size_t comma = text.rfind(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const Size value = size(text.substr(0, comma)), unit = size(text.substr(comma + 1));
  if (!value || !unit || *unit <= 0) return std::nullopt;
  const Size more = checked_add(*value, *unit - 1);
  return more ? Size(*more / *unit * *unit) : std::nullopt;
}

Size MapValues::call(std::string_view function, std::string_view text) {
  if (function == "dim") return dim_of(text);
  if (function == "up") return rounded_up(text);
  if (function == "has") return names_.find(trim(text)) ? 1 : 0;
  auto pattern = parse_counter_pattern(trim(text));
  if (!pattern || counters_in(*pattern).size() != 1) return std::nullopt;
  const std::string counter = counters_in(*pattern).front();
  const auto matches = names_.matches(*pattern, [](std::string_view) { return Size(); });
  if (matches.empty()) return std::nullopt;
  if (function == "first") return matches.front().counters.at(counter);
  if (function == "count") return matches.back().counters.at(counter) + 1;
  return std::nullopt;
}

Result<std::int64_t> MapValues::needed(std::string_view expression) {
  if (Size value = size(expression)) return *value;
  // Finds a name without a value for the message.
  std::string missing;
  const SizeNames names{
      [&](std::string_view name) {
        Size known = value(name);
        if (!known && missing.empty()) missing = name;
        return known;
      },
      [&](std::string_view function, std::string_view text) { return call(function, text); }};
  size_of_expression(expression, names);
  if (missing.empty())
    return fail(ErrorKind::kUnsupported,
                fmt::format("the map {} needs {}, which has no value for this checkpoint",
                            map_.name, expression));
  return fail(ErrorKind::kUsage,
              fmt::format("the map {} needs the value \"{}\", which neither the checkpoint nor a "
                          "file next to it says",
                          map_.name, missing),
              {},
              fmt::format("give the model's config.json with --config FOLDER, or --set {}=NUMBER",
                          missing));
}

Result<Extents> MapValues::needed(const std::vector<std::string>& expressions) {
  Extents out;
  for (const std::string& expression : expressions) {
    SHW_TRY(std::int64_t size, needed(expression));
    out.push_back(size);
  }
  return out;
}

}  // namespace shw
