// Steps of a run, as folders of one safetensors file with float32 tensors of given values.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "core/temporary_folder.h"

namespace shw {

struct NamedValues {
  std::string fqn;
  std::vector<float> values;
};

inline void put_step_of_values(const std::string& folder, const std::vector<NamedValues>& tensors) {
  std::string header = "{", data;
  for (const NamedValues& tensor : tensors) {
    const std::size_t begin = data.size(), bytes = tensor.values.size() * sizeof(float);
    data.resize(begin + bytes);
    std::memcpy(data.data() + begin, tensor.values.data(), bytes);
    header += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}})",
                          header.size() > 1 ? "," : "", tensor.fqn, tensor.values.size(), begin,
                          begin + bytes);
  }
  header += "}";
  std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  std::filesystem::create_directories(folder);
  put(folder + "/model.safetensors", file + header + data);
}

}  // namespace shw
