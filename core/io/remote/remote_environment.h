// What the environment and small files of a person's home say of servers and keys.
#pragma once

#include <map>
#include <string>

namespace shw {

std::string environment_text(const char* variable);  // empty where it is not set
std::string home_folder();
// Without spaces around it; empty where the file cannot be read.
std::string first_line_of(const std::string& path);
// One section of an INI file, as ~/.aws/credentials is: lines "key = value" below "[section]".
std::map<std::string, std::string> ini_section(const std::string& path, const std::string& section);

}  // namespace shw
