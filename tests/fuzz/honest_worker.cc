#include "tests/fuzz/honest_worker.h"

#include <string>
#include <utility>
#include <vector>

#include "common/rpc/codec.h"
#include "common/rpc/session_codec.h"
#include "tests/testing/sequences.h"

namespace aerie {
namespace {

// One sequence of a worker. Requests with an odd id are sent together with the one behind them.
class Worker {
 public:
  Worker(CallScript* script, std::string name, Manifest manifest, uint64_t variant)
      : script_(*script),
        name_(std::move(name)),
        manifest_(std::move(manifest)),
        variant_(variant) {}

  void Open(const SessionOptions& options) {
    v1::DraftStreamRequest message;
    rpc::EncodeOpening(options, message.mutable_open_session());
    rpc::EncodeManifest(manifest_, message.mutable_open_session()->mutable_manifest());
    Say(std::move(message), /*together=*/false);
    length_ = options.start;
  }

  // From row `base` on.
  void Draft(int64_t base, int rows, int k, bool together = false) {
    v1::DraftStreamRequest message;
    v1::DraftRequest* const draft = message.mutable_draft();
    if (name_.empty()) {
      rpc::EncodeManifest(manifest_, draft->mutable_manifest());
    } else {
      draft->set_session_id(name_);
      draft->set_seq(++seq_);
    }
    draft->set_base_length(static_cast<uint32_t>(base));
    for (int64_t i = base; i < base + rows; ++i) {
      draft->add_token_ids(static_cast<uint32_t>((static_cast<uint64_t>(i) * 7 + variant_) % 101));
    }
    const OwnedRows owned = MakeRows(manifest_, base, rows, variant_);
    rpc::EncodeHiddenStates(owned.view, manifest_, draft->mutable_hidden_states());
    draft->set_k(static_cast<uint32_t>(k));
    draft->set_accepted(0);
    rpc::EncodeVerifyCost({absl::Milliseconds(20), 2}, draft->mutable_verify_cost());
    rpc::EncodeDuration(absl::Seconds(5), draft->mutable_time_limit());
    Say(std::move(message), together);
    length_ = base + rows;
  }
  void DraftOn(int rows, int k, bool together = false) { Draft(length_, rows, k, together); }

  void Close() {
    v1::DraftStreamRequest message;
    message.mutable_close_session()->set_session_id(name_);
    message.mutable_close_session()->add_final_token_ids(3);
    Say(std::move(message), /*together=*/false);
  }

  // All that a sequence goes through: a prompt in two calls, rounds, a rollback, the end.
  void Live(const SessionOptions& options) {
    Open(options);
    DraftOn(6, 0);
    DraftOn(3, 4);
    DraftOn(1, 4, /*together=*/true);
    DraftOn(2, 4);
    Draft(length_ - 2, 3, 4);
    DraftOn(0, 0);
    Close();
  }

 private:
  void Say(v1::DraftStreamRequest message, bool together) {
    message.set_id(2 * script_.frames.size() + (together ? 1 : 0));
    script_.frames.push_back(message.SerializeAsString());
  }

  CallScript& script_;
  const std::string name_;
  const Manifest manifest_;
  const uint64_t variant_;
  int64_t length_ = 0;
  uint64_t seq_ = 0;
};

SessionOptions OptionsOf(std::string_view kind) {
  SessionOptions options;
  if (kind == "tree" || kind == "sampled_tree") {
    options.tree = TreeShape{.depth = 2, .top_k = 3, .total_tokens = 5};
    options.extras = {.ancestor_mask = true, .links = true};
  }
  if (kind == "sampled" || kind == "sampled_tree") {
    options.temperature = 0.7f;
    options.top_m = 9;
    options.seed = 11;
    options.probs = ProposalProbs::kTopM;
  }
  options.adaptive_k = kind == "adaptive";
  if (kind == "start") options.start = 5;
  if (kind == "clients") options.client = "blue";
  options.acceptance_detail = kind == "chain";
  options.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  return options;
}

Manifest ManifestOf(std::string_view kind) {
  Manifest manifest = FittingManifest(FakeSpec(), kind == "float16" ? DType::kF16 : DType::kF32);
  manifest.fp8 = kind == "fp8";
  if (kind == "fused") {
    manifest.fused_width = FakeSpec().hidden_size;
    manifest.fc_digest = kScriptFcDigest;
  }
  return manifest;
}

void Fork(CallScript* script) {
  Worker parent(script, "@0", ManifestOf("chain"), 3);
  parent.Open({});
  parent.DraftOn(9, 3);
  Worker child(script, "@1", ManifestOf("chain"), 5);
  child.Open({.fork_of = "@0", .fork_length = 6});
  child.Draft(6, 2, 4, /*together=*/true);
  parent.DraftOn(2, 4);
  parent.Close();
  child.DraftOn(1, 2);
}

void TwoAtOnce(CallScript* script) {
  Worker one(script, "@0", ManifestOf("chain"), 3), other(script, "@1", ManifestOf("chain"), 8);
  one.Open({});
  other.Open(OptionsOf("tree"));
  for (const int rows : {5, 1, 2}) {
    one.DraftOn(rows, 4, /*together=*/true);
    other.DraftOn(rows, 5);
  }
}

// The same with each round in one message.
void InBatches(CallScript* script) {
  CallScript single;
  TwoAtOnce(&single);
  v1::DraftStreamRequest batch;
  for (const std::string& frame : single.frames) {
    v1::DraftStreamRequest message;
    message.ParseFromString(frame);
    const bool opens = message.has_open_session();
    if (!opens) *batch.mutable_batch()->add_requests() = message;
    if (opens) script->frames.push_back(frame);
    if (batch.batch().requests_size() < 2) continue;
    batch.set_id(100 + script->frames.size());
    script->frames.push_back(batch.SerializeAsString());
    batch.Clear();
  }
}

}  // namespace

CallScript HonestWorker(std::string_view kind) {
  static constexpr std::string_view kAlone[] = {"chain",    "tree",   "sampled_tree", "sampled",
                                                "adaptive", "fp8",    "float16",      "fused",
                                                "start",    "window", "clients"};
  CallScript script;
  if (kind == "window") script.settings = kScriptWindow;
  if (kind == "clients") script.settings = kScriptClients;
  if (kind == "fork") Fork(&script);
  if (kind == "two") TwoAtOnce(&script);
  if (kind == "batch") InBatches(&script);
  if (kind == "stateless") {
    Worker worker(&script, "", ManifestOf(kind), 4);
    worker.Draft(0, 7, 3);
    worker.Draft(0, 8, 0);
  }
  for (const std::string_view alone : kAlone) {
    if (kind == alone) Worker(&script, "@0", ManifestOf(kind), 2).Live(OptionsOf(kind));
  }
  return script;
}

}  // namespace aerie
