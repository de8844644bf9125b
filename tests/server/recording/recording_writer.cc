#include "tests/server/recording/recording_writer.h"

#include "common/check.h"

namespace aerie {
namespace {

constexpr int64_t kTokens[] = {3, 4};

std::vector<float> Rows(size_t sample, size_t tensor) {
  std::vector<float> rows;
  for (int64_t row = 0; row < kTokens[sample]; ++row) {
    for (int64_t column = 0; column < WrittenRecording::kHidden; ++column) {
      rows.push_back(ValueAt(sample, tensor, row, column));
    }
  }
  return rows;
}

}  // namespace

float ValueAt(size_t sample, size_t tensor, int64_t row, int64_t column) {
  return static_cast<float>(1000 * sample + 100 * tensor) + static_cast<float>(10 * row + column);
}

WrittenRecording::WrittenRecording() {
  description = R"({
    "format": "aerie-recording/1",
    "target": {"id": "tiny", "num_layers": 6, "hidden_size": 5, "vocab_size": 40},
    "dtype": "float32",
    "source": "a test",
    "tensors": [
      {"name": "aux_0", "label": "layer 3", "claim": {"kind": "boundary", "boundary": 3}},
      {"name": "final", "label": "", "claim": null}],
    "samples": [
      {"name": "0", "tokens": 3, "prompt_tokens": 2, "file": "samples-00001.safetensors"},
      {"name": "b", "tokens": 4, "file": "samples-00002.safetensors"}]
  })";
  const std::vector<int32_t> tokens[] = {{7, 8, 39}, {1, 0, 3, 2}};
  const std::string names[] = {"0", "b"};
  for (size_t sample = 0; sample < 2; ++sample) {
    const int64_t length = kTokens[sample];
    files.push_back(
        {"samples-0000" + std::to_string(sample + 1) + ".safetensors",
         {{names[sample] + ".tokens", "I32", {length}, BytesOf(tokens[sample])},
          {names[sample] + ".final", "F32", {length, kHidden}, BytesOf(Rows(sample, 1))},
          {names[sample] + ".aux_0", "F32", {length, kHidden}, BytesOf(Rows(sample, 0))}}});
  }
}

void WrittenRecording::Edit(const std::string& from, const std::string& to) {
  const size_t at = description.find(from);
  AERIE_CHECK(at != std::string::npos) << from;
  description.replace(at, from.size(), to);
}

TensorToWrite& WrittenRecording::Tensor(const std::string& key) {
  for (auto& [name, tensors] : files) {
    for (TensorToWrite& tensor : tensors) {
      if (tensor.name == key) return tensor;
    }
  }
  AERIE_CHECK(false) << key;
}

void WrittenRecording::Write(const TemporaryFolder& folder) const {
  AERIE_CHECK(WriteFile(folder.path("recording.json"), description));
  for (const auto& [name, tensors] : files) {
    AERIE_CHECK(WriteFile(folder.path(name), Safetensors(tensors)));
  }
}

}  // namespace aerie
