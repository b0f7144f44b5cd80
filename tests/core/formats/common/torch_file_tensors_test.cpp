#include "core/formats/common/torch_file_tensors.h"

#include <doctest/doctest.h>

#include "core/fixtures.h"
#include "core/formats/zip/crc32.h"

using namespace shw;

TEST_CASE("the pickled DTensors of an optimizer file are read with mesh and placements") {
  auto cases = test::fixture_cases("s4_mlite_edp2_ep2");
  REQUIRE_FALSE(cases.empty());
  for (int rank = 0; rank < 4; ++rank) {
    std::string name = "optimizer_rank_" + std::to_string(rank) + ".pt";
    auto source = open_file(cases.front() + "/ckpt/" + name, name);
    REQUIRE(source.has_value());
    auto file = read_torch_file_tensors(*source);
    REQUIRE_MESSAGE(file.has_value(), file.error().message);
    CHECK(file->unreadable.empty());
    CHECK(file->tensors.size() >= 30);
    std::size_t masters = 0;
    for (const TorchFileTensor& tensor : file->tensors) {
      if (tensor.path.front() == PathPart("master_params")) ++masters;
      CHECK(tensor.dtype == Dtype::kFloat32);
      auto bytes = read_torch_file_elements(**source, tensor);
      REQUIRE(bytes.has_value());
      CHECK(bytes->size() == static_cast<std::size_t>(*volume(tensor.sizes)) * 4);
      auto stored = read_bytes(**source, tensor.payload_offset, tensor.payload_length);
      REQUIRE(stored.has_value());
      CHECK(crc32_of(*stored) == tensor.crc);
      REQUIRE(tensor.sharding.has_value());
      CHECK(tensor.sharding->rank == rank);
      CHECK(tensor.sharding->global_shape.size() == tensor.sizes.size());
      CHECK(tensor.sharding->placements.size() == tensor.sharding->mesh.shape.size());
      CHECK(tensor.sharding->mesh.ranks.size() ==
            static_cast<std::size_t>(*volume(tensor.sharding->mesh.shape)));
      CHECK(tensor.sharding->coordinate.has_value());
    }
    CHECK(masters * 3 == file->tensors.size());
    const TorchFileTensor& first = file->tensors.front();
    CHECK(first.path ==
          std::vector<PathPart>{PathPart("master_params"), PathPart(std::int64_t{0})});
    CHECK(first.sharding->global_shape == Extents{16, 4});
    CHECK(first.sizes == Extents{4, 4});
    CHECK(first.sharding->placements == std::vector<std::string>{"Shard(0)"});
    CHECK(first.sharding->mesh.ranks == std::vector<std::int64_t>{0, 1, 2, 3});
    CHECK(first.sharding->mesh.dim_names == std::vector<std::string>{"dp_cp"});
    CHECK(first.sharding->coordinate == Extents{rank});
  }
}
