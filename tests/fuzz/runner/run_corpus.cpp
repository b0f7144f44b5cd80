// Stands in for libFuzzer: runs a target over every file of its corpus as it is, then over changed
// copies of those files. The changes are the same in every run.
//
//   NAME_fuzz_corpus FOLDER [COPIES]   COPIES: how many changed copies of each file (default 0)
//
// The bytes that a target does not survive are left in NAME_fuzz_corpus.input next to the program.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void run(const std::string& bytes, const std::string& kept_as) {
  std::ofstream(kept_as, std::ios::binary) << bytes;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

class Changer {
 public:
  // One to four changes: bits, bytes and numbers that are replaced; a part that is cut, repeated or
  // taken from `other`; an end that is missing.
  std::string changed(std::string bytes, const std::string& other) {
    for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes)
      change(bytes, other);
    return bytes;
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

  void change(std::string& bytes, const std::string& other) {
    static constexpr char kEdges[] = {0, 1, 0x7f, static_cast<char>(0x80), static_cast<char>(0xff)};
    const std::size_t at = below(bytes.size());
    const std::size_t length = 1 + below(std::min<std::size_t>(bytes.size() - at, 64));
    switch (below(7)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.replace(at, length, length, kEdges[below(std::size(kEdges))]);
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(below(bytes.size()), bytes.substr(at, length));
        break;
      case 5:
        bytes.replace(at, length, other.substr(below(other.size()), length));
        break;
      default:
        bytes.resize(at);
        break;
    }
  }

  std::mt19937 random_{20'261'128};
};

std::vector<std::string> files_below(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return files;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 3;
  const std::vector<std::string> files = files_below(arguments[1]);
  const std::string kept_as = std::string(arguments[0]) + ".input";
  const long copies = count > 2 ? std::atol(arguments[2]) : 0;
  for (const std::string& file : files) run(file, kept_as);
  Changer changer;
  for (long copy = 0; copy < copies; ++copy)
    for (std::size_t i = 0; i < files.size(); ++i)
      run(changer.changed(files[i], files[(i + 1 + static_cast<std::size_t>(copy)) % files.size()]),
          kept_as);
  std::filesystem::remove(kept_as);
  std::printf("%zu inputs, and %ld changed copies of each\n", files.size(), copies);
  return files.empty() ? 1 : 0;  // a corpus that is not there tests nothing
}
