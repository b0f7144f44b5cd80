#include "core/facts/reference/equal_tensors.h"

#include <atomic>
#include <filesystem>

#include "core/cluster/loopback.h"
#include "core/cluster/transport_team.h"
#include "core/facts/reference/reference_bytes.h"
#include "core/faulty_store.h"
#include "core/formats/open.h"
#include "core/rules/reference/against_support.h"

using namespace shw;

namespace {

Values numbered(std::int64_t count) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(i % 8191);
  return values;
}

struct Two {
  TemporaryFolder folder;
  std::shared_ptr<const Checkpoint> one, two;
};

void write_two(Two& two, const std::vector<MadeTensor>& one, const std::vector<MadeTensor>& other) {
  write_checkpoint(two.folder / "one", one);
  write_checkpoint(two.folder / "two", other);
  two.one = opened(two.folder / "one");
  two.two = opened(two.folder / "two");
}

Result<std::set<TensorId>> found_equal(const Checkpoint& one, const Checkpoint& two,
                                       Progress* progress = nullptr, Team* team = nullptr) {
  std::vector<std::optional<TensorId>> counterparts;
  for (TensorId tensor : one.tensors()) counterparts.push_back(two.find(one.fqn(tensor)));
  CheckInput input{one, nullptr, nullptr, {}, {}, {}, {}, Depth::kData, &two, counterparts};
  return equal_to_reference(input, progress, team);
}

bool is_first_equal(const Checkpoint& one, const Checkpoint& two) {
  auto equal = found_equal(one, two);
  REQUIRE(equal.has_value());
  return equal->contains(TensorId{0});
}

// A safetensors file with one tensor "w" of that shape.
std::string safetensors_of(const std::string& shape, std::size_t bytes) {
  std::string header = R"({"w":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":[0,)" +
                       std::to_string(bytes) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header;
}

}  // namespace

TEST_CASE("equal bytes are told chunk by chunk, as a slow look at the whole says it") {
  for (std::int64_t rows : {std::int64_t{8}, std::int64_t{64}}) {
    Extents shape{rows, 1024};
    Values values = numbered(rows * 1024);
    for (std::int64_t changed : {std::int64_t{-1}, std::int64_t{0}, rows * 512, rows * 1024 - 1}) {
      CAPTURE(rows);
      CAPTURE(changed);
      Values others = values;
      if (changed >= 0) others[static_cast<std::size_t>(changed)] += 1;
      Two two;
      write_two(two, {cut_in_rows("w", shape, values, 4)}, {cut_in_rows("w", shape, others, 4)});
      bool slowly =
          read_tensor(*two.one, TensorId{0})->bytes == read_tensor(*two.two, TensorId{0})->bytes;
      CHECK(slowly == (changed < 0));
      CHECK(is_first_equal(*two.one, *two.two) == slowly);
      CHECK(is_first_equal(*two.one, *two.one));
    }
  }
}

TEST_CASE("other boxes or another shape are not compared piece by piece") {
  Values values = numbered(64);
  Two two;
  write_two(two, {cut_in_rows("w", {8, 8}, values, 2)}, {cut_in_rows("w", {8, 8}, values, 4)});
  CHECK_FALSE(is_first_equal(*two.one, *two.two));
  Two shapes;
  write_two(shapes, {cut_in_rows("w", {8, 8}, values, 1)}, {cut_in_rows("w", {16, 4}, values, 1)});
  CHECK_FALSE(is_first_equal(*shapes.one, *shapes.two));
}

TEST_CASE("raw items larger than a block are compared to their last byte") {
  constexpr std::size_t kBytes = 9 * 1024 * 1024;  // a block is 8 MiB
  for (std::ptrdiff_t changed : {-1, 0, 8 * 1024 * 1024 + 5, 9 * 1024 * 1024 - 1}) {
    CAPTURE(changed);
    TemporaryFolder folder;
    std::string payload(kBytes, 'x');
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 31 % 251);
    const std::string header = safetensors_of("[9216,1024]", kBytes);
    put(folder / "one.safetensors", header + payload);
    if (changed >= 0) payload[static_cast<std::size_t>(changed)] ^= 1;
    put(folder / "two.safetensors", header + payload);
    auto one = opened(folder / "one.safetensors"), two = opened(folder / "two.safetensors");
    CHECK(is_first_equal(*one, *two) == (changed < 0));
  }
}

TEST_CASE("a tile of many parts is compared in all of them, and holes next to holes are not read") {
  constexpr std::size_t kBytes = std::size_t{200} << 20;  // a part is 64 MiB
  const std::string header = safetensors_of("[" + std::to_string(kBytes) + "]", kBytes);
  for (std::ptrdiff_t changed : {-1, 100 << 20, (200 << 20) - 1}) {
    CAPTURE(changed);
    TemporaryFolder folder;
    for (const char* name : {"one.safetensors", "two.safetensors"}) {
      put(folder / name, header);
      std::filesystem::resize_file(folder / name, header.size() + kBytes);
    }
    if (changed >= 0) {
      std::fstream file(folder / "two.safetensors", std::ios::in | std::ios::out);
      file.seekp(static_cast<std::ptrdiff_t>(header.size()) + changed);
      file.put('x');
    }
    auto one = opened(folder / "one.safetensors"), two = opened(folder / "two.safetensors");
    CHECK(is_first_equal(*one, *two) == (changed < 0));
  }
}

TEST_CASE("what has to be decoded is compared by what it decodes to") {
  auto compressed = opened(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_zstd/ckpt");
  Values values;
  for (std::int64_t i = 0; i < 9 * 16; ++i) values.push_back(i);
  for (std::int64_t changed : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{9 * 16 - 1}}) {
    CAPTURE(changed);
    Values others = values;
    if (changed >= 0) others[static_cast<std::size_t>(changed)] += 1;
    TemporaryFolder folder;
    write_checkpoint(folder / "plain", {cut_in_rows("w", {9, 16}, others, 2)});
    auto plain = opened(folder / "plain");
    CHECK(is_first_equal(*compressed, *plain) == (changed < 0));
    CHECK(is_first_equal(*plain, *compressed) == (changed < 0));
  }
  // A copy of the items in another folder, so that both sides are decoded.
  TemporaryFolder folder;
  std::filesystem::copy(std::string(SHW_TEST_DATA) + "/torch-2.14/healthy_zstd/ckpt",
                        folder / "copy", std::filesystem::copy_options::recursive);
  CHECK(is_first_equal(*compressed, *opened(folder / "copy")));
}

TEST_CASE("a team finds the tensors that one finds equal, and reads each byte once") {
  std::vector<MadeTensor> left, right;
  for (std::int64_t t = 0; t < 30; ++t) {
    Values values = numbered(64 * 64), others = values;
    if (t % 3 == 1) others[static_cast<std::size_t>(t * 7)] += 1;
    const std::string name = "layers." + std::to_string(t) + ".w";
    left.push_back(cut_in_rows(name, {64, 64}, values, 4));
    right.push_back(cut_in_rows(name, {64, 64}, others, 4));
  }
  Two two;
  write_two(two, left, right);
  auto alone = found_equal(*two.one, *two.two);
  REQUIRE(alone.has_value());
  CHECK(alone->size() == 20);
  std::atomic<std::uint64_t> bytes{0};
  auto counted = [&](const std::string& path) {
    auto folder = posix_store().read_folder(path);
    REQUIRE(folder.has_value());
    auto checkpoint = open_checkpoint(
        faulty_directory(*folder, [&](const std::string&, std::uint64_t, std::size_t length) {
          bytes += length;
          return std::nullopt;
        }));
    REQUIRE(checkpoint.has_value());
    return *checkpoint;
  };
  auto one = counted(two.folder / "one"), other = counted(two.folder / "two");
  std::uint64_t by_one = 0;
  for (int members : {1, 3}) {
    bytes = 0;
    auto ended = run_on_threads(members, {}, [&](Transport& transport) -> Status {
      TransportTeam team(transport, std::chrono::seconds(60));
      SHW_TRY(auto equal, found_equal(*one, *other, nullptr, &team));
      CHECK(equal == *alone);
      return {};
    });
    for (const Status& each : ended) CHECK(each.has_value());
    if (members == 1) by_one = bytes;
    CHECK(bytes == by_one);
  }
  CHECK(by_one > 2 * 20 * 64 * 64);
}

TEST_CASE("a comparison that was cancelled says so and finds nothing") {
  Values values = numbered(64);
  Two two;
  write_two(two, {cut_in_rows("w", {8, 8}, values, 2)}, {cut_in_rows("w", {8, 8}, values, 2)});
  Progress progress;
  progress.cancel();
  auto equal = found_equal(*two.one, *two.two, &progress);
  REQUIRE_FALSE(equal.has_value());
  CHECK(equal.error().kind == ErrorKind::kCancelled);
}
