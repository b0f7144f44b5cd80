// Archives of NeMo: a checkpoint of another format in a tar file.
#include "core/formats/items/items.h"
#include "core/formats/tar/tar_directory.h"
#include "core/formats/torch_file/torch_file_support.h"

using namespace shw;
using namespace shw::test;

namespace {

constexpr std::size_t kBlockOfTar = 512;

std::string tar_entry(const std::string& name, const std::string& data, char type = '0') {
  std::string block(kBlockOfTar, '\0');
  auto put = [&](std::size_t at, const std::string& text) { block.replace(at, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  char size[13];
  std::snprintf(size, sizeof size, "%011zo", data.size());
  put(124, std::string(size, 11));
  put(136, "00000000000");
  block[156] = type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(148, "        ");
  unsigned sum = 0;
  for (char c : block) sum += static_cast<unsigned char>(c);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  put(148, std::string(text, 6) + std::string(1, '\0') + " ");
  std::string padded = data;
  padded.resize((data.size() + kBlockOfTar - 1) / kBlockOfTar * kBlockOfTar);
  return block + padded;
}

std::string nemo_archive() {
  const std::string model = state_dict_file(pickled_dict({{"weight", tensor_call({})}}),
                                            {{"m/data/0", std::string(24, '\1')}});
  return tar_entry("./", "", '5') + tar_entry("./model_config.yaml", "a: 1\n") +
         tar_entry("././@LongLink", "./" + std::string(120, 'n') + ".txt", 'L') +
         tar_entry("./nnn", "x") + tar_entry("./model_weights.ckpt", model) +
         std::string(2 * kBlockOfTar, '\0');
}

OpenedCheckpoint open_nemo_bytes(const std::string& bytes) {
  return open_checkpoint(memory_directory("run", {{"m.nemo", to_bytes(bytes)}}));
}

}  // namespace

TEST_CASE("nemo: the checkpoint in the archive opens and reads") {
  auto opened = open_nemo_bytes(nemo_archive());
  REQUIRE_MESSAGE(opened.has_value(), opened.error().message);
  REQUIRE((*opened)->tensor_count() == 1);
  CHECK((*opened)->fqn(TensorId{0}) == "weight");
  CHECK(read_tensor(**opened, TensorId{0}).has_value());
}

TEST_CASE("tar: files have their names, long ones too, and links are passed over") {
  auto tar = open_tar(memory_source("m", to_bytes(nemo_archive())), "m");
  REQUIRE_MESSAGE(tar.has_value(), tar.error().message);
  CHECK((*tar)->list()->size() == 3);
  CHECK((*tar)->stat(std::string(120, 'n') + ".txt").size == 1);
  auto link =
      open_tar(memory_source("m", to_bytes(tar_entry("a", "", '2') + tar_entry("../b", "x") +
                                           std::string(1024, '\0'))),
               "m");
  REQUIRE(link.has_value());
  CHECK((*link)->list()->empty());
}

TEST_CASE("nemo: one that is compressed, cut off or no archive is refused") {
  auto zipped = open_nemo_bytes("\x1f\x8b and more");
  REQUIRE_FALSE(zipped.has_value());
  CHECK(zipped.error().message.find("gzip") != std::string::npos);
  const std::string all = nemo_archive();
  for (std::size_t length = 0; length + 1024 < all.size(); length += 300)
    CHECK_FALSE(open_nemo_bytes(all.substr(0, length)).has_value());
  CHECK_FALSE(open_nemo_bytes(std::string(2000, 'x')).has_value());
}

TEST_CASE("nemo: every byte of its headers wrong is answered") {
  const std::string all = nemo_archive();
  for (std::size_t at = 0; at < 3 * kBlockOfTar; at += 3) {
    std::string bent = all;
    bent[at] = static_cast<char>(bent[at] ^ 0x41);
    (void)open_nemo_bytes(bent);
  }
}
