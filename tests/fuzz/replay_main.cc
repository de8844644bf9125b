// Runs a fuzz target over every file of the folders given: the kept corpus, without libFuzzer.
//
// Exit code 0 when none of them crashed; a folder that is missing or empty is a failure, since a
// replay of nothing proves nothing.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    std::error_code code;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(argv[i], code)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), {});
      // And every shorter one, in steps: files that end too early are the most common damage.
      const size_t step = bytes.size() / 64 + 1;
      for (size_t length = bytes.size();; length -= step) {
        // A copy of just that many bytes, so that a sanitizer sees a read past them.
        const std::string part = bytes.substr(0, length);
        LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(part.data()), part.size());
        if (length < step) break;
      }
      ++files;
    }
  }
  std::printf("replayed %d files\n", files);
  return files > 0 ? 0 : 1;
}
