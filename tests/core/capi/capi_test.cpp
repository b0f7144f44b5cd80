// The C interface, as a C program would call it.
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/capi/shardwright.h"
#include "core/facts/values/quant_numbers.h"
#include "core/formats/open.h"
#include "core/temporary_folder.h"

using namespace shw;

namespace {

std::string data(const std::string& path) {
  return SHW_TEST_DATA "/" + path;
}

struct Close {
  void operator()(shw_checkpoint* checkpoint) const { shw_close(checkpoint); }
  void operator()(char* text) const { shw_free(text); }
};
using OpenCheckpoint = std::unique_ptr<shw_checkpoint, Close>;
using Text = std::unique_ptr<char, Close>;

OpenCheckpoint opened(const std::string& path, const shw_options* options = nullptr) {
  OpenCheckpoint checkpoint(shw_open(path.c_str(), options));
  REQUIRE_MESSAGE(checkpoint != nullptr, shw_last_error()->message);
  return checkpoint;
}

shw_tensor tensor_of(const OpenCheckpoint& checkpoint, std::uint64_t index) {
  shw_tensor tensor{};
  tensor.size = sizeof tensor;
  REQUIRE(shw_get_tensor(checkpoint.get(), index, &tensor) == 0);
  return tensor;
}

std::uint64_t index_of_name(const OpenCheckpoint& checkpoint, const std::string& name) {
  const std::int64_t found = shw_find_tensor(checkpoint.get(), name.data(), name.size());
  REQUIRE(found >= 0);
  return static_cast<std::uint64_t>(found);
}

}  // namespace

TEST_CASE("boxes read through C are those of the engine") {
  std::mt19937 random(5);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (const char* path : {"torch-2.14/healthy_grid/ckpt", "torch-2.14/healthy_zstd/ckpt",
                           "torch-2.14/healthy_dtypes/ckpt", "torch-2.14/healthy_rank_local/ckpt",
                           "torch-2.14/healthy_fsdp_tp_strided/ckpt"}) {
    CAPTURE(path);
    auto checkpoint = opened(data(path));
    auto wanted = open_checkpoint(data(path));
    REQUIRE(wanted.has_value());
    const Checkpoint& model = **wanted;
    REQUIRE(shw_tensor_count(checkpoint.get()) == model.tensor_count());
    for (TensorId id : model.tensors()) {
      const auto index = index_of_name(checkpoint, std::string(model.fqn(id)));
      const shw_tensor tensor = tensor_of(checkpoint, index);
      CHECK(std::string(tensor.name, tensor.name_bytes) == model.fqn(id));
      CHECK(std::string(tensor.dtype) == name(model.dtype(id)));
      for (int round = 0; round < 4; ++round) {
        std::vector<std::int64_t> start, stop;
        Box box;
        std::uint64_t bytes = tensor.element_bytes;
        for (std::uint32_t d = 0; d < tensor.ndim; ++d) {
          const std::int64_t from = round == 0 ? 0 : pick(0, tensor.shape[d]);
          const std::int64_t to = round == 0 ? tensor.shape[d] : pick(from, tensor.shape[d]);
          start.push_back(from);
          stop.push_back(to);
          box.offsets.push_back(from);
          box.sizes.push_back(to - from);
          bytes *= static_cast<std::uint64_t>(to - from);
        }
        std::vector<std::byte> got(bytes);
        REQUIRE_MESSAGE(
            shw_read(checkpoint.get(), index, start.data(), stop.data(), got.data(), bytes) == 0,
            shw_last_error()->message);
        if (bytes == 0) continue;
        auto same = read_box_bytes(model, id, box);
        REQUIRE(same.has_value());
        REQUIRE(same->size() == got.size());
        CHECK(std::memcmp(same->data(), got.data(), got.size()) == 0);
      }
    }
  }
}

TEST_CASE("a chunk in one run of a file can be mapped, and another cannot") {
  auto plain = opened(data("torch-2.14/healthy_grid/ckpt"));
  shw_run run{};
  run.size = sizeof run;
  REQUIRE(shw_find_run(plain.get(), index_of_name(plain, "cube"), 0, &run) == 0);
  CHECK(std::string(run.path).starts_with("/"));
  CHECK(run.length > 0);
  auto packed = opened(data("torch-2.14/healthy_zstd/ckpt"));
  CHECK(shw_find_run(packed.get(), 0, 0, &run) == 1);
}

TEST_CASE("what is asked wrongly through C is an error with a code") {
  CHECK(shw_open("/no/such/checkpoint", nullptr) == nullptr);
  CHECK(std::string(shw_last_error()->code) == "system_refused");
  CHECK(shw_open(nullptr, nullptr) == nullptr);
  CHECK(std::string(shw_last_error()->code) == "usage");
  CHECK(shw_public_path(nullptr) == nullptr);
  auto checkpoint = opened(data("torch-2.14/healthy_grid/ckpt"));
  const auto refuses = [](int status) {
    return status == -1 && std::string(shw_last_error()->code) == "usage";
  };
  shw_tensor tensor{};
  CHECK(refuses(shw_get_tensor(checkpoint.get(), 0, &tensor)));  // size is 0
  tensor.size = sizeof tensor;
  CHECK(refuses(shw_get_tensor(checkpoint.get(), 1 << 20, &tensor)));
  shw_chunk chunk{};
  chunk.size = sizeof chunk;
  CHECK(refuses(shw_get_chunk(checkpoint.get(), 0, 1 << 20, &chunk)));
  CHECK(shw_find_tensor(checkpoint.get(), "cube ", 5) == -1);
  const auto cube = index_of_name(checkpoint, "cube");
  tensor = tensor_of(checkpoint, cube);
  std::vector<std::int64_t> start(tensor.ndim, 0), stop(tensor.ndim, 1);
  std::vector<std::byte> room(16 * tensor.element_bytes);
  CHECK(refuses(shw_read(checkpoint.get(), cube, start.data(), stop.data(), room.data(), 1)));
  stop[0] = tensor.shape[0] + 1;
  CHECK(refuses(shw_read(checkpoint.get(), cube, start.data(), stop.data(), room.data(),
                         tensor.element_bytes)));
  stop[0] = -1;
  CHECK(refuses(shw_read(checkpoint.get(), cube, start.data(), stop.data(), room.data(), 0)));
}

TEST_CASE("secrets of a URL are in no error through C") {
  const std::string secret = "http://me:hunter2@127.0.0.1:1/model/x.safetensors?sig=hunter3";
  const auto error_has_secret = [] {
    const shw_error* error = shw_last_error();
    const std::string said = std::string(error->message) + error->file + error->advice;
    return said.find("hunter") != said.npos;
  };
  CHECK(std::string(shw_public_path(secret.c_str())) == "http://127.0.0.1:1/model/x.safetensors");
  CHECK(std::string(shw_public_path("/runs/a?b@c")) == "/runs/a?b@c");
  shw_options options{};
  options.size = sizeof options;
  options.spec = secret.c_str();
  CHECK(shw_open(data("torch-2.14/healthy_grid/ckpt").c_str(), &options) == nullptr);
  CHECK(!error_has_secret());
  CHECK(shw_open("http://me:hunter2@127.0.0.1:1/run/@latest", nullptr) == nullptr);
  CHECK(!error_has_secret());
}

TEST_CASE("an ssh that takes no more requests is an error through C, not a signal") {
  // It closes its stdin, then agrees to speak SFTP 3: the next request meets a closed pipe.
  const TemporaryFolder folder;
  const std::string ssh = folder / "ssh";
  std::ofstream(ssh) << "#!/bin/sh\nexec <&-\nprintf '\\0\\0\\0\\5\\2\\0\\0\\0\\3'\nsleep 1\n";
  ::chmod(ssh.c_str(), 0755);
  ::setenv("SHARDWRIGHT_SSH", ssh.c_str(), 1);
  CHECK(shw_open("ssh://host/runs/step_1", nullptr) == nullptr);
  ::unsetenv("SHARDWRIGHT_SSH");
  CHECK(std::string(shw_last_error()->message) == "the ssh connection ended");
}

TEST_CASE("answers through C are those of the program") {
  auto checkpoint = opened(data("torch-2.14/healthy_grid/ckpt"));
  for (auto* ask : {shw_info, shw_list}) {
    Text text(ask(checkpoint.get()));
    REQUIRE(text != nullptr);
    CHECK(std::string(text.get()).find("\"schema\"") != std::string::npos);
  }
  Text shown(shw_show(checkpoint.get(), 0));
  REQUIRE(shown != nullptr);
  CHECK(std::string(shown.get()).find("\"runs\"") != std::string::npos);
  CHECK(shw_show(checkpoint.get(), 1 << 20) == nullptr);
  Text found(shw_check(checkpoint.get(), 1));
  REQUIRE(found != nullptr);
  CHECK(std::string(found.get()).find("\"depth\": \"data\"") != std::string::npos);
  Text hash(shw_hash(checkpoint.get(), "cube")), stats(shw_stats(checkpoint.get(), "cube"));
  REQUIRE(hash != nullptr);
  REQUIRE(stats != nullptr);
  CHECK(shw_hash(checkpoint.get(), "no such tensor") == nullptr);
}

TEST_CASE("a caller in C can cancel, and hears how far a call is") {
  shw_options options{};
  options.size = sizeof options;
  int heard = 0;
  options.context = &heard;
  options.progress = [](void* context, std::uint64_t, std::uint64_t) {
    return ++*static_cast<int*>(context) > 0 ? 1 : 0;
  };
  // The call may end before it is cancelled, depending on the machine; both results are allowed.
  OpenCheckpoint checkpoint(shw_open(data("torch-2.14/healthy_moe_ep/ckpt").c_str(), &options));
  if (checkpoint == nullptr) {
    CHECK(heard > 0);
    CHECK(std::string(shw_last_error()->code) == "cancelled");
    return;
  }
  Text found(shw_check(checkpoint.get(), 1));
  if (found != nullptr) return;
  CHECK(heard > 0);
  CHECK(std::string(shw_last_error()->code) == "cancelled");
}

TEST_CASE("the options of a caller that knows fewer fields are taken") {
  shw_options options{};
  options.size = offsetof(shw_options, against);
  options.against = "/not/read";
  auto checkpoint = opened(data("torch-2.14/healthy_grid/ckpt"), &options);
  CHECK(std::string(shw_format(checkpoint.get())) == "dcp");
  CHECK(shw_api_version() == SHW_API_VERSION);
}
