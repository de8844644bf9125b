// Widths, layers, captures and vocabularies of a head.
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/checkpoint/head_parts.h"
#include "server/checkpoint/vocabulary_map.h"

namespace aerie {
namespace {

constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

void ReadTargetWidth(const HeadFiles& files, HeadSpec& spec) {
  const ConfigView& config = files.config;
  if (files.target.known()) {
    spec.target_hidden_size = {files.target.hidden_size, "target's config.json"};
    config.Expect("target_hidden_size", "the target's hidden size", files.target.hidden_size);
    return;
  }
  if (const auto stated = config.Positive("target_hidden_size")) {
    spec.target_hidden_size = {*stated, config.SourceOf("target_hidden_size")};
  } else if (const auto norm = ExtentOf(files, HeadTensor::kFcNorm, 0)) {
    spec.target_hidden_size = *norm;
  } else {
    spec.target_hidden_size = {spec.hidden_size.value,
                               "default: the head's own, no target is given"};
  }
}

void ReadCaptures(const HeadFiles& files, HeadSpec& spec) {
  const int32_t width = spec.target_hidden_size.value;
  if (!spec.use_aux_hidden_state.value) {
    spec.num_captures = {1, spec.use_aux_hidden_state.source};
    if (spec.hidden_size.value != 0 && spec.hidden_size.value != width) {
      files.complaints().Add(absl::StrCat(
          "the head is ", spec.hidden_size.value, " wide and the target ", width,
          ", but use_aux_hidden_state is false; expected the same width, since nothing stands "
          "between them; check which head and which target are given"));
    }
    return;
  }
  const auto columns = ExtentOf(files, HeadTensor::kFc, 1);
  if (!columns.has_value() || width < 1) return;
  if (columns->value % width != 0) {
    files.complaints().Add(
        absl::StrCat("tensor ", files.tensors.Find(HeadTensor::kFc)->name, " has ", columns->value,
                     " columns; expected a multiple of the target's hidden size ", width,
                     "; check which head and which target are given"));
    return;
  }
  spec.num_captures = {columns->value / width, absl::StrCat(columns->source, " columns / ", width)};
  for (const char* key : {"num_aux_hidden_states", "eagle_config.num_aux_hidden_states"}) {
    files.config.Expect(key, "the number of captures that fc.weight takes",
                        spec.num_captures.value);
  }
}

// Configs copy this flag from the target, so a matrix in the file beats it.
Sourced<bool> ReadTie(const HeadFiles& files) {
  const ConfigView& config = files.config;
  for (const std::string& key :
       {std::string("tie_word_embeddings"), files.Layer("tie_word_embeddings")}) {
    if (!config.Bool(key).value_or(false)) continue;
    if (files.tensors.stored.count(HeadTensor::kOutput) != 0) {
      files.complaints().Warn(
          absl::StrCat(config.SourceOf(key),
                       " is true but the file has an lm_head.weight of its own; expected "
                       "one or the other; the tensor is used"));
      return {false, "tensor lm_head.weight"};
    }
    if (files.tensors.stored.count(HeadTensor::kEmbedding) != 0)
      return {true, config.SourceOf(key)};
  }
  return {false,
          files.tensors.stored.count(HeadTensor::kOutput) != 0
              ? "tensor lm_head.weight"
              : "no tensor lm_head.weight or embed_tokens.weight, or no tie_word_embeddings"};
}

void ReadLayers(const HeadFiles& files, HeadSpec& spec) {
  spec.num_layers = {files.tensors.num_layers, "tensor names"};
  const std::string key = files.Layer("num_hidden_layers");
  const auto stated = files.config.Int(key);
  if (stated.has_value() && *stated != files.tensors.num_layers) {
    files.complaints().Warn(absl::StrCat(
        files.config.SourceOf(key), " is ", *stated, " but the file holds ",
        files.tensors.num_layers, files.tensors.num_layers == 1 ? " layer" : " layers",
        "; expected the same (some producers copy the target's); the tensors are followed"));
  }
}

}  // namespace

std::string HeadFiles::Layer(absl::string_view key) const {
  return absl::StrCat(layout.layer, key);
}

std::optional<Sourced<int32_t>> ExtentOf(const HeadFiles& files, const TensorKey& key,
                                         size_t dimension) {
  const TensorSpan* const tensor = files.tensors.Find(key);
  if (tensor == nullptr) return std::nullopt;
  const int64_t extent = tensor->shape[dimension];
  if (extent >= 1 && extent <= kMaxExtent) {
    return Sourced<int32_t>{static_cast<int32_t>(extent), absl::StrCat("tensor ", tensor->name)};
  }
  files.complaints().Add(absl::StrCat("tensor ", tensor->name, " is ", tensor->Describe(),
                                      "; expected extents in 1..", kMaxExtent,
                                      "; export the head again"));
  return std::nullopt;
}

void ReadSizes(const HeadFiles& files, HeadSpec& spec) {
  const TensorKey widest =
      spec.use_aux_hidden_state.value && files.tensors.Find(HeadTensor::kFc) != nullptr
          ? HeadTensor::kFc
          : HeadTensor::kFinalNorm;
  if (const auto hidden = ExtentOf(files, widest, 0)) {
    spec.hidden_size = *hidden;
    files.config.Expect(files.Layer("hidden_size"), absl::StrCat("its extent in ", hidden->source),
                        hidden->value);
  }
  if (const auto inner = ExtentOf(files, HeadTensor::kGate, 0)) {
    spec.intermediate_size = *inner;
    files.config.Expect(files.Layer("intermediate_size"),
                        absl::StrCat("its extent in ", inner->source), inner->value);
  }
  ReadLayers(files, spec);
  ReadTargetWidth(files, spec);
  ReadCaptures(files, spec);

  const std::string key = files.Layer("rms_norm_eps");
  const auto epsilon = files.config.Number(key);
  spec.rms_norm_eps = epsilon.has_value() ? Sourced<double>{*epsilon, files.config.SourceOf(key)}
                                          : Sourced<double>{1e-6, "default: of a Llama config"};
  if (!(spec.rms_norm_eps.value > 0.0 && spec.rms_norm_eps.value < 1.0)) {
    files.complaints().Add(absl::StrCat(files.config.SourceOf(key), " is ", *epsilon,
                                        "; expected a small number above 0; put it right in the "
                                        "file"));
  }
}

void ReadVocabularies(const HeadFiles& files, HeadSpec& spec) {
  const ConfigView& config = files.config;
  spec.tied_output = ReadTie(files);
  const std::string vocab_key = files.Layer("vocab_size");
  if (files.target.known()) {
    spec.vocab_size = {files.target.vocab_size, "target's config.json"};
    config.Expect(vocab_key, "the target's vocabulary", files.target.vocab_size);
  } else if (const auto stated = config.Positive(vocab_key)) {
    spec.vocab_size = {*stated, config.SourceOf(vocab_key)};
  } else if (const auto rows = ExtentOf(files, HeadTensor::kEmbedding, 0)) {
    spec.vocab_size = *rows;
  }
  const int32_t vocab = spec.vocab_size.value;

  const auto stated = config.Positive("draft_vocab_size");
  const TensorSpan* const d2t = files.tensors.Find(HeadTensor::kDraftToTarget);
  const TensorSpan* const t2d = files.tensors.Find(HeadTensor::kTargetToDraft);
  const auto output = ExtentOf(files, HeadTensor::kOutput, 0);
  if (output.has_value()) {
    spec.draft_vocab_size = *output;
  } else {
    spec.draft_vocab_size = {vocab, "all of the target's: the head has no lm_head"};
  }
  // Four places say how large the draft vocabulary is; a disagreement names them all.
  const int32_t rows = spec.draft_vocab_size.value;
  const bool agree = (!stated.has_value() || *stated == rows) &&
                     (d2t == nullptr || d2t->shape[0] == rows) &&
                     (t2d == nullptr || d2t == nullptr || CountTrue(*t2d) == rows) &&
                     (vocab == 0 || rows <= vocab);
  if (agree || (rows == 0 && !output.has_value())) return;
  files.complaints().Add(absl::StrCat(
      "the draft vocabulary has ", output ? absl::StrCat(rows) : std::string("all"), " tokens by ",
      output ? "lm_head.weight, " : "a missing lm_head.weight, ",
      stated ? absl::StrCat(*stated) : std::string("none stated"), " by config.json, ",
      d2t ? absl::StrCat(d2t->shape[0]) : std::string("no tensor"), " by d2t, ",
      t2d ? absl::StrCat(CountTrue(*t2d)) : std::string("no tensor"), " by t2d, of the target's ",
      vocab,
      "; expected the same and no more than the target's; export the head with the map and the "
      "matrix that it was trained with"));
}

}  // namespace aerie
