// Runs a fuzz target without libFuzzer: over every file of the folders given, and over inputs that
// are made from them by damaging them.
//
// Equal seeds make equal inputs, so what fails in one run fails in the next. There is no feedback
// from the code: what finds the way to deep places is the target's own mutator, where it has one.
// An input that ends the process is written to a file first, which replays as FOLDER does.
#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/damage.h"
#include "tests/fuzz/fuzz_target.h"

// Set where a sanitizer is linked: it ends the process without a signal.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr char kUsage[] =
    "usage: NAME_replay [--runs N] [--seconds S] [--seed N] PATH...\n"
    "\n"
    "Runs the target over each file at or below PATH, and over each of its beginnings in 64 "
    "steps.\n"
    "Then over damaged copies of these files.\n"
    "\n"
    "  --runs N      so many damaged copies; default 0: none, or with --seconds no limit\n"
    "  --seconds S   no more of them after S seconds\n"
    "  --seed N      1 .. : which; default 1. 0: a new one, which is told\n"
    "  -h, --help    this text\n"
    "\n"
    "Exit codes: 0 all went well; 1 there is no file; 2 the command line cannot be read. An input\n"
    "that ends the process is left in the working directory as crash-NAME-SEED-RUN.\n";

// More than any decoder needs to be led astray, little enough to be quick.
constexpr size_t kMaxBytes = size_t{64} << 10;
// Of the process's own time: a loaded machine must not fail a run.
constexpr time_t kMostSeconds = 30;

// What is being run, for who ends the process.
std::string current;
std::string crash_path;

void SaveCurrent() {
  const int fd = open(crash_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return;
  size_t written = 0;
  while (written < current.size()) {
    const ssize_t now = write(fd, current.data() + written, current.size() - written);
    if (now <= 0) break;
    written += static_cast<size_t>(now);
  }
  close(fd);
  constexpr char kSaved[] = "the input is kept in ";
  for (const auto& [text, size] : {std::pair<const char*, size_t>{kSaved, sizeof(kSaved) - 1},
                                   {crash_path.data(), crash_path.size()},
                                   {"\n", 1}}) {
    if (write(STDERR_FILENO, text, size) < 0) return;
  }
}

void OnSignal(int number) {
  SaveCurrent();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void WatchForTheEnd() {
  // A run that never ends is a failure like another.
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGVTALRM}) {
    std::signal(number, &OnSignal);
  }
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(&SaveCurrent);
}

void RunOne() {
  const itimerval patience{{0, 0}, {kMostSeconds, 0}};
  setitimer(ITIMER_VIRTUAL, &patience, nullptr);
  // A copy of just that many bytes, so that a sanitizer sees a read past them.
  const std::vector<uint8_t> exact(current.begin(), current.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::mt19937_64& Random() {
  static std::mt19937_64 random;
  return random;
}

size_t Below(size_t limit) { return aerie::Below(limit, &Random()); }

void Mutate(std::string* bytes) {
  for (size_t times = 1 + Below(6); times > 0; --times) {
    // Bytes that are damaged now and then too: what the mutator makes is always well-formed.
    if (LLVMFuzzerCustomMutator != nullptr && Below(8) != 0) {
      const auto seed = static_cast<unsigned>(Random()());
      size_t size = bytes->size();
      bytes->resize(kMaxBytes);
      size =
          LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t*>(bytes->data()), size, kMaxBytes, seed);
      bytes->resize(size);
    } else {
      aerie::Damage(bytes, &Random());
    }
  }
  if (bytes->size() > kMaxBytes) bytes->resize(kMaxBytes);
}

std::vector<std::string> ReadFiles(const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  std::error_code code;
  if (fs::is_regular_file(path, code)) paths.push_back(path);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path, code)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());  // the disk's order is no order
  std::vector<std::string> files;
  for (const fs::path& each : paths) {
    std::ifstream file(each, std::ios::binary);
    files.emplace_back((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }
  return files;
}

// And every shorter one, in steps: files that end too early are the most common damage.
void ReplayBeginnings(const std::string& bytes) {
  const size_t step = bytes.size() / 64 + 1;
  for (size_t length = bytes.size();; length -= step) {
    current = bytes.substr(0, length);
    RunOne();
    if (length < step) break;
  }
}

struct Arguments {
  uint64_t runs = 0, seconds = 0, seed = 1;
  std::vector<std::string> paths;
};

bool ReadArguments(int argc, char** argv, Arguments* out) {
  bool limited = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    uint64_t* const number = word == "--runs"      ? &out->runs
                             : word == "--seconds" ? &out->seconds
                             : word == "--seed"    ? &out->seed
                                                   : nullptr;
    if (number == nullptr) {
      if (word.empty() || word[0] == '-') return false;
      out->paths.push_back(word);
      continue;
    }
    char* end = nullptr;
    if (++i == argc || argv[i][0] < '0' || argv[i][0] > '9') return false;
    *number = std::strtoull(argv[i], &end, 10);
    if (*end != '\0') return false;
    limited = limited || word == "--runs";
  }
  if (out->seconds > 0 && !limited) out->runs = UINT64_MAX;
  return !out->paths.empty();
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  aerie::Damage(&bytes, &Random());
  bytes.resize(std::min(bytes.size(), max_size));
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

int main(int argc, char** argv) {
  Arguments arguments;
  if (argc == 2 && (std::strcmp(argv[1], "-h") == 0 || std::strcmp(argv[1], "--help") == 0)) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (!ReadArguments(argc, argv, &arguments)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (arguments.seed == 0) arguments.seed = std::random_device()() | 1u;
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  const std::string prefix = "crash-" + name + "-" + std::to_string(arguments.seed) + "-";
  crash_path = prefix + "replay";
  WatchForTheEnd();

  std::vector<std::string> files;
  for (const std::string& path : arguments.paths) {
    for (std::string& file : ReadFiles(path)) files.push_back(std::move(file));
  }
  for (const std::string& file : files) ReplayBeginnings(file);
  std::printf("replayed %zu files\n", files.size());
  // A replay of nothing proves nothing.
  if (files.empty()) return 1;

  std::printf("damaged copies with the seed %llu\n",
              static_cast<unsigned long long>(arguments.seed));
  std::fflush(stdout);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(arguments.seconds);
  uint64_t run = 0;
  for (; run < arguments.runs; ++run) {
    if (arguments.seconds > 0 && std::chrono::steady_clock::now() >= end) break;
    // Of its own for each, so that one can be made again without those before it.
    Random().seed(arguments.seed * 0x9e3779b97f4a7c15ull + run);
    crash_path = prefix + std::to_string(run);
    std::string made = files[Below(files.size())];
    Mutate(&made);
    current = std::move(made);
    RunOne();
  }
  std::printf("ran %llu damaged copies\n", static_cast<unsigned long long>(run));
  return 0;
}
