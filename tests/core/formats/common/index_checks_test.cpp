#include "core/formats/common/index_checks.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

using namespace shw;

TEST_CASE("index checks: names are matched as by sets of names and files") {
  std::mt19937 random(38);
  const auto name = [&] { return "layer." + std::to_string(random() % 40); };
  const auto path = [&] { return "model-" + std::to_string(random() % 4); };
  for (int round = 0; round < 50; ++round) {
    WeightMap map;
    std::map<std::string, std::string> once;
    for (int i = 0; i < 30; ++i) once.emplace(name(), path());
    map.assign(once.begin(), once.end());
    std::vector<IndexedFile> files;
    for (int i = 0; i < 3; ++i) {
      IndexedFile file{"model-" + std::to_string(i), {}};
      for (int k = 0; k < 12; ++k) file.tensors.emplace_back(name(), random() % 100);
      files.push_back(std::move(file));
    }
    std::map<std::string, std::set<std::string>> files_of;
    std::map<std::string, std::uint64_t> bytes_of_first;
    for (const IndexedFile& file : files) {
      for (const auto& [held, bytes] : file.tensors) {
        files_of[held].insert(file.path);
        bytes_of_first.emplace(held, bytes);
      }
    }
    const MatchedIndex matched({"index", map, files});
    REQUIRE(matched.entries.size() == map.size());
    CHECK(matched.held.size() == files_of.size());
    for (std::size_t i = 0; i < map.size(); ++i) {
      const std::size_t place = matched.entries[i];
      const auto found = files_of.find(map[i].first);
      REQUIRE((place == MatchedIndex::kNotStored) == (found == files_of.end()));
      if (found == files_of.end()) continue;
      const StoredTensor& held = matched.held[place];
      CHECK(held.name == map[i].first);
      CHECK(held.is_named);
      CHECK(held.bytes == bytes_of_first[map[i].first]);
      std::set<std::string> paths = {files[held.file].path};
      for (const std::size_t file : held.more_files) paths.insert(files[file].path);
      CHECK(paths == found->second);
    }
    for (const StoredTensor& held : matched.held)
      CHECK(held.is_named == once.contains(std::string(held.name)));
  }
}

TEST_CASE("index checks: files of an index are sorted, each once") {
  const WeightMap map = {{"a", "2"}, {"b", "1"}, {"c", "1"}, {"d", "2"}};
  CHECK(sorted_index_files(map) == std::vector<std::string_view>{"1", "2"});
}
