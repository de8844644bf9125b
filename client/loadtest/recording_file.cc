// RecordedWorkload::Load: from files to checked sequences.
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/loadtest/recorded_workload.h"
#include "common/safetensors/safetensors.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

using Json = nlohmann::json;

// What the JSON file says.
struct Description {
  Manifest manifest;
  struct Entry {
    int64_t index = 0, prompt_tokens = 0;
  };
  std::vector<Entry> sequences;
};

absl::StatusOr<Description> ReadDescription(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::NotFoundError(absl::StrCat("cannot open ", path,
                                            "; expected the recording's JSON file beside its "
                                            ".safetensors file; copy both"));
  }
  std::stringstream text;
  text << file.rdbuf();
  Description description;
  // nlohmann-json tells wrong types and missing keys by exceptions.
  try {
    const Json json = Json::parse(text.str());
    Manifest& manifest = description.manifest;
    manifest.target_id = json.at("target").get<std::string>().substr(0, 256);
    manifest.num_layers = json.at("target_layers").get<int32_t>();
    manifest.hidden_size = json.at("hidden_size").get<int32_t>();
    std::vector<Capture> captures;
    for (const int32_t boundary : json.at("boundaries").get<std::vector<int32_t>>()) {
      captures.push_back(Capture::Boundary(boundary));
    }
    AERIE_ASSIGN_OR_RETURN(manifest.wiring, Wiring::Create(captures, manifest.num_layers));
    for (const Json& sequence : json.at("sequences")) {
      description.sequences.push_back(
          {sequence.at("index").get<int64_t>(), sequence.at("prompt_tokens").get<int64_t>()});
    }
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not the description of a recording (", error.what(),
                     "); expected target, target_layers, hidden_size, boundaries and sequences; "
                     "record it again"));
  }
  return description;
}

absl::StatusOr<DType> RowType(const TensorSpan& tensor) {
  switch (tensor.type) {
    case TensorType::kBF16:
      return DType::kBF16;
    case TensorType::kF16:
      return DType::kF16;
    case TensorType::kF32:
      return DType::kF32;
    default:
      return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " is ",
                                                     tensor.Describe(),
                                                     "; rows are BF16, F16 or F32; convert it"));
  }
}

absl::StatusOr<RecordedWorkload::Recorded> ReadSequence(const SafetensorsFile& file,
                                                        const Description::Entry& entry,
                                                        const Manifest& manifest) {
  const TensorSpan* tokens = file.Find(absl::StrCat(entry.index, ".tokens"));
  const TensorSpan* aux = file.Find(absl::StrCat(entry.index, ".aux"));
  if (tokens == nullptr || aux == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence ", entry.index, " lacks its tensor ", entry.index,
                     tokens == nullptr ? ".tokens" : ".aux", "; expected both; record it again"));
  }
  if (tokens->type != TensorType::kI32 || tokens->shape.size() != 1 || aux->shape.size() != 2 ||
      aux->shape[0] != tokens->shape[0] || aux->shape[1] != manifest.row_width()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sequence ", entry.index, " has tokens ", tokens->Describe(), " and aux ", aux->Describe(),
        "; expected I32 [L] and [L, ", manifest.row_width(), "]; record it again"));
  }
  RecordedWorkload::Recorded recorded;
  recorded.prompt_tokens = entry.prompt_tokens;
  const int64_t length = tokens->shape[0];
  if (entry.prompt_tokens < 1 || entry.prompt_tokens + 2 > length) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence ", entry.index, " has ", length, " tokens, ", entry.prompt_tokens,
                     " of them its prompt; expected a prompt and two tokens behind it at least; "
                     "leave the sequence out"));
  }
  recorded.tokens.resize(static_cast<size_t>(length));
  std::memcpy(recorded.tokens.data(), tokens->bytes.data(), tokens->bytes.size());
  AERIE_ASSIGN_OR_RETURN(const DType dtype, RowType(*aux));
  AERIE_ASSIGN_OR_RETURN(recorded.aux,
                         HiddenRows::Create(dtype, length, aux->shape[1], aux->bytes));
  return recorded;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordedWorkload>> RecordedWorkload::Load(const std::string& path,
                                                                         int32_t vocab_size) {
  const std::string tensors_path =
      absl::EndsWith(path, ".safetensors") ? path : absl::StrCat(path, "/recording.safetensors");
  AERIE_ASSIGN_OR_RETURN(
      Description description,
      ReadDescription(absl::StrCat(absl::StripSuffix(tensors_path, ".safetensors"), ".json")));
  AERIE_ASSIGN_OR_RETURN(SafetensorsFile opened, SafetensorsFile::Open(tensors_path));
  auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  std::vector<Recorded> sequences;
  for (const Description::Entry& entry : description.sequences) {
    AERIE_ASSIGN_OR_RETURN(Recorded recorded, ReadSequence(*file, entry, description.manifest));
    if (!sequences.empty() && recorded.aux.dtype() != sequences.front().aux.dtype()) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence ", entry.index, " has rows in ", DTypeName(recorded.aux.dtype()),
                       " and those before in ", DTypeName(sequences.front().aux.dtype()),
                       "; expected one type; record them again"));
    }
    sequences.push_back(std::move(recorded));
  }
  if (sequences.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(tensors_path,
                                                   " has no sequences listed in its "
                                                   "JSON file; expected at least one"));
  }
  description.manifest.vocab_size = vocab_size;
  description.manifest.dtype = sequences.front().aux.dtype();
  return std::make_unique<RecordedWorkload>(std::move(description.manifest), std::move(sequences),
                                            std::move(file));
}

}  // namespace aerie::loadtest
