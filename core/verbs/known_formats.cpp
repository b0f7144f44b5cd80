#include "core/verbs/known_formats.h"

#include "core/formats/common/item_reader.h"
#include "core/formats/table.h"
#include "core/formats/unsupported_formats.h"

namespace shw::verbs {
namespace {

bool has_checksums(const Format& format) {
  return format.codec != nullptr && format.codec->reader != nullptr &&
         format.codec->reader->check != nullptr;
}

}  // namespace

std::vector<KnownFormat> known_formats() {
  std::vector<KnownFormat> known;
  for (const FormatRow& row : formats()) {
    // Variants of one format share a title.
    if (known.empty() || known.back().title != row.format->title)
      known.push_back({row.format->title, row.sign, row.format->name, row.format->rewrite,
                       has_checksums(*row.format)});
  }
  return known;
}

std::vector<std::string_view> refused_formats() {
  std::vector<std::string_view> titles;
  for (const UnsupportedFormat& format : unsupported_formats()) titles.push_back(format.title);
  return titles;
}

}  // namespace shw::verbs
