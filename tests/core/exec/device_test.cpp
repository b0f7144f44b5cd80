// Selection of the device and behaviour after its failure, with simulated GPUs.
#include "core/exec/device.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "core/io/store.h"
#include "core/program/program_builder.h"
#include "core/repair/make_checkpoint.h"
#include "core/repair/plan/plan.h"
#include "core/repair/run/apply.h"
#include "core/temporary_folder.h"
#include "core/tensor/strided_copy.h"
#include "core/verbs/resume.h"

using namespace shw;

namespace {

constexpr const char* kFault = "the device was lost";

// A GPU that computes like the CPU until it fails: after `good` slabs, with garbage in the current
// one.
struct FakeGpu {
  int good = 1 << 30;
  std::atomic<int> runs{0};
};

class FakeExecutor final : public Executor {
 public:
  explicit FakeExecutor(FakeGpu& gpu) : gpu_(gpu) {}
  Result<Fingerprint> run(const SlabWork& work) override {
    if (gpu_.runs.fetch_add(1) < gpu_.good) return cpu_->run(work);
    std::memset(work.out.data(), 0x5a, work.out.size());
    return fail(ErrorKind::kIo, kFault);
  }

 private:
  FakeGpu& gpu_;
  std::unique_ptr<Executor> cpu_ = cpu_executor();
};

// Makes nothing, but takes time.
class PausingExecutor final : public Executor {
 public:
  explicit PausingExecutor(std::chrono::milliseconds pause) : pause_(pause) {}
  Result<Fingerprint> run(const SlabWork&) override {
    if (pause_.count() != 0) std::this_thread::sleep_for(pause_);
    return Fingerprint{};
  }

 private:
  std::chrono::milliseconds pause_;
};

DeviceOptions on(FakeGpu& gpu, OnDeviceError on_error = OnDeviceError::kCpu) {
  DeviceOptions wish{DeviceKind::kCuda, 0, on_error, {}};
  wish.gpus = [&gpu] {
    return Gpus{{{0, "Fake 1", 1 << 30}}, "", [&gpu](int) -> Result<std::unique_ptr<Executor>> {
                  return std::make_unique<FakeExecutor>(gpu);
                }};
  };
  return wish;
}

DeviceOptions on_none(DeviceKind kind) {
  return {kind, 0, OnDeviceError::kCpu, [] { return Gpus{{}, "there is no driver", {}}; }};
}

// A plan transposes "w" of [6, 4] in two tiles, so its elements are made.
struct RowsInTwo {
  TemporaryFolder folder;
  std::shared_ptr<const Checkpoint> checkpoint;
  Plan plan;

  RowsInTwo() {
    MadeTensor w{"w", {6, 4}, {}};
    for (std::int64_t i = 0; i < 2; ++i) {
      Values values;
      for (std::int64_t k = 0; k < 12; ++k) values.push_back(100 * i + k);
      w.chunks.push_back({{{3 * i, 0}, {3, 4}}, {3, 4}, values, static_cast<std::uint32_t>(i)});
    }
    write_checkpoint(folder / "ckpt", {w});
    checkpoint = opened(folder / "ckpt");
    Finding finding;
    finding.rule = "planted";
    finding.subjects = {"w"};
    finding.diagnoses = {Transposed{TensorId{0}, 0, 1, {4, 6}}};
    CheckReport report;
    report.findings = {finding};
    auto made = make_plan(*checkpoint, report, {});
    REQUIRE(made.has_value());
    plan = std::move(*made);
  }
  Result<RepairResult> repair(const std::string& out, const DeviceOptions& wish) {
    ApplyOptions options{folder / out};
    options.device = wish;
    return apply_plan(*checkpoint, plan, options);
  }
  // The bytes that were written for "w".
  std::string payload(const std::string& out) const {
    std::string all;
    for (const auto& file : std::filesystem::directory_iterator(folder / out)) {
      if (file.path().extension() == ".distcp") all += contents(file.path().string());
    }
    return all;
  }
};

}  // namespace

TEST_CASE("a device is auto, cpu, cuda or one of several GPUs, and nothing else") {
  DeviceOptions wish;
  REQUIRE(parse_device("auto", wish));
  CHECK(wish.kind == DeviceKind::kAuto);
  REQUIRE(parse_device("cpu", wish));
  CHECK(wish.kind == DeviceKind::kCpu);
  REQUIRE(parse_device("cuda", wish));
  CHECK(wish.kind == DeviceKind::kCuda);
  CHECK(wish.index == kAnyGpu);
  REQUIRE(parse_device("cuda:3", wish));
  CHECK(wish.index == 3);
  for (const char* text :
       {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999", "CPU", "cuda1"})
    CHECK_FALSE(parse_device(text, wish));
}

TEST_CASE(
    "a GPU that was asked for by name and is not there is an error, before anything is made") {
  RowsInTwo cut;
  auto none = cut.repair("out", on_none(DeviceKind::kCuda));
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().kind == ErrorKind::kIo);
  CHECK(none.error().message.find("there is no driver") != std::string::npos);
  FakeGpu gpu;
  DeviceOptions second = on(gpu);
  second.index = 1;
  auto other = cut.repair("out", second);
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().advice.find("Fake 1") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(cut.folder / "out"));
  CHECK(gpu.runs == 0);
}

TEST_CASE("without a GPU, or with little to make, auto is the CPU and says why") {
  RowsInTwo cut;
  auto result = cut.repair("out", on_none(DeviceKind::kAuto));
  REQUIRE(result.has_value());
  CHECK(result->device.device == "cpu");
  CHECK(result->device.why.find("worth") != std::string::npos);
  auto asked = cut.repair("asked", on_none(DeviceKind::kCpu));
  REQUIRE(asked.has_value());
  CHECK(asked->device.why == "it was asked for");
}

TEST_CASE("of much to make auto takes what is predicted to be sooner, with both times") {
  const Extents shape{std::int64_t{1} << 15, std::int64_t{1} << 14};
  ProgramBuilder builder;
  OutputId output = builder.add_output("w", Dtype::kBfloat16, shape, whole(shape));
  builder.place(output, "f", 0);
  SourceId source = builder.add_stored(0, "f", 0, std::uint64_t{4} << 29);
  builder.add_copy(output, whole(shape), source, Dtype::kFloat32, 0, byte_strides(shape, 4));
  Program program = builder.take();
  REQUIRE(prove(program).has_value());

  DeviceOptions wish;
  wish.gpu_start = 0;
  std::chrono::milliseconds pause{20};
  wish.gpus = [&pause] {
    return Gpus{{{2, "Fake 1", 1 << 30}}, "", [&pause](int) -> Result<std::unique_ptr<Executor>> {
                  return std::make_unique<PausingExecutor>(pause);
                }};
  };
  auto slow = choose_executors(wish, program);
  REQUIRE(slow.has_value());
  CHECK(slow->use().device == "cpu");
  CHECK(slow->use().why.find("on Fake 1") != std::string::npos);
  pause = {};
  auto quick = choose_executors(wish, program);
  REQUIRE(quick.has_value());
  CHECK(quick->use().device == "cuda:2");
  CHECK(quick->use().why.find("predicted") != std::string::npos);
  // A GPU that fails in its first sample is not used.
  FakeGpu broken{0};
  DeviceOptions failing = on(broken);
  failing.kind = DeviceKind::kAuto;
  failing.gpu_start = 0;
  auto left = choose_executors(failing, program);
  REQUIRE(left.has_value());
  CHECK(left->use().device == "cpu");
  CHECK(left->use().why.find(kFault) != std::string::npos);
  // GPUs are not looked for if the CPU is done before one could start.
  wish.gpu_start = 1e6;
  wish.gpus = []() -> Gpus { throw std::logic_error("looked for"); };
  auto soon = choose_executors(wish, program);
  REQUIRE(soon.has_value());
  CHECK(soon->use().device == "cpu");
}

TEST_CASE("a GPU makes the same bytes, and the answer names it") {
  RowsInTwo cut;
  FakeGpu gpu;
  auto by_gpu = cut.repair("gpu", on(gpu));
  auto by_cpu = cut.repair("cpu", on_none(DeviceKind::kCpu));
  REQUIRE(by_gpu.has_value());
  REQUIRE(by_cpu.has_value());
  CHECK(by_gpu->device.device == "cuda:0");
  CHECK(by_gpu->device.failed.empty());
  CHECK(gpu.runs > 0);
  CHECK(cut.payload("gpu") == cut.payload("cpu"));
}

TEST_CASE("where a GPU fails under way the CPU makes that slab again, and the answer says so") {
  RowsInTwo cut;
  auto by_cpu = cut.repair("cpu", on_none(DeviceKind::kCpu));
  REQUIRE(by_cpu.has_value());
  for (int good : {0, 1}) {
    CAPTURE(good);
    FakeGpu gpu{good};
    std::string out = "out" + std::to_string(good);
    auto result = cut.repair(out, on(gpu));
    REQUIRE(result.has_value());
    CHECK(result->device.failed == kFault);
    CHECK(cut.payload(out) == cut.payload("cpu"));
  }
}

TEST_CASE("a run that is to stop with its GPU leaves what another device goes on with") {
  RowsInTwo cut;
  auto by_cpu = cut.repair("cpu", on_none(DeviceKind::kCpu));
  REQUIRE(by_cpu.has_value());
  FakeGpu gpu{1};
  auto stopped = cut.repair("out", on(gpu, OnDeviceError::kStop));
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().message.find(kFault) != std::string::npos);
  CHECK(stopped.error().advice.find("resume") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(cut.folder / "out"));
  auto resumed =
      verbs::resume(posix_store(), cut.folder / "out", {kDefaultMemory, on_none(DeviceKind::kCpu)});
  if (!resumed) FAIL(resumed.error().message);
  CHECK(cut.payload("out") == cut.payload("cpu"));
}

TEST_CASE("a process takes all GPUs, one of several on a machine takes its own") {
  std::mutex guard;
  std::set<int> opened_on;
  auto three = [&] {
    Gpus gpus{{{0, "A", 1 << 30}, {2, "B", 1 << 30}, {5, "C", 1 << 30}}, "", {}};
    gpus.open = [&](int index) -> Result<std::unique_ptr<Executor>> {
      std::lock_guard lock(guard);
      opened_on.insert(index);
      return cpu_executor();
    };
    return gpus;
  };
  struct {
    std::optional<int> local_rank;
    int index;
    std::set<int> taken;
    std::string device;
  } cases[] = {{std::nullopt, kAnyGpu, {0, 2, 5}, "cuda:0,2,5"},
               {0, kAnyGpu, {0}, "cuda:0"},
               {1, kAnyGpu, {2}, "cuda:2"},
               {4, kAnyGpu, {2}, "cuda:2"},
               {1, 5, {5}, "cuda:5"},
               {std::nullopt, 0, {0}, "cuda:0"}};
  Program nothing;
  for (const auto& one : cases) {
    opened_on.clear();
    DeviceOptions wish{DeviceKind::kCuda, one.index, OnDeviceError::kCpu, three, one.local_rank};
    auto executors = choose_executors(wish, nothing);
    REQUIRE(executors.has_value());
    std::byte none[1] = {};
    for (int thread = 0; thread < 6; ++thread) {
      auto executor = executors->make();
      CHECK(executor->run({std::span(none, 0), {}, {}, std::span(none, 0)}).has_value());
    }
    CHECK(opened_on == one.taken);
    CHECK(executors->use().device == one.device);
  }
}
