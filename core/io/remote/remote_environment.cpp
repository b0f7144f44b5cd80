#include "core/io/remote/remote_environment.h"

#include <cstdlib>
#include <string_view>

#include "core/base/parse_text.h"
#include "core/io/read_whole.h"
#include "core/io/source.h"

namespace shw {
namespace {

constexpr std::uint64_t kMaxSettings = std::uint64_t{1} << 20;

std::string settings_text(const std::string& path) {
  auto file = open_file(path, path);
  if (!file) return {};
  return read_whole_text(**file, kMaxSettings).value_or(std::string());
}

std::string_view consume_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return trim(line);
}

}  // namespace

std::string environment_text(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string() : std::string(trim(value));
}

std::string home_folder() {
  return environment_text("HOME");
}

int stall_seconds(int usual) {
  const auto seconds = parse_number<int>(environment_text("SHARDWRIGHT_REMOTE_TIMEOUT"));
  return seconds && *seconds >= 1 && *seconds <= 3600 ? *seconds : usual;
}

std::string first_line_of(const std::string& path) {
  const std::string text = settings_text(path);
  std::string_view rest = text;
  return std::string(consume_line(rest));
}

std::map<std::string, std::string> ini_section(const std::string& path,
                                               const std::string& section) {
  std::map<std::string, std::string> values;
  const std::string text = settings_text(path);
  bool is_inside = false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = consume_line(rest);
    if (line.starts_with('[')) {
      is_inside = line.ends_with(']') && trim(line.substr(1, line.size() - 2)) == section;
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!is_inside || equals == line.npos || line.starts_with('#')) continue;
    values[std::string(trim(line.substr(0, equals)))] = trim(line.substr(equals + 1));
  }
  return values;
}

}  // namespace shw
