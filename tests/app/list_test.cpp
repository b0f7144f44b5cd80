// ls as a process: entries that are not tensors.
#include <doctest/doctest.h>

#include "app/answer.h"
#include "app/process.h"

using namespace shw::test;

TEST_CASE("ls lists entries that are not tensors where words fit them") {
  const std::string path = SHW_TEST_DATA "/torch-2.14/healthy_fsdp/ckpt";
  const Run run = shardwright({"ls", path, "weight_decay"});
  CHECK(run.code == 0);
  CHECK(contains(run.out, "optimizer.param_groups.0.weight_decay   0.01"));
  CHECK(contains(shardwright({"ls", path}).err, "Not tensors: 14 entries"));
}
