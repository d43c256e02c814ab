#include "training/client/step_recorder.h"

namespace perseus::client {

StepRecorder::StepRecorder(std::size_t steps, std::size_t capacity) : ring_(steps) {
  for (Step& step : ring_) { step.computations.resize(capacity); }
}

Step* StepRecorder::begin_step() {
  const std::uint64_t written = written_.load(std::memory_order_relaxed);
  if (written - read_.load(std::memory_order_acquire) == ring_.size()) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    current_ = nullptr;
    next_ = first_ = end_ = nullptr;
    return nullptr;
  }
  current_ = &ring_[written % ring_.size()];
  first_ = next_ = current_->computations.data();
  end_ = first_ + current_->computations.size();
  current_->clean = true;
  return current_;
}

void StepRecorder::end_step() {
  if (current_ == nullptr) return;
  current_->count = static_cast<std::size_t>(next_ - first_);
  for (const RecordedComputation* computation = first_; computation != next_; ++computation) {
    if (computation->end == 0) current_->clean = false;
  }
  current_ = nullptr;
  next_ = first_ = end_ = nullptr;
  written_.fetch_add(1, std::memory_order_release);
}

const Step* StepRecorder::oldest() {
  const std::uint64_t read = read_.load(std::memory_order_relaxed);
  if (read == written_.load(std::memory_order_acquire)) return nullptr;
  return &ring_[read % ring_.size()];
}

void StepRecorder::release() { read_.fetch_add(1, std::memory_order_release); }

std::size_t StepRecorder::bytes() const {
  std::size_t bytes = 0;
  for (const Step& step : ring_) { bytes += step.computations.capacity() * sizeof(RecordedComputation); }
  return bytes;
}

}  // namespace perseus::client
