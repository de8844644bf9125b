#include "tests/testing/marked_table.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace aerie {

bool PutTable(absl::string_view name, absl::string_view table) {
  std::cout << "\n" << table << "\n";
  const char* path = std::getenv("AERIE_TABLE_FILE");
  if (path == nullptr) return true;
  std::ifstream in(path);
  std::stringstream bytes;
  bytes << in.rdbuf();
  std::string page = bytes.str();
  const std::string begin = absl::StrCat("<!-- begin ", name, " -->\n");
  const size_t first = page.find(begin);
  const size_t last = page.find(absl::StrCat("<!-- end ", name, " -->"));
  if (!in || first == std::string::npos || last == std::string::npos || last < first) {
    std::cerr << path << " has no lines between the marks of the table " << name
              << "; expected them in this order; put them in\n";
    return false;
  }
  const size_t start = first + begin.size();
  page.replace(start, last - start, absl::StrCat("\n", table, "\n"));
  std::ofstream out(path);
  out << page;
  return static_cast<bool>(out.flush());
}

}  // namespace aerie
