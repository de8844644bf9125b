#include "server/recording/recording.h"

#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/check.h"
#include "common/safetensors/json_check.h"
#include "common/safetensors/mapped_file.h"
#include "common/status_macros.h"
#include "server/checkpoint/complaints.h"
#include "server/checkpoint/digest.h"

namespace aerie {
namespace {

constexpr size_t kMaxDescriptionBytes = 64 << 20;
constexpr int kMaxRowsNamed = 3;
constexpr char kRemedy[] = "record or import it again";

TensorType TensorTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return TensorType::kF32;
    case DType::kF16:
      return TensorType::kF16;
    case DType::kBF16:
      return TensorType::kBF16;
  }
  AERIE_CHECK(false) << "no such dtype";
}

}  // namespace

int64_t Recording::total_tokens() const {
  int64_t total = 0;
  for (const RecordedSample& sample : samples_) total += static_cast<int64_t>(sample.tokens.size());
  return total;
}

std::optional<size_t> Recording::FindTensor(absl::string_view name) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].name == name) return i;
  }
  return std::nullopt;
}

HiddenRows Recording::rows(size_t sample, size_t tensor) const {
  AERIE_CHECK(sample < samples_.size() && tensor < tensors_.size()) << sample << ", " << tensor;
  return rows_[sample * tensors_.size() + tensor];
}

std::string Recording::TokensDigest() const {
  uint64_t digest = 0;
  for (const RecordedSample& sample : samples_) {
    digest = Fingerprint64({reinterpret_cast<const char*>(sample.tokens.data()),
                            sample.tokens.size() * sizeof(int32_t)},
                           digest);
  }
  return absl::StrFormat("%016x", digest);
}

// Puts a Recording together and collects all that is wrong on the way.
class RecordingLoader {
 public:
  explicit RecordingLoader(const std::string& folder) { recording_.folder_ = folder; }

  absl::StatusOr<Recording> Load() && {
    const std::string path = absl::StrCat(recording_.folder_, "/", kRecordingFile);
    AERIE_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMaxDescriptionBytes));
    if (auto description = ReadRecordingDescription(text, complaints_)) {
      recording_.target_ = std::move(description->target);
      recording_.dtype_ = description->dtype;
      recording_.source_ = std::move(description->source);
      recording_.tensors_ = std::move(description->tensors);
      ReadSamples(description->samples);
    }
    AERIE_RETURN_IF_ERROR(complaints_.ToStatus(absl::StrCat("recording ", recording_.folder_)));
    return std::move(recording_);
  }

 private:
  void ReadSamples(const std::vector<DescribedSample>& described) {
    std::map<std::string, std::vector<const DescribedSample*>> by_file;
    for (const DescribedSample& sample : described) by_file[sample.file].push_back(&sample);
    // Opened first: views must not move once they are handed out, and a span survives a move.
    std::map<std::string, size_t> opened;
    for (const auto& [name, samples] : by_file) {
      auto file = SafetensorsFile::Open(absl::StrCat(recording_.folder_, "/", name));
      if (!file.ok()) {
        complaints_.Add(absl::StrCat(name, " cannot be read: ", file.status().message(),
                                     "; expected ", samples.size(), " samples in it; ", kRemedy));
        continue;
      }
      opened[name] = recording_.files_.size();
      recording_.files_.push_back(*std::move(file));
      RefuseStrangers(recording_.files_.back(), name, samples);
    }
    for (const DescribedSample& sample : described) {
      const auto found = opened.find(sample.file);
      if (found != opened.end()) ReadSample(recording_.files_[found->second], sample);
    }
    for (const SafetensorsFile& file : recording_.files_) ReleasePages(file.bytes());
  }

  // A tensor that no sample lists says that file and description are not of one recording.
  void RefuseStrangers(const SafetensorsFile& file, const std::string& name,
                       const std::vector<const DescribedSample*>& samples) {
    std::set<std::string> listed;
    for (const DescribedSample* sample : samples) {
      listed.insert(absl::StrCat(sample->name, ".tokens"));
      for (const RecordedTensor& tensor : recording_.tensors_) {
        listed.insert(absl::StrCat(sample->name, ".", tensor.name));
      }
    }
    for (const TensorSpan& tensor : file.tensors()) {
      if (listed.count(tensor.name) != 0) continue;
      complaints_.Add(absl::StrCat(name, " holds ", Quoted(tensor.name), ", which ", kRecordingFile,
                                   " does not list; expected only what it lists; ", kRemedy));
    }
  }

  const TensorSpan* Find(const SafetensorsFile& file, const DescribedSample& sample,
                         const std::string& tensor, TensorType type,
                         const std::vector<int64_t>& shape) {
    const std::string key = absl::StrCat(sample.name, ".", tensor);
    const TensorSpan* found = file.Find(key);
    const std::string expected = TensorSpan{key, type, shape, {}}.Describe();
    if (found == nullptr) {
      complaints_.Add(absl::StrCat(sample.file, " lacks ", Quoted(key), "; expected it as ",
                                   expected, "; ", kRemedy));
      return nullptr;
    }
    if (found->type == type && found->shape == shape) return found;
    complaints_.Add(absl::StrCat(Quoted(key), " is ", found->Describe(), "; expected ", expected,
                                 " by ", kRecordingFile, "; ", kRemedy));
    return nullptr;
  }

  void ReadSample(const SafetensorsFile& file, const DescribedSample& described) {
    RecordedSample sample{described.name, {}, described.prompt_tokens};
    if (const TensorSpan* tokens =
            Find(file, described, "tokens", TensorType::kI32, {described.tokens})) {
      sample.tokens.resize(static_cast<size_t>(described.tokens));
      std::memcpy(sample.tokens.data(), tokens->bytes.data(), tokens->bytes.size());
      CheckTokens(sample);
    }
    const int64_t width = recording_.target_.hidden_size;
    for (const RecordedTensor& tensor : recording_.tensors_) {
      const TensorSpan* found = Find(file, described, tensor.name, TensorTypeOf(recording_.dtype_),
                                     {described.tokens, width});
      if (found == nullptr) continue;
      const auto rows =
          HiddenRows::Create(recording_.dtype_, described.tokens, width, found->bytes);
      AERIE_CHECK(rows.ok()) << rows.status().ToString();  // shape and type were just compared
      CheckFinite(*rows, found->name);
      recording_.rows_.push_back(*rows);
    }
    recording_.samples_.push_back(std::move(sample));
  }

  void CheckTokens(const RecordedSample& sample) {
    const int32_t vocabulary = recording_.target_.vocab_size;
    for (size_t i = 0; i < sample.tokens.size(); ++i) {
      const int32_t token = sample.tokens[i];
      if (token >= 0 && (vocabulary == 0 || token < vocabulary)) continue;
      complaints_.Add(absl::StrCat(
          "token ", i, " of sample ", Quoted(sample.name), " is ", token, "; expected ",
          vocabulary == 0 ? std::string("none below 0") : absl::StrCat("0 .. ", vocabulary - 1),
          "; ", kRemedy));
      return;
    }
  }

  void CheckFinite(HiddenRows rows, const std::string& key) {
    std::string named;
    int64_t first = 0;
    for (int count = 0; const auto found = rows.Slice(first, rows.rows() - first).FindNonFinite();
         ++count) {
      if (count == kMaxRowsNamed) {
        absl::StrAppend(&named, " and more");
        break;
      }
      absl::StrAppend(&named, count == 0 ? "" : ", ", first + found->row);
      first += found->row + 1;
    }
    if (named.empty()) return;
    complaints_.Add(absl::StrCat("row ", named, " of ", Quoted(key),
                                 " holds NaN or infinity; expected finite numbers; leave the "
                                 "sample out, and record in bfloat16 or float32 where float16 "
                                 "overflows"));
  }

  Recording recording_;
  Complaints complaints_;
};

absl::StatusOr<Recording> LoadRecording(const std::string& folder) {
  return RecordingLoader(folder).Load();
}

}  // namespace aerie
