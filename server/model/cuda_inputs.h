// What a pass brings to the device: one block of pinned memory, copied in one piece.
//
// The places of all parts but the last follow from the numbers of rows alone, so a recorded pass
// finds them where it found them before; the last part, page numbers and rows of paths, is the one
// that grows with the sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "server/kernels/cuda/device.h"
#include "server/kernels/cuda/device_memory.h"
#include "server/model/head_net.h"
#include "server/model/rotation.h"
#include "server/model/tensor_view.h"

namespace aerie {

class CudaInputs {
 public:
  explicit CudaInputs(Device& device)
      : device_(device), host_(device, MemoryKind::kPinned), block_(device, MemoryKind::kDevice) {}

  struct Shape {
    int64_t rows = 0, extend_rows = 0, wanted = 0;
    int64_t hidden = 0, pairs = 0;
    bool views_of_all = false;  // of all rows beside those of the wanted ones
  };

  // Room for such a pass with `table` numbers in its table; whether the block has moved.
  bool Reserve(const Shape& shape, int64_t table);

  // Fills the block and starts to copy it. `probes` [wanted]: draft ids, or -1. Returns whether the
  // block has moved on the device.
  bool Bring(const NetInput& input, const Shape& shape, int32_t page_rows, const Rotation& rope,
             const MappedRows& embedding, const std::vector<int32_t>& probes);

  // On the device, of the shape of the last Bring(): valid until the block moves.
  const float* cos() const { return At<float>(cos_); }
  const float* sin() const { return At<float>(sin_); }
  const float* embeddings() const { return At<float>(embeddings_); }
  const float* states() const { return At<float>(states_); }  // of draft rows
  const int32_t* write_page() const { return At<int32_t>(write_page_); }
  const int32_t* write_at() const { return At<int32_t>(write_at_); }
  const int32_t* wanted() const { return At<int32_t>(wanted_); }
  const int32_t* probes() const { return At<int32_t>(probes_); }
  const DeviceSeen* wanted_views() const { return At<DeviceSeen>(wanted_views_); }
  const DeviceSeen* all_views() const { return At<DeviceSeen>(all_views_); }
  const int32_t* table() const { return At<int32_t>(table_); }
  // That cover every row that is seen.
  int32_t splits() const { return splits_; }

 private:
  void Lay(const Shape& shape);
  template <typename T>
  const T* At(int64_t word) const {
    return reinterpret_cast<const T*>(block_.Get<uint32_t>() + word);
  }
  template <typename T>
  T* HostAt(int64_t word) const {
    return reinterpret_cast<T*>(host_.Get<uint32_t>() + word);
  }
  void BringRows(const NetInput& input, int32_t page_rows, const Rotation& rope,
                 const MappedRows& embedding, const Shape& shape);
  int64_t BringTable(const NetInput& input);

  Device& device_;
  DeviceMemory host_, block_;
  // In words of 4 bytes from the block's start.
  int64_t cos_ = 0, sin_ = 0, embeddings_ = 0, states_ = 0, write_page_ = 0, write_at_ = 0,
          wanted_ = 0, probes_ = 0, wanted_views_ = 0, all_views_ = 0, table_ = 0;
  int32_t splits_ = 1;
  std::vector<DeviceSeen> views_;  // of all rows
};

}  // namespace aerie
