// Tests which folders a folder may include, and that includes have no cycles. The CMake targets
// enforce most of the first; this test enforces all of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Inside core: a room includes itself and the rooms above it in this table, nothing else. The order
// is design section 3's.
const Words kRooms = {"base",    "tensor",    "io",      "hdf5",    "model",     "mesh",  "tiles",
                      "formats", "hdf5_view", "spec",    "facts",   "combine",   "rules", "explain",
                      "program", "exec",      "cluster", "compare", "transform", "maps",  "learn",
                      "repair",  "report",    "verbs",   "session", "capi"};

struct Layer {
  std::string folder;
  Words own;      // headers of our folders that it may include
  Words foreign;  // prefixes of libraries' headers that it must not include
};

// nlohmann_json and its like may be used by core, but never by its headers: see kInSourcesOnly.
const std::vector<Layer> kLayers = {
    {"core", {"core/"}, {"imgui", "GLFW", "GL/", "EGL/", "cuda", "nccl", "CLI/"}},
    {"gpu",
     {"core/base/", "core/tensor/", "core/program/", "core/exec/", "core/cluster/", "gpu/"},
     {"imgui", "GLFW", "CLI/"}},
    {"views",
     {"core/", "views/"},
     {"GLFW", "GL/", "EGL/", "cuda", "nccl", "CLI/", "thread", "mutex", "fstream", "filesystem",
      "unistd.h", "fcntl.h"}},
    {"app", {"app/", "core/", "gpu/", "views/"}, {}},
};
// Parts of core that views may not include, although they may include the rest.
const Words kClosedToViews = {"core/io/sink.h",    "core/io/store.h",      "core/formats/open.h",
                              "core/formats/dcp/", "core/formats/common/", "core/formats/pickle/",
                              "core/formats/zip/"};
const Words kInSourcesOnly = {"nlohmann/", "zlib.h",  "libdeflate.h", "zstd.h", "fmt/",
                              "xxhash.h",  "pcre2.h", "hdf5.h",       "mpi.h",  "openssl/"};

bool starts_with_any(const std::string& text, const Words& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); });
}

bool is_ours(const std::string& include) {
  return starts_with_any(include, {"core/", "gpu/", "views/", "app/", "tests/"});
}

// Rank of the room that a path of core belongs to; nullopt for other paths.
std::optional<std::size_t> room_rank(const std::string& path) {
  if (!path.starts_with("core/")) return std::nullopt;
  std::string room = path.substr(5, path.find('/', 5) - 5);
  auto found = std::find(kRooms.begin(), kRooms.end(), room);
  if (found == kRooms.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kRooms.begin());
}

// The format's folder: "dcp" for "core/formats/dcp/dcp_read.h"; empty for files in core/formats
// itself.
std::string format_folder(const std::string& path) {
  std::size_t slash = path.find('/', 13);
  return path.starts_with("core/formats/") && slash != std::string::npos
             ? path.substr(13, slash - 13)
             : "";
}

// Folders of core/formats that include no other folder of it.
bool is_leaf_folder(const std::string& folder) {
  return folder == "pickle" || folder == "zip";
}

// Folders of core/formats that are not a format.
bool is_shared_folder(const std::string& folder) {
  return folder == "common" || folder == "items" || is_leaf_folder(folder);
}

// True if shared code of formats includes a format, or a format includes another one.
bool crosses_formats(const std::string& file, const std::string& include) {
  if (!file.starts_with("core/formats/") || !include.starts_with("core/formats/")) return false;
  std::string from = format_folder(file), to = format_folder(include);
  if (from.empty() || to == from) return false;
  if (is_leaf_folder(from)) return true;
  if (from == "common") return !is_leaf_folder(to);
  return !(to.empty() || is_shared_folder(to));
}

// True if code outside formats includes a format instead of traits, codec and writer. The demo may,
// because it writes DCP.
bool names_a_format(const std::string& file, const std::string& include) {
  std::string to = format_folder(include);
  return !to.empty() && !is_shared_folder(to) && !file.starts_with("core/formats/") &&
         !file.starts_with("core/verbs/demo");
}

// Reason why an include is forbidden; empty if it is allowed.
std::string violation(const Layer& layer, const std::string& file, const std::string& include) {
  if (is_ours(include) && !starts_with_any(include, layer.own)) return "may not be included here";
  if (starts_with_any(include, layer.foreign)) return "belongs to another layer";
  auto from = room_rank(file), to = room_rank(include);
  if (from && to && *to > *from) return "is a room further down the table";
  if (crosses_formats(file, include)) return "is another format's, or not for what they share";
  if (names_a_format(file, include)) return "is one format's: nobody else may know it";
  if (layer.folder == "views" && starts_with_any(include, kClosedToViews))
    return "opens files: views draw what they are given";
  bool header = file.ends_with(".h") && !file.ends_with("/json.h");
  if (layer.folder == "core" && header && starts_with_any(include, kInSourcesOnly))
    return "is for .cpp files only";
  return {};
}

// The included path; empty if the line is not an include.
std::string included_by(const std::string& line) {
  std::size_t at = line.find_first_not_of(" \t");
  if (at == std::string::npos || line.compare(at, 1, "#") != 0) return {};
  at = line.find("include", at);
  std::size_t open = line.find_first_of("<\"", at);
  if (at == std::string::npos || open == std::string::npos) return {};
  std::size_t close = line.find_first_of(">\"", open + 1);
  if (close == std::string::npos) return {};
  return line.substr(open + 1, close - open - 1);
}

Words violations_in(const Layer& layer, const std::string& file, std::istream& lines) {
  Words found;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::string include = included_by(line);
    if (include.empty()) continue;
    std::string problem = violation(layer, file, include);
    if (!problem.empty())
      found.push_back(file + ":" + std::to_string(number) + ": " + include + " " + problem);
  }
  return found;
}

// The includes of a header and its source together, by their path without the ending.
using Includes = std::map<std::string, std::set<std::string>>;

std::string without_ending(const std::string& path) {
  return path.substr(0, path.rfind('.'));
}

void add_includes(const std::string& file, std::istream& lines, Includes& includes) {
  std::string from = without_ending(file), line;
  std::set<std::string>& to = includes[from];
  while (std::getline(lines, line)) {
    std::string include = included_by(line);
    if (is_ours(include) && without_ending(include) != from) to.insert(without_ending(include));
  }
}

// Visits the includes of `file`, which was reached by `way`, and adds every cycle that it finds.
void walk(const std::string& file, const Includes& includes, Words& way,
          std::set<std::string>& finished, Words& circles) {
  if (auto met = std::find(way.begin(), way.end(), file); met != way.end()) {
    std::string circle = file;
    for (auto next = met + 1; next != way.end(); ++next) circle += " includes " + *next;
    circles.push_back(circle + " includes " + file);
    return;
  }
  auto found = includes.find(file);
  if (found == includes.end() || finished.contains(file)) return;
  way.push_back(file);
  for (const std::string& next : found->second) walk(next, includes, way, finished, circles);
  way.pop_back();
  finished.insert(file);
}

// Empty if there is no cycle.
Words circles_in(const Includes& includes) {
  Words circles, way;
  std::set<std::string> finished;
  for (const auto& [file, included] : includes) walk(file, includes, way, finished, circles);
  return circles;
}

bool is_source(const fs::path& path) {
  std::string extension = path.extension().string();
  return extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh";
}

Words planted(const std::string& folder, const std::string& file, const std::string& text) {
  for (const Layer& layer : kLayers) {
    std::istringstream lines(text);
    if (layer.folder == folder) return violations_in(layer, file, lines);
  }
  return {};
}

}  // namespace

TEST_CASE("no file includes what its folder may not know") {
  fs::path root = SHW_SOURCE_DIR;
  std::size_t seen = 0;
  for (const Layer& layer : kLayers) {
    if (!fs::exists(root / layer.folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / layer.folder)) {
      if (!is_source(entry.path())) continue;
      std::ifstream lines(entry.path());
      ++seen;
      for (const std::string& problem :
           violations_in(layer, fs::relative(entry.path(), root).string(), lines))
        FAIL_CHECK(problem);
    }
  }
  CHECK(seen > 50);
}

TEST_CASE("a planted violation of the layers is found, and what is allowed is not") {
  CHECK(planted("core", "core/a.cpp", "#include \"views/theme.h\"\n").size() == 1);
  CHECK(planted("core", "core/a.cpp", "#  include <imgui.h>\n").size() == 1);
  CHECK(planted("core", "core/a.h", "#include <nlohmann/json.hpp>\n").size() == 1);
  CHECK(planted("core", "core/a.cpp", "#include <nlohmann/json.hpp>\n").empty());
  CHECK(
      planted("core", "core/rules/tiles/a.cpp", "#include \"core/repair/plan/plan.h\"\n").size() ==
      1);
  CHECK(planted("core", "core/rules/tiles/a.cpp", "#include \"core/facts/facts.h\"\n").empty());
  CHECK(planted("core", "core/spec/a.cpp", "#include \"core/rules/check.h\"\n").size() == 1);
  CHECK(planted("core", "core/mesh/a.h", "#include \"core/spec/spec.h\"\n").size() == 1);
  CHECK(planted("core", "core/formats/dcp/a.cpp",
                "#include \"core/formats/safetensors/safetensors.h\"\n")
            .size() == 1);
  CHECK(planted("core", "core/formats/common/a.cpp", "#include \"core/formats/items/items.h\"\n")
            .size() == 1);
  CHECK(planted("core", "core/formats/common/a.cpp", "#include \"core/formats/zip/zip.h\"\n")
            .empty());
  CHECK(planted("core", "core/formats/zip/a.cpp", "#include \"core/formats/common/codecs.h\"\n")
            .size() == 1);
  CHECK(planted("core", "core/formats/dcp/a.cpp", "#include \"core/formats/items/items.h\"\n")
            .empty());
  CHECK(
      planted("core", "core/repair/a.cpp", "#include \"core/formats/dcp/dcp_write.h\"\n").size() ==
      1);
  CHECK(planted("core", "core/repair/a.cpp", "#include \"core/formats/zip/zip.h\"\n").empty());
  CHECK(planted("views", "views/a.cpp", "#include \"core/formats/open.h\"\n").size() == 1);
  CHECK(planted("views", "views/a.cpp", "#include <thread>\n").size() == 1);
  CHECK(planted("views", "views/a.cpp", "#include <imgui.h>\n").empty());
  CHECK(planted("gpu", "gpu/a.cu", "#include \"core/model/checkpoint.h\"\n").size() == 1);
  CHECK(planted("app", "app/cli/a.cpp", "#include \"core/io/sink.h\"\n").empty());
}

TEST_CASE("no files include each other in a circle") {
  fs::path root = SHW_SOURCE_DIR;
  Includes includes;
  for (const Layer& layer : kLayers) {
    if (!fs::exists(root / layer.folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / layer.folder)) {
      std::string file = fs::relative(entry.path(), root).string();
      if (!is_source(entry.path())) continue;
      std::ifstream lines(entry.path());
      add_includes(file, lines, includes);
    }
  }
  CHECK(includes.size() > 50);
  for (const std::string& circle : circles_in(includes)) FAIL_CHECK(circle);
}

TEST_CASE("a planted circle of files is found and said from end to end") {
  Includes includes;
  auto plant = [&](const std::string& file, const std::string& text) {
    std::istringstream lines(text);
    add_includes(file, lines, includes);
  };
  plant("core/mesh/a.h", "#include <vector>\n");
  plant("core/mesh/a.cpp", "#include \"core/mesh/a.h\"\n#include \"core/mesh/b.h\"\n");
  plant("core/mesh/b.h", "#include \"core/base/ids.h\"\n");
  plant("core/mesh/c.h", "#include \"core/mesh/a.h\"\n#include \"core/mesh/b.h\"\n");
  CHECK(circles_in(includes).empty());
  plant("core/mesh/b.cpp", "#include \"core/mesh/c.h\"\n");
  Words circles = circles_in(includes);
  REQUIRE(circles.size() == 2);
  CHECK(circles.front() ==
        "core/mesh/a includes core/mesh/b includes core/mesh/c includes core/mesh/a");
}

TEST_CASE("every folder of core is in the table of rooms") {
  for (const auto& entry : fs::directory_iterator(fs::path(SHW_SOURCE_DIR) / "core")) {
    if (!entry.is_directory()) continue;
    std::string path = "core/" + entry.path().filename().string() + "/";
    CHECK_MESSAGE(room_rank(path).has_value(), path);
  }
}

// Two types of one name in one namespace are one type to the linker, whatever their members.
TEST_CASE("no two headers define a type of one name") {
  fs::path root = SHW_SOURCE_DIR;
  std::map<std::string, std::string> header_of;
  for (const char* folder : {"core", "views", "gpu", "app"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || entry.path().extension() != ".h") continue;
      const std::string path = fs::relative(entry.path(), root).string();
      std::ifstream file(entry.path());
      std::string line, in;
      while (std::getline(file, line)) {
        if (line.starts_with("namespace ")) in = line;
        if (!line.ends_with("{")) continue;
        std::istringstream words(line);
        std::string kind, name;
        words >> kind >> name;
        if (kind == "enum" && name == "class") words >> name;
        if (kind != "struct" && kind != "class" && kind != "enum") continue;
        if (line[0] == ' ' || name.ends_with(";")) continue;
        auto [known, is_new] = header_of.emplace(in + name, path);
        CHECK_MESSAGE((is_new || known->second == path),
                      name << " is defined in " << known->second << " and in " << path);
      }
    }
  }
  CHECK(header_of.size() > 500);
}

// A unity build compiles sources of one library as one file, where their constants meet.
TEST_CASE("no two sources of a library define a constant of one name") {
  fs::path root = SHW_SOURCE_DIR;
  std::map<std::string, std::string> source_of;  // by library and name
  const std::regex definition("(?:inline |static )*constexpr .*?\\b(k[A-Z]\\w*)(?:\\{| =|\\[).*");
  for (const char* folder : {"core", "views", "gpu", "app"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || entry.path().extension() != ".cpp") continue;
      const std::string path = fs::relative(entry.path(), root).string();
      const std::string library =
          room_rank(path) ? path.substr(0, path.find('/', 5)) : std::string(folder);
      std::ifstream file(entry.path());
      std::string line;
      std::smatch name;
      while (std::getline(file, line)) {
        if (!std::regex_match(line, name, definition)) continue;
        auto [known, is_new] = source_of.emplace(library + " " + name[1].str(), path);
        CHECK_MESSAGE((is_new || known->second == path),
                      name[1].str() << " is defined in " << known->second << " and in " << path);
      }
    }
  }
  CHECK(source_of.size() > 300);
}

TEST_CASE("nobody asks which format a checkpoint has, but for its traits") {
  fs::path root = SHW_SOURCE_DIR;
  for (const char* folder : {"core", "views", "app"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      std::string path = fs::relative(entry.path(), root).string();
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      if (path.starts_with("core/formats/")) continue;
      for (const char* asked :
           {"format().name ==", "format().name !=", "format() ==", "format() !=", "encoding()",
            "is_safetensors", "kDcpFormat", "kSafetensorsFormat"})
        CHECK_MESSAGE(text.str().find(asked) == std::string::npos, path << ": " << asked);
    }
  }
}
