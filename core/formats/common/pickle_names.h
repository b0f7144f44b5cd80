// Whose a name in a pickle is, and whether making an object of it can do more than hold data.
#pragma once

#include <cstdint>
#include <string_view>

namespace shw {

enum class NameHome : std::uint8_t {
  kPython,     // Python's own library, of any version since 2.7
  kLibrary,    // torch and numpy
  kFramework,  // a package that trains models: its classes are in healthy checkpoints
  kMain,       // the script that runs
  kUnknown,
};
NameHome home_of_module(std::string_view module);

// The module starts programs, opens files or connections, or evaluates text.
bool is_acting_module(std::string_view module);
// A class that does so when it is made, whichever module it is imported through: Popen, ZipFile.
// A dotted name that walks through a module ("os.system") is one as well.
bool is_acting_name(std::string_view name);
// Every part of a dotted name looks like a class: "Outer.Inner".
bool is_path_of_classes(std::string_view name);

// Of Python, torch and numpy: it runs nothing but what puts data together.
bool is_made_of_data(std::string_view module, std::string_view name);

}  // namespace shw
