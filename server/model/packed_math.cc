#include "server/model/packed_math.h"

#include <algorithm>

namespace aerie {
namespace {

// Panels of one task: as many as a tile of one row reads side by side, so that no thread is left
// with a rest that runs slower.
constexpr int64_t kTaskPanels = 4;

int64_t TasksOf(const Product& product) {
  return (product.matrix->panels() + kTaskPanels - 1) / kTaskPanels;
}

}  // namespace

void ProductRunner::Run(std::initializer_list<Product> products) const {
  if (pool_.in_use() == 1) {
    for (const Product& product : products) MultiplyPanels(product, 0, product.matrix->panels());
    return;
  }
  int64_t tasks = 0;
  for (const Product& product : products) tasks += TasksOf(product);
  pool_.Run(tasks, [&](int64_t task, int) {
    for (const Product& product : products) {
      const int64_t own = TasksOf(product);
      if (task >= own) {
        task -= own;
        continue;
      }
      const int64_t first = task * kTaskPanels;
      MultiplyPanels(product, first, std::min(first + kTaskPanels, product.matrix->panels()));
      return;
    }
  });
}

}  // namespace aerie
