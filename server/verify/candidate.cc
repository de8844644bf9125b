#include "server/verify/candidate.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace aerie {
namespace {

bool Contains(const std::vector<int32_t>& list, int32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Adds every way to fill the places from `place` on.
void Fill(const CaptureSet& captures, size_t size, std::vector<int32_t>& chosen,
          std::vector<Candidate>& out) {
  if (chosen.size() == size) {
    Candidate candidate{chosen, 0};
    if (IsMeaningful(candidate, captures)) out.push_back(std::move(candidate));
    return;
  }
  for (int32_t tensor = 0; tensor < static_cast<int32_t>(captures.tensors.size()); ++tensor) {
    if (Contains(chosen, tensor)) continue;
    chosen.push_back(tensor);
    Fill(captures, size, chosen, out);
    chosen.pop_back();
  }
}

}  // namespace

WiringView ViewOf(const Candidate& candidate, const CaptureSet& captures) {
  WiringView view;
  view.shift = candidate.shift;
  for (const int32_t index : candidate.tensors) {
    const CaptureTensor& tensor = captures.tensors[index];
    view.tensors.push_back(tensor.name);
    view.claims.push_back(captures.ClaimOf(index));
    view.embedding = view.embedding || tensor.origin == CaptureTensor::Origin::kTargetEmbedding;
    view.final_norm = view.final_norm || tensor.origin == CaptureTensor::Origin::kTargetNorm;
  }
  return view;
}

bool IsMeaningful(const Candidate& candidate, const CaptureSet& captures) {
  return std::none_of(candidate.tensors.begin(), candidate.tensors.end(), [&](int32_t index) {
    const CaptureTensor& tensor = captures.tensors[index];
    return tensor.origin == CaptureTensor::Origin::kTargetNorm &&
           Contains(candidate.tensors, tensor.norm_of);
  });
}

double CountChoices(int32_t tensors, int32_t size) {
  double count = 1.0;
  for (int32_t i = 0; i < size; ++i) count *= std::max(tensors - i, 0);
  return count;
}

std::vector<Candidate> AllCandidates(const CaptureSet& captures, int32_t size,
                                     absl::Span<const int32_t> shifts) {
  std::vector<Candidate> plain;
  std::vector<int32_t> chosen;
  Fill(captures, size, chosen, plain);
  std::vector<Candidate> all;
  for (const int32_t shift : shifts) {
    for (const Candidate& candidate : plain) all.push_back({candidate.tensors, shift});
  }
  return all;
}

std::vector<Candidate> NeighboursOf(const Candidate& candidate, const CaptureSet& captures,
                                    absl::Span<const int32_t> shifts) {
  std::vector<Candidate> neighbours;
  const auto add = [&](Candidate neighbour) {
    if (IsMeaningful(neighbour, captures)) neighbours.push_back(std::move(neighbour));
  };
  for (size_t place = 0; place < candidate.tensors.size(); ++place) {
    for (int32_t tensor = 0; tensor < static_cast<int32_t>(captures.tensors.size()); ++tensor) {
      if (Contains(candidate.tensors, tensor)) continue;
      Candidate neighbour = candidate;
      neighbour.tensors[place] = tensor;
      add(std::move(neighbour));
    }
    for (size_t other = place + 1; other < candidate.tensors.size(); ++other) {
      Candidate neighbour = candidate;
      std::swap(neighbour.tensors[place], neighbour.tensors[other]);
      add(std::move(neighbour));
    }
  }
  for (const int32_t shift : shifts) {
    if (shift != candidate.shift) add({candidate.tensors, shift});
  }
  return neighbours;
}

std::vector<Candidate> OrdersOf(const Candidate& candidate) {
  constexpr size_t kAllOrdersUpTo = 4;
  std::vector<Candidate> orders;
  if (candidate.tensors.size() > kAllOrdersUpTo) {
    for (size_t a = 0; a < candidate.tensors.size(); ++a) {
      for (size_t b = a + 1; b < candidate.tensors.size(); ++b) {
        orders.push_back(candidate);
        std::swap(orders.back().tensors[a], orders.back().tensors[b]);
      }
    }
    orders.push_back(candidate);
    std::reverse(orders.back().tensors.begin(), orders.back().tensors.end());
    return orders;
  }
  Candidate order = candidate;
  std::sort(order.tensors.begin(), order.tensors.end());
  do {
    orders.push_back(order);
  } while (std::next_permutation(order.tensors.begin(), order.tensors.end()));
  return orders;
}

std::vector<Candidate> MovedByLayers(const Candidate& candidate, const CaptureSet& captures,
                                     absl::Span<const int32_t> layers) {
  std::vector<Candidate> moved;
  for (const int32_t by : layers) {
    Candidate other = candidate;
    bool complete = true;
    for (int32_t& tensor : other.tensors) {
      const std::optional<TensorClaim>& claim = captures.tensors[tensor].claim;
      std::optional<int32_t> found;
      if (claim.has_value() && claim->kind == TensorClaim::Kind::kBoundary) {
        found = captures.FindClaim({TensorClaim::Kind::kBoundary, claim->boundary + by});
      }
      complete = complete && found.has_value();
      if (found.has_value()) tensor = *found;
    }
    if (complete && IsMeaningful(other, captures)) moved.push_back(std::move(other));
  }
  return moved;
}

}  // namespace aerie
