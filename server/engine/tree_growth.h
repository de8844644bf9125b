// How a draft grows, level by level, out of the scores of the rows that were computed. Knows no
// model, no session and no clock; a chain is a tree of width 1 and grows in the same way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/draft_tree.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_model.h"

namespace aerie {

// What one call's draft may become. A chain of k tokens: {k, 1, k}.
struct GrowthShape {
  int32_t depth = 0;  // levels
  int32_t top_k = 0;
  int32_t total = 0;  // nodes; depth <= total

  // Nodes of level `level`, counted from 1, that it can help to expand: one of rank r has level - 1
  // ancestors and r - 1 better siblings that are taken before it, and its child must find room too.
  int32_t WidthAt(int32_t level) const { return std::min(top_k, total - level); }
  // Draft rows that it takes at most.
  int64_t DraftRows() const;
};

// The shape for a call that asks for k tokens, k >= 1, of a session with these options.
GrowthShape ShapeFor(const SessionOptions& options, int32_t k);

// Levels of a finished tree.
int32_t DepthOf(const DraftTree& tree);

class TreeGrowth {
 public:
  virtual ~TreeGrowth() = default;

  // How many of a row's best tokens it reads.
  virtual int32_t tokens_read() const = 0;
  // Grows the next level. `rows` has a finite output for each draft row that was asked for; the
  // first time one alone, of the last committed row.
  virtual void Grow(absl::Span<const RowOutput> rows) = 0;
  // What has grown so far.
  virtual DraftTree Tree() const = 0;

  // The draft rows that the next level grows from, as a pass takes them. None: at the beginning,
  // and when it is done.
  absl::Span<const int32_t> tokens() const { return tokens_; }
  absl::Span<const int32_t> parents() const { return parents_; }
  // Levels grown.
  int32_t level() const { return level_; }
  bool done() const { return level_ > 0 && tokens_.empty(); }

 protected:
  // A node, while it grows. Its number is its index + 1; 0 is the root.
  struct Node {
    int32_t token = 0;
    int32_t parent = 0;
    float log_prob = 0.0f;
    double score = 0.0;  // of the path from the root; never above the parent's
    int32_t row = -1;    // the number of its draft row; -1: none was asked for
  };
  int32_t RowOf(int32_t node) const {
    return node == 0 ? -1 : nodes_[static_cast<size_t>(node) - 1].row;
  }
  double ScoreOf(int32_t node, double of_root) const {
    return node == 0 ? of_root : nodes_[static_cast<size_t>(node) - 1].score;
  }
  // Asks for the rows of these nodes, and for no others, next.
  void AskFor(std::vector<int32_t> nodes);

  std::vector<Node> nodes_;        // in order of their levels
  std::vector<int32_t> frontier_;  // the nodes whose rows were asked for; the root at first
  int32_t level_ = 0;

 private:
  std::vector<int32_t> tokens_, parents_;
  int32_t rows_asked_ = 0;
};

}  // namespace aerie
