// Messages and behaviour of a build without CUDA, on a machine that may have nvcc.
#include <doctest/doctest.h>

#include "core/exec/device.h"
#include "gpu/cuda_executor.h"
#include "gpu/nccl_stage.h"
#include "gpu/slab_tables.h"

using namespace shw;

TEST_CASE("a build without CUDA says so, and what to take instead") {
  Gpus gpus = cuda_gpus();
  CHECK(gpus.found.empty());
  CHECK(gpus.none == "this program was built without CUDA");
  auto executor = gpus.open(0);
  REQUIRE_FALSE(executor.has_value());
  CHECK(executor.error().kind == ErrorKind::kUnsupported);
  CHECK(executor.error().advice.find("--device cpu") != std::string::npos);
  CHECK_FALSE(cuda_staging_buffer(0).has_value());
  auto asked = choose_executors({DeviceKind::kCuda, 0, OnDeviceError::kCpu, cuda_gpus}, Program{});
  REQUIRE_FALSE(asked.has_value());
  CHECK(asked.error().message.find("built without CUDA") != std::string::npos);
}

TEST_CASE("a build without CUDA still knows which kernels a slab would take") {
  StatisticsJob numbers{Dtype::kFloat32, 0, 1000, nullptr};
  SlabTables tables;
  add_slab_work_to_tables(tables, {{}, {}, {}, {}, std::span(&numbers, 1)});
  CHECK(tables.of(Kernel::kNumbers4).size() == 1);
}
