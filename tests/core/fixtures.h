// Paths of checkpoints that real torch wrote, with their expected contents.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/formats/common/safetensors_header.h"
#include "core/io/source.h"

namespace shw::test {

// Full path of every case folder whose name begins with `prefix`, sorted; empty if there are no
// fixtures. SHARDWRIGHT_FIXTURES names their folder, otherwise tests/data has copies.
inline std::vector<std::string> fixture_cases(const std::string& prefix) {
  std::vector<std::string> cases;
  const char* given = std::getenv("SHARDWRIGHT_FIXTURES");
  std::filesystem::path root = given != nullptr ? given : SHW_TEST_DATA;
  std::error_code error;
  for (auto it = std::filesystem::recursive_directory_iterator(root, error);
       it != std::filesystem::recursive_directory_iterator(); it.increment(error)) {
    if (it->is_directory() && it->path().filename().string().starts_with(prefix) &&
        std::filesystem::exists(it->path() / "ckpt"))
      cases.push_back(it->path().string());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

struct TruthTensor {
  Dtype dtype;
  Extents shape;
  Bytes bytes;
};

inline Result<std::map<std::string, TruthTensor>> read_truth(const std::string& path) {
  SHW_TRY(auto source, open_file(path, "truth.safetensors"));
  SHW_TRY(SafetensorsHeader header, read_safetensors_header(*source));
  std::map<std::string, TruthTensor> truth;
  for (const SafetensorsEntry& entry : header.entries) {
    SHW_TRY(Bytes bytes, read_bytes(*source, entry.begin, entry.end - entry.begin));
    truth[entry.name] = {entry.dtype, entry.shape, std::move(bytes)};
  }
  return truth;
}

}  // namespace shw::test
