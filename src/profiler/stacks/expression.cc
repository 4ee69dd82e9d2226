#include "profiler/stacks/expression.h"

#include <dwarf.h>

#include <utility>
#include <vector>

namespace kymo::stacks {
namespace {

constexpr std::size_t kMaxOperations = 64;

// The stack of a DWARF expression. A wrong expression sets `failed`.
class Stack {
 public:
  void push(std::uint64_t value) { values_.push_back(value); }
  std::uint64_t pop() {
    if (values_.empty()) {
      failed = true;
      return 0;
    }
    const std::uint64_t value = values_.back();
    values_.pop_back();
    return value;
  }
  void fail() { failed = true; }

  bool failed = false;

 private:
  std::vector<std::uint64_t> values_;
};

// Operations that take two values.
std::optional<std::uint64_t> combine(int operation, std::uint64_t left, std::uint64_t right) {
  const auto signed_left = static_cast<std::int64_t>(left);
  const auto signed_right = static_cast<std::int64_t>(right);
  switch (operation) {
    case DW_OP_plus:
      return left + right;
    case DW_OP_minus:
      return left - right;
    case DW_OP_mul:
      return left * right;
    case DW_OP_and:
      return left & right;
    case DW_OP_or:
      return left | right;
    case DW_OP_xor:
      return left ^ right;
    case DW_OP_shl:
      return right < 64 ? left << right : 0;
    case DW_OP_shr:
      return right < 64 ? left >> right : 0;
    case DW_OP_eq:
      return left == right ? 1 : 0;
    case DW_OP_ne:
      return left != right ? 1 : 0;
    case DW_OP_ge:
      return signed_left >= signed_right ? 1 : 0;
    case DW_OP_gt:
      return signed_left > signed_right ? 1 : 0;
    case DW_OP_le:
      return signed_left <= signed_right ? 1 : 0;
    case DW_OP_lt:
      return signed_left < signed_right ? 1 : 0;
    default:
      return std::nullopt;
  }
}

// The value that an operation pushes onto the stack, if it takes none from there. Nothing for other
// operations.
std::optional<std::uint64_t> constant(const Operation& operation, const Registers& registers,
                                      std::uint64_t frame_address) {
  const auto in_register = [&](std::uint64_t number, std::uint64_t offset) {
    return number < kRegisters ? std::optional(registers[number] + offset) : std::nullopt;
  };
  const unsigned atom = operation.atom;
  if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) return atom - DW_OP_lit0;
  if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
    return in_register(atom - DW_OP_breg0, operation.number);
  }
  switch (atom) {
    case DW_OP_bregx:
      return in_register(operation.number, operation.number2);
    case DW_OP_call_frame_cfa:
      return frame_address;
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts:
      return operation.number;  // libdw has extended the sign
    default:
      return std::nullopt;
  }
}

void change(Stack& stack, const Operation& operation, const ReadMemory& read) {
  const std::uint64_t top = stack.pop();
  switch (operation.atom) {
    case DW_OP_plus_uconst:
      return stack.push(top + operation.number);
    case DW_OP_dup:
      stack.push(top);
      return stack.push(top);
    case DW_OP_drop:
      return;
    case DW_OP_deref:
      if (const auto value = read(top)) return stack.push(*value);
      return stack.fail();
    default:
      break;
  }
  if (const auto value = combine(operation.atom, stack.pop(), top)) return stack.push(*value);
  stack.fail();
}

// The register that has the value, if the expression is only this register.
std::optional<std::uint64_t> only_register(const Operation& operation) {
  if (operation.atom == DW_OP_regx) return operation.number;
  if (operation.atom < DW_OP_reg0 || operation.atom > DW_OP_reg31) return std::nullopt;
  return std::uint64_t{operation.atom} - DW_OP_reg0;
}

}  // namespace

std::optional<Evaluated> evaluate(std::span<const Operation> operations, const Registers& registers,
                                  std::uint64_t frame_address, const ReadMemory& read) {
  if (operations.empty() || operations.size() > kMaxOperations) return std::nullopt;
  if (const auto number = only_register(operations.front())) {
    if (*number >= kRegisters) return std::nullopt;
    return Evaluated{registers[*number], true};
  }
  Stack stack;
  bool is_value = false;
  for (const Operation& operation : operations) {
    if (operation.atom == DW_OP_stack_value) {
      is_value = true;
    } else if (const auto value = constant(operation, registers, frame_address)) {
      stack.push(*value);
    } else if (operation.atom != DW_OP_nop) {
      change(stack, operation, read);
    }
    if (stack.failed) return std::nullopt;
  }
  const std::uint64_t result = stack.pop();
  return stack.failed ? std::nullopt : std::optional(Evaluated{result, is_value});
}

}  // namespace kymo::stacks
