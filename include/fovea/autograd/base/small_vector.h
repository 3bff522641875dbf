#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>

namespace fovea {

/// A vector whose first N elements live inside it, so that shapes and the lists of a graph node cost no
/// allocation. Iterators are pointers; growth past N moves to the heap.
template <class T, std::size_t N>
class SmallVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  // Not `= default`, which would zero the inline storage of `SmallVector x{}`.
  SmallVector() noexcept {}  // NOLINT(modernize-use-equals-default)
  SmallVector(std::initializer_list<T> values) : SmallVector(values.begin(), values.end()) {}
  SmallVector(std::size_t count, const T& value) {
    reserve(count);
    std::uninitialized_fill_n(data_, count, value);
    size_ = count;
  }
  template <std::input_iterator Iterator>
  SmallVector(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(*first);
  }
  SmallVector(const SmallVector& other) : SmallVector(other.begin(), other.end()) {}
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      for (const T& value : other) push_back(value);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { release(); }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T& front() noexcept { return data_[0]; }
  const T& front() const noexcept { return data_[0]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }

  void push_back(T value) { emplace_back(std::move(value)); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ < capacity_) return *std::construct_at(data_ + size_++, std::forward<Args>(args)...);
    // Made before the elements move, since it may be made from one of them.
    T value(std::forward<Args>(args)...);
    reserve(2 * capacity_);
    return *std::construct_at(data_ + size_++, std::move(value));
  }
  void pop_back() noexcept { std::destroy_at(data_ + --size_); }
  T* insert(const T* position, T value) {
    const auto at = position - data_;
    push_back(std::move(value));
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
    return data_ + at;
  }
  T* erase(const T* position) noexcept {
    T* at = data_ + (position - data_);
    std::move(at + 1, end(), at);
    pop_back();
    return at;
  }
  void resize(std::size_t count) {
    while (size_ > count) pop_back();
    while (size_ < count) emplace_back();
  }
  void clear() noexcept {
    std::destroy_n(data_, size_);
    size_ = 0;
  }
  void reserve(std::size_t count) {
    if (count <= capacity_) return;
    T* grown = std::allocator<T>().allocate(count);
    std::uninitialized_move_n(data_, size_, grown);
    const std::size_t kept = size_;
    release();
    data_ = grown;
    size_ = kept;
    capacity_ = count;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) { return std::ranges::equal(a, b); }

 private:
  T* inline_data() noexcept { return reinterpret_cast<T*>(inline_); }

  void release() noexcept {
    clear();
    if (data_ != inline_data()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = inline_data();
    capacity_ = N;
  }

  // Leaves `other` empty. A heap block changes hands; inline elements are moved one by one.
  void take(SmallVector& other) noexcept {
    if (other.data_ != other.inline_data()) {
      data_ = std::exchange(other.data_, other.inline_data());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
      return;
    }
    std::uninitialized_move_n(other.data_, other.size_, data_);
    size_ = other.size_;
    other.clear();
  }

  T* data_ = inline_data();
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace fovea
