// Checkpoints for killed repairs, and checks of the leftovers.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>

#include "core/io/store.h"
#include "core/repair/make_checkpoint.h"

namespace shw::test {

using Files = std::map<std::string, Bytes>;

// "w" of [6, 4] in two row tiles, "x" of the same size in one, and a file in a subfolder.
inline void write_three(const std::string& path) {
  MadeTensor w{"w", {6, 4}, {}}, x{"x", {6, 4}, {}};
  for (std::int64_t i = 0; i < 2; ++i) {
    Values values;
    for (std::int64_t k = 0; k < 12; ++k) values.push_back(100 * i + k);
    w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, values, static_cast<std::uint32_t>(i)});
  }
  x.chunks.push_back({{{0, 0}, {6, 4}}, {6, 4}, Values(24, 5), 2});
  write_checkpoint(path, {w, x});
  std::filesystem::create_directory(path + "/beside");
  put(path + "/beside/config.json", "{}");
}

inline Files files_below(const Store& store, const std::string& path) {
  Files files;
  auto folder = store.read_folder(path);
  REQUIRE(folder.has_value());
  auto entries = (*folder)->list();
  REQUIRE(entries.has_value());
  for (const Entry& entry : *entries) {
    auto source = (*folder)->open(entry.path);
    REQUIRE(source.has_value());
    auto bytes = read_bytes(**source, 0, (*source)->size());
    REQUIRE(bytes.has_value());
    files[entry.path] = *bytes;
  }
  return files;
}

}  // namespace shw::test
