// Files of torch.save made by hand, and files that torch wrote.
#pragma once

#include <doctest/doctest.h>

#include <map>

#include "core/formats/items/items.h"
#include "core/formats/open.h"
#include "core/formats/plain_value.h"
#include "core/make_zip.h"
#include "core/read_all.h"

namespace shw::test {

inline std::string torch_file_path(const std::string& name) {
  return std::string(SHW_TEST_DATA) + "/torch-2.15/torch_save/" + name;
}

inline std::string state_dict_file(const std::string& value, std::vector<ZipRecord> more = {}) {
  std::vector<ZipRecord> records{{"m/data.pkl", as_pickle(value)}, {"m/version", "3\n"}};
  records.insert(records.end(), more.begin(), more.end());
  return make_zip(records);
}

inline OpenedCheckpoint open_model(const std::string& bytes, const std::string& name = "model.pt") {
  return open_checkpoint(memory_directory("ckpt", {{name, to_bytes(bytes)}}));
}

inline std::string names_of(const Checkpoint& checkpoint) {
  std::string names;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t)
    names += std::string(checkpoint.fqn(TensorId{t})) + " ";
  names += "|";
  for (const NonTensorEntry& object : checkpoint.objects()) names += " " + object.fqn;
  return names;
}

inline std::map<std::string, Bytes> values_by_name(const Checkpoint& checkpoint) {
  std::map<std::string, Bytes> values;
  for (std::uint32_t t = 0; t < checkpoint.tensor_count(); ++t) {
    auto read = read_tensor(checkpoint, TensorId{t});
    values[std::string(checkpoint.fqn(TensorId{t}))] = read ? read->bytes : Bytes{std::byte{'?'}};
  }
  return values;
}

inline std::size_t object_named(const Checkpoint& checkpoint, std::string_view fqn) {
  std::size_t i = 0;
  while (i < checkpoint.objects().size() && checkpoint.objects()[i].fqn != fqn) ++i;
  REQUIRE_MESSAGE(i < checkpoint.objects().size(), fqn);
  return i;
}

}  // namespace shw::test
