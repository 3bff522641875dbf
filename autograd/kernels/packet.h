#pragma once

#include <Eigen/Core>

#include <cstdint>

// Packets are aligned by an attribute, which does not matter where their type is only named.
#pragma GCC diagnostic ignored "-Wignored-attributes"

// Vector registers, for the matrix product. This is the only file that uses Eigen's internals, which are not
// part of its public interface: they have been the same from Eigen 3.3 to 3.4, and spare us intrinsics of
// every instruction set. A change in a later version shows here alone.
namespace fovea::kernels {

/// As many elements as a vector register holds.
template <class T>
using Packet = typename Eigen::internal::packet_traits<T>::type;
template <class T>
constexpr std::int64_t packet_size = Eigen::internal::packet_traits<T>::size;

constexpr int vector_registers = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS;

/// The element in every place.
template <class T>
Packet<T> broadcast(T element) {
  return Eigen::internal::pset1<Packet<T>>(element);
}

/// Loads and stores need no alignment.
template <class T>
Packet<T> load_packet(const T* from) {
  return Eigen::internal::ploadu<Packet<T>>(from);
}
template <class T>
void store_packet(const Packet<T>& packet, T* to) {
  Eigen::internal::pstoreu(to, packet);
}

template <class P>
P add(const P& a, const P& b) {
  return Eigen::internal::padd(a, b);
}
/// a b + c, rounded once where the processor can.
template <class P>
P multiply_add(const P& a, const P& b, const P& c) {
  return Eigen::internal::pmadd(a, b, c);
}

/// A square of elements, one packet for each row.
template <class T>
using PacketSquare = Eigen::internal::PacketBlock<Packet<T>, static_cast<int>(packet_size<T>)>;

template <class T>
void transpose(PacketSquare<T>& square) {
  Eigen::internal::ptranspose(square);
}

/// GCC reads a packet that was loaded from memory again for each use, which costs a third of the speed where
/// registers are few; this keeps it in its register. Clang needs no telling, and would store the packet here.
template <class P>
void keep_in_register([[maybe_unused]] P& packet) {
#if EIGEN_COMP_GNUC_STRICT
  EIGEN_OPTIMIZATION_BARRIER(packet);
#endif
}

}  // namespace fovea::kernels
