#include "core/verbs/known_formats.h"

#include "core/formats/table.h"

namespace shw::verbs {

std::vector<KnownFormat> known_formats() {
  std::vector<KnownFormat> known;
  for (const FormatRow& row : formats()) {
    // Variants of one format share a title.
    if (known.empty() || known.back().title != row.format->title)
      known.push_back({row.format->title, row.sign});
  }
  return known;
}

}  // namespace shw::verbs
