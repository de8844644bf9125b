#include "server/recording/recording_description.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/safetensors/json_check.h"

namespace aerie {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 6;
constexpr size_t kMaxTensors = 1024;
constexpr size_t kMaxNameBytes = 100;
constexpr char kRemedy[] = "write the recording again, or mend recording.json";

// Reads fields of one object; the first fault of each field becomes a complaint.
class Fields {
 public:
  Fields(const Json& object, std::string subject, Complaints& complaints)
      : object_(object), subject_(std::move(subject)), complaints_(complaints) {}

  void Complain(absl::string_view seen, absl::string_view expected) {
    complaints_.Add(absl::StrCat(subject_, " ", seen, "; expected ", expected, "; ", kRemedy));
  }

  // Empty with a complaint when there is none.
  std::string Text(const char* key) {
    const auto found = object_.find(key);
    if (found != object_.end() && found->is_string()) return found->get<std::string>();
    Complain(absl::StrCat("has no ", key, " that is a string"), "one");
    return "";
  }
  std::string OptionalText(const char* key) { return object_.contains(key) ? Text(key) : ""; }

  // Nullopt with a complaint when there is no such number in least..most.
  std::optional<int64_t> Number(const char* key, int64_t least, int64_t most) {
    const auto found = object_.find(key);
    if (found != object_.end() && found->is_number_integer() &&
        (!found->is_number_unsigned() || found->get<uint64_t>() <= uint64_t{INT64_MAX})) {
      const int64_t value = found->get<int64_t>();
      if (value >= least && value <= most) return value;
      Complain(absl::StrCat("has ", key, " ", value), absl::StrCat(least, " .. ", most));
      return std::nullopt;
    }
    Complain(absl::StrCat("has no ", key, " that is a whole number"),
             absl::StrCat("one in ", least, " .. ", most));
    return std::nullopt;
  }
  std::optional<int64_t> OptionalNumber(const char* key, int64_t least, int64_t most) {
    return object_.contains(key) ? Number(key, least, most) : std::nullopt;
  }

 private:
  const Json& object_;
  const std::string subject_;
  Complaints& complaints_;
};

// A sample's name holds no dot, so that a key "<sample>.<tensor>" is read in one way only.
bool IsPlainName(const std::string& name, bool dots) {
  return !name.empty() && name.size() <= kMaxNameBytes && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [dots](unsigned char c) {
           return std::isalnum(c) || c == '_' || c == '-' || (dots && c == '.');
         });
}

std::optional<DType> DTypeFromName(absl::string_view name) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (name == DTypeName(dtype)) return dtype;
  }
  return std::nullopt;
}

RecordedTarget ReadTarget(const Json& json, Complaints& complaints) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  RecordedTarget target;
  const auto found = json.find("target");
  if (found == json.end() || !found->is_object()) {
    complaints.Add(absl::StrCat(
        "the recording describes no target; expected an object \"target\"; ", kRemedy));
    return target;
  }
  Fields fields(*found, "its target", complaints);
  target.id = fields.Text("id");
  target.hidden_size = static_cast<int32_t>(fields.Number("hidden_size", 1, 1 << 20).value_or(0));
  target.num_layers =
      static_cast<int32_t>(fields.OptionalNumber("num_layers", 0, 1 << 16).value_or(0));
  target.vocab_size =
      static_cast<int32_t>(fields.OptionalNumber("vocab_size", 0, kMax).value_or(0));
  return target;
}

std::optional<TensorClaim> ReadClaim(const Json& json, const std::string& subject,
                                     const RecordedTarget& target, Complaints& complaints) {
  if (json.is_null()) return std::nullopt;
  Fields fields(json, absl::StrCat("the claim of ", subject), complaints);
  if (!json.is_object()) {
    fields.Complain("is no object", "an object or null");
    return std::nullopt;
  }
  const std::string kind = fields.OptionalText("kind");
  if (kind == "final_norm") return TensorClaim{TensorClaim::Kind::kFinalNorm, 0};
  if (kind == "embedding") return TensorClaim{TensorClaim::Kind::kEmbedding, 0};
  if (kind != "boundary") {
    fields.Complain(absl::StrCat("is of kind ", Quoted(kind)), "boundary, final_norm or embedding");
    return std::nullopt;
  }
  const int64_t most = target.num_layers > 0 ? target.num_layers : 1 << 16;
  const auto boundary = fields.Number("boundary", 0, most);
  if (!boundary.has_value()) return std::nullopt;
  return TensorClaim{TensorClaim::Kind::kBoundary, static_cast<int32_t>(*boundary)};
}

RecordedTensor ReadTensor(const Json& json, size_t index, const RecordedTarget& target,
                          Complaints& complaints) {
  RecordedTensor tensor;
  std::string subject = absl::StrCat("tensor number ", index);
  Fields fields(json, subject, complaints);
  if (!json.is_object()) {
    fields.Complain("is no object", "an object");
    return tensor;
  }
  tensor.name = fields.Text("name");
  if (!IsPlainName(tensor.name, true) || tensor.name == "tokens") {
    fields.Complain(absl::StrCat("is called ", Quoted(tensor.name)),
                    "letters, digits, _, - and dots inside, and not \"tokens\"");
  }
  tensor.label = fields.OptionalText("label");
  const auto claim = json.find("claim");
  if (claim != json.end()) {
    tensor.claim =
        ReadClaim(*claim, absl::StrCat("tensor ", Quoted(tensor.name)), target, complaints);
  }
  return tensor;
}

DescribedSample ReadSample(const Json& json, size_t index, Complaints& complaints) {
  DescribedSample sample;
  Fields fields(json, absl::StrCat("sample number ", index), complaints);
  if (!json.is_object()) {
    fields.Complain("is no object", "an object");
    return sample;
  }
  sample.name = fields.Text("name");
  if (!IsPlainName(sample.name, false)) {
    fields.Complain(absl::StrCat("is called ", Quoted(sample.name)), "letters, digits, _ and -");
  }
  sample.tokens = fields.Number("tokens", 1, 1 << 30).value_or(0);
  sample.prompt_tokens = fields.OptionalNumber("prompt_tokens", 0, sample.tokens);
  sample.file = fields.Text("file");
  // A plain name cannot lead out of the folder.
  if (!IsPlainName(sample.file, true) || !absl::EndsWith(sample.file, ".safetensors")) {
    fields.Complain(absl::StrCat("lies in the file ", Quoted(sample.file)),
                    "a plain name in the recording's folder that ends with .safetensors");
  }
  return sample;
}

template <typename Item>
void RefuseTwins(const std::vector<Item>& items, absl::string_view what, Complaints& complaints) {
  std::set<std::string> seen;
  for (const Item& item : items) {
    if (seen.insert(item.name).second) continue;
    complaints.Add(absl::StrCat("two ", what, " are called ", Quoted(item.name),
                                "; expected a name of its own for each; ", kRemedy));
  }
}

// The array `key`, or nullptr with a complaint.
const Json* List(const Json& json, const char* key, size_t most, Complaints& complaints) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_array() && !found->empty() && found->size() <= most) {
    return &*found;
  }
  complaints.Add(absl::StrCat("the recording has no usable list of ", key,
                              "; expected an array of 1 .. ", most, "; ", kRemedy));
  return nullptr;
}

}  // namespace

std::string TensorClaim::ToString() const {
  switch (kind) {
    case Kind::kBoundary:
      return absl::StrCat("boundary ", boundary);
    case Kind::kFinalNorm:
      return "final norm";
    case Kind::kEmbedding:
      break;
  }
  return "embedding";
}

bool SamePlace(const TensorClaim& a, const TensorClaim& b) {
  const auto embedding = [](const TensorClaim& claim) {
    return claim.kind == TensorClaim::Kind::kEmbedding ||
           (claim.kind == TensorClaim::Kind::kBoundary && claim.boundary == 0);
  };
  return a == b || (embedding(a) && embedding(b));
}

std::optional<RecordingDescription> ReadRecordingDescription(absl::string_view text,
                                                             Complaints& complaints) {
  if (absl::Status fault = CheckJsonObject(text, kMaxDepth); !fault.ok()) {
    complaints.Add(absl::StrCat(kRecordingFile, " cannot be read: ", fault.message(),
                                "; expected the description of a recording; ", kRemedy));
    return std::nullopt;
  }
  const Json json = Json::parse(text.begin(), text.end());
  const size_t before = complaints.list().size();
  RecordingDescription description;
  Fields fields(json, "the recording", complaints);
  const std::string format = fields.OptionalText("format");
  if (format != kRecordingFormat) {
    // Another format's fields mean other things: no use in reading on.
    fields.Complain(absl::StrCat("is of format ", Quoted(format)),
                    absl::StrCat("\"", kRecordingFormat, "\""));
    return std::nullopt;
  }
  description.target = ReadTarget(json, complaints);
  const std::string dtype = fields.OptionalText("dtype");
  if (const auto known = DTypeFromName(dtype); known.has_value()) {
    description.dtype = *known;
  } else {
    fields.Complain(absl::StrCat("has rows of dtype ", Quoted(dtype)),
                    "float32, float16 or bfloat16");
  }
  description.source = fields.OptionalText("source");
  if (const Json* tensors = List(json, "tensors", kMaxTensors, complaints)) {
    for (size_t i = 0; i < tensors->size(); ++i) {
      description.tensors.push_back(ReadTensor((*tensors)[i], i, description.target, complaints));
    }
    RefuseTwins(description.tensors, "tensors", complaints);
  }
  if (const Json* samples = List(json, "samples", 1 << 20, complaints)) {
    for (size_t i = 0; i < samples->size(); ++i) {
      description.samples.push_back(ReadSample((*samples)[i], i, complaints));
    }
    RefuseTwins(description.samples, "samples", complaints);
  }
  if (complaints.list().size() != before) return std::nullopt;
  return description;
}

}  // namespace aerie
